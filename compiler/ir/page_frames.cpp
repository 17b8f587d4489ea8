#include "compiler/ir/page_frames.h"

#include <algorithm>

namespace rdusim {
namespace {

PageFrame frame_of(const Tensor& t, std::uint64_t heads) {
  PageFrame frame = t.whole;
  if (frame.size() == 1) frame.insert(frame.begin(), 1);
  if (heads > 1) {
    frame.insert(frame.end() - 2, static_cast<std::int64_t>(heads));
    frame.back() /= static_cast<std::int64_t>(heads);
  }
  return frame;
}

PageFrame result_of(const SpatialProgram& p, const Stage& s, const std::vector<PageFrame>& frames) {
  std::vector<const PageFrame*> inputs;
  for (const Port& port : s.ports)
    if (port.direction == Direction::input) inputs.push_back(&frames[port.buffer.value]);
  const bool known = std::none_of(inputs.begin(), inputs.end(), [](const PageFrame* f) { return f->empty(); });
  if (const auto* load = std::get_if<Load>(&s.kind); load != nullptr && load->indexed) {
    const PageFrame table = frame_of(p.tensor(load->tensor), 1);
    return inputs.size() != 1 || !known ? PageFrame{} : PageFrame{inputs[0]->back(), table.back()};
  }
  if (const auto* load = std::get_if<Load>(&s.kind)) return frame_of(p.tensor(load->tensor), load->pattern.heads);
  if (const auto* recv = std::get_if<Recv>(&s.kind)) return frames[p.edge(recv->edge).buffer.value];
  if (const auto* matmul = std::get_if<MatmulTiles>(&s.kind)) {
    if (inputs.size() != 2 || !known) return {};
    PageFrame frame = *inputs[0];
    frame.back() = matmul->transposed ? (*inputs[1])[inputs[1]->size() - 2] : inputs[1]->back();
    return frame;
  }
  const auto* generic = std::get_if<Generic>(&s.kind);
  if (generic != nullptr && by_row(*generic)) {
    if (!known) return {};
    PageFrame frame = row_frame(inputs);
    if (joins_rows(*generic) && !frame.empty()) frame.back() = 1;
    return frame;
  }
  if (generic != nullptr && folds_items(*generic)) return {};
  // Where pages go round a ring, what enters it says what they are.
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](const PageFrame* f) { return !f->empty(); });
  return first == inputs.end() ? PageFrame{} : **first;
}

}  // namespace

PageFrame row_frame(const std::vector<const PageFrame*>& inputs) {
  PageFrame frame;
  for (const PageFrame* f : inputs) {
    if (f->size() > frame.size()) frame.insert(frame.begin(), f->size() - frame.size(), 1);
    for (std::size_t d = 1; d <= f->size(); ++d) {
      std::int64_t& extent = frame[frame.size() - d];
      extent = std::max(extent, (*f)[f->size() - d]);
    }
  }
  return frame;
}

std::vector<PageFrame> page_frames(const SpatialProgram& p) {
  std::vector<PageFrame> frames(p.buffers.size());
  // Stages mostly stand in the order of the stream; each round settles at least one more, or is the last.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Stage& s : p.stages)
      for (const Port& port : s.ports) {
        if (port.direction == Direction::input || !frames[port.buffer.value].empty()) continue;
        frames[port.buffer.value] = result_of(p, s, frames);
        changed = changed || !frames[port.buffer.value].empty();
      }
  }
  return frames;
}

std::uint64_t flat_rows(const PageFrame& frame) {
  std::uint64_t rows = 1;
  for (std::size_t d = 0; d + 1 < frame.size(); ++d) rows *= static_cast<std::uint64_t>(frame[d]);
  return rows;
}

}  // namespace rdusim
