#include "sim/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/support/file.h"
#include "compiler/workload/data_file.h"
#include "compiler/workload/fill_reader.h"
#include "compiler/workload/npy.h"
#include "compiler/workload/safetensors.h"
#include "compiler/workload/slice_runs.h"
#include "sim/coverage_checker.h"

namespace rdusim {

namespace {

bool given(TensorRole role) {
  return role == TensorRole::input || role == TensorRole::weight || role == TensorRole::state;
}

Bytes bytes_of_shape(const std::vector<std::int64_t>& shape, DType dtype) {
  return static_cast<Bytes>(element_count(shape).value_or(0)) * bytes_of(dtype);
}

Result<FileFill> file_for(const Operand& operand, const std::string& value, const std::string& where) {
  std::string path = value;
  std::string tensor;
  const auto is_safetensors = [](const std::string& p) { return p.size() > 12 && p.ends_with(".safetensors"); };
  if (!is_safetensors(path)) {
    if (const auto at = value.rfind(".safetensors:"); at != std::string::npos) {
      path = value.substr(0, at + 12);
      tensor = value.substr(at + 13);
    }
  }
  auto data = DataFile::open(path, path, where);
  if (!data) return data.diagnostics();
  FileFill fill;
  fill.path = path;
  fill.size_bytes = data->size();
  if (is_safetensors(path)) {
    fill.tensor = tensor.empty() ? operand.name : tensor;
    auto index = read_safetensors_index(*data, path, where);
    if (!index) return index.diagnostics();
    auto offset = safetensors_data_offset(*index, fill.tensor, operand.dtype, operand.shape, path, where);
    if (!offset) return offset.diagnostics();
    fill.data_offset = *offset;
  } else {
    auto offset = npy_data_offset(*data, operand.dtype, operand.shape, path, where);
    if (!offset) return offset.diagnostics();
    fill.data_offset = *offset;
  }
  const auto hash = data->sha256();
  if (!hash) {
    Diagnostics d;
    d.error(Code::RDU1001, where, "'{}' cannot be read to its end", path);
    return d;
  }
  fill.sha256 = *hash;
  return fill;
}

// Calls f(offset in the slice, offset in the whole operand, bytes) for each run of the tensor's bytes; false where it does
// not lie in the operand.
template <class F>
bool for_each_run(const Tensor& t, F&& f) {
  if (t.shape.empty() || !SliceRuns::lie_within(t.whole, t.offset, t.shape)) return false;
  const std::size_t size = bytes_of(t.dtype);
  return SliceRuns(t.whole, t.offset, t.shape).for_each([&](std::int64_t p, std::int64_t at, std::int64_t length) {
    f(static_cast<std::size_t>(at) * size, static_cast<std::size_t>(p) * size, static_cast<std::size_t>(length) * size);
    return true;
  });
}

// Whether nobody writes its elements: then a view of its file will do.
bool only_read(TensorRole role) {
  return role == TensorRole::input || role == TensorRole::weight;
}

bool in_file(const Operand& o) {
  return only_read(o.role) && can_map(o.fill, o.dtype);
}

}  // namespace

Result<std::vector<OperandSource>> operand_sources(const SpatialProgram& program, const std::string& folder,
                                                   const std::vector<Assignment>& set) {
  std::vector<OperandSource> sources;
  if (program.operators) {
    for (const Operand& o : program.operators->operands) sources.push_back({o, folder});
  } else {
    for (const Tensor& t : program.tensors) {
      if (t.operand.value >= sources.size()) sources.resize(t.operand.value + std::size_t{1});
      OperandSource& s = sources[t.operand.value];
      if (!s.operand.name.empty()) continue;
      s.operand = Operand{t.operand, t.name, t.role, t.whole.empty() ? t.shape : t.whole, t.dtype, t.fill, {}};
      s.folder = folder;
    }
  }
  Diagnostics d;
  for (const auto& [name, file] : set) {
    const std::string where = fmt::format("--set {}", name);
    const auto it =
        std::find_if(sources.begin(), sources.end(), [&](const OperandSource& s) { return s.operand.name == name; });
    if (it == sources.end() || !given(it->operand.role)) {
      std::vector<std::string_view> names;
      for (const OperandSource& s : sources) {
        if (given(s.operand.role)) names.push_back(s.operand.name);
      }
      Diagnostic& e = it == sources.end() ? d.error(Code::RDU6003, where, "the program has no tensor '{}'", name)
                                          : d.error(Code::RDU6003, where, "'{}' is written by the program", name);
      if (const auto near = nearest(name, names); it == sources.end() && !near.empty())
        e.suggest("did you mean '{}'?", near);
      e.suggest("it can set {}", fmt::join(names, ", "));
      continue;
    }
    auto fill = file_for(it->operand, file, where);
    if (!fill) {
      d.append(fill.diagnostics());
      continue;
    }
    it->operand.fill = std::move(fill).value();
    it->folder.clear();
  }
  if (d.has_errors()) return d;
  return sources;
}

namespace {

// By operand id: views of those that are only read and lie in files.
Result<OperandBytes> map_whole(const std::vector<OperandSource>& sources) {
  OperandBytes bytes(sources.size());
  for (const OperandSource& s : sources) {
    if (!only_read(s.operand.role)) continue;
    auto mapped = map_fill(s.operand.fill, s.operand.dtype, s.operand.shape, s.folder);
    if (!mapped) return mapped.diagnostics();
    if (*mapped) bytes[s.operand.id.value] = **std::move(mapped);
  }
  return bytes;
}

}  // namespace

Result<TensorImages> fill_images(const SpatialProgram& program, const std::vector<OperandSource>& sources) {
  Diagnostics missing;
  for (const OperandSource& s : sources) {
    if (!given(s.operand.role) || !std::holds_alternative<ExternalFill>(s.operand.fill)) continue;
    missing.error(Code::RDU6002, s.operand.name, "'{}' is external and was not given", s.operand.name)
        .suggest("add --set {}=FILE.npy", s.operand.name);
  }
  if (missing.has_errors()) return missing;
  auto mapped = map_whole(sources);
  if (!mapped) return mapped.diagnostics();
  TensorImages images(program.tensors.size());
  for (const Tensor& t : program.tensors) {
    if (const ElementBytes& whole = (*mapped)[t.operand.value];
        whole.is_view() && SliceRuns::lie_within(t.whole, t.offset, t.shape)) {
      images[t.id.value] = whole;
      continue;
    }
    images[t.id.value].resize(bytes_of_shape(t.shape, t.dtype));
    if (!given(t.role)) continue;
    const OperandSource& s = sources[t.operand.value];
    auto filled = read_fill(s.operand.fill, t.dtype, t.whole, t.offset, t.shape, s.folder, images[t.id.value]);
    if (!filled) return filled.diagnostics();
  }
  return images;
}

Result<OperandBytes> fill_whole(const std::vector<OperandSource>& sources) {
  auto bytes = map_whole(sources);
  if (!bytes) return bytes;
  for (const OperandSource& s : sources) {
    const Operand& o = s.operand;
    ElementBytes& whole = (*bytes)[o.id.value];
    if (!given(o.role) || whole.is_view()) continue;
    whole.resize(bytes_of_shape(o.shape, o.dtype));
    auto filled =
        read_fill(o.fill, o.dtype, o.shape, std::vector<std::int64_t>(o.shape.size(), 0), o.shape, s.folder, whole);
    if (!filled) return filled.diagnostics();
  }
  return bytes;
}

std::optional<ElementBytes> gather(const SpatialProgram& program, OperandId operand, const TensorImages& images) {
  std::vector<std::byte> whole;
  std::uint64_t covered = 0;
  std::vector<const Tensor*> done;
  for (const Tensor& t : program.tensors) {
    if (t.operand != operand) continue;
    const ElementBytes& image = images[t.id.value];
    if (image.is_view()) return image;
    if (whole.empty()) whole.resize(bytes_of_shape(t.whole, t.dtype));
    const bool replica = std::any_of(done.begin(), done.end(),
                                     [&](const Tensor* d) { return d->offset == t.offset && d->shape == t.shape; });
    if (replica) continue;
    done.push_back(&t);
    if (image.size() != bytes_of_shape(t.shape, t.dtype) || whole.size() != bytes_of_shape(t.whole, t.dtype))
      return std::nullopt;
    const bool inside = for_each_run(t, [&](std::size_t in_slice, std::size_t in_whole, std::size_t bytes) {
      std::memcpy(whole.data() + in_whole, image.data() + in_slice, bytes);
    });
    if (!inside) return std::nullopt;
    covered += image.size();
  }
  if (covered != whole.size() || whole.empty()) return std::nullopt;
  return ElementBytes(std::move(whole));
}

std::vector<std::byte> slice_of(const Tensor& tensor, const ElementBytes& image) {
  std::vector<std::byte> slice(image.is_view() ? bytes_of_shape(tensor.shape, tensor.dtype) : image.size());
  if (image.is_view()) {
    for_each_run(tensor, [&](std::size_t in_slice, std::size_t in_whole, std::size_t bytes) {
      std::memcpy(slice.data() + in_slice, image.data() + in_whole, bytes);
    });
  } else {
    std::copy(image.begin(), image.end(), slice.begin());
  }
  return slice;
}

// Instances of stages and buffers, and channels between them.
std::uint64_t units_of(const SpatialProgram& p) {
  const auto sites = [&](GroupId g) -> std::uint64_t { return p.placement ? p.group(g).sites.size() : 1; };
  std::uint64_t units = 0;
  for (const Stage& s : p.stages) units += sites(s.group);
  for (const Buffer& b : p.buffers) units += sites(b.group);
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    std::uint64_t channels = 0;  // of a `to`
    for (const auto& list : e.map.targets) channels += list.size();
    if (channels == 0) channels = sites(p.stage(e.from).group);
    units += channels * e.to.size();
  }
  return units;
}

// What the machine and its checkers hold of a unit. Measured: 1.1 to 1.2 kB on matmuls and decoders of examples/, over
// 3 to 16 chips, timing-only.
constexpr Bytes each_unit = 1200;

MemoryEstimate estimate_memory(const SpatialProgram& program, const std::vector<OperandSource>& sources, bool values,
                               bool check) {
  MemoryEstimate e;
  if (values) {
    for (const Tensor& t : program.tensors)
      if (!in_file(sources[t.operand.value].operand)) e.images += bytes_of_shape(t.shape, t.dtype);
    for (const Buffer& b : program.buffers) {
      e.machine += b.depth_pages * b.page_bytes * (program.placement ? program.group(b.group).sites.size() : 1);
    }
  }
  if (values && check && program.operators) {
    for (const Operand& o : program.operators->operands) {
      if (in_file(sources[o.id.value].operand)) continue;
      e.reference += bytes_of_shape(o.shape, o.dtype);
      // The reference keeps the result in the accumulator's type for each chip's leaf, and in a wider type with its
      // magnitude.
      if (!given(o.role)) {
        e.reference += bytes_of_shape(o.shape, accumulator_of(o.dtype)) * (program.header.plan.chips + 1) +
                       bytes_of_shape(o.shape, DType::int64) * 2;
      }
    }
  }
  e.machine += CoverageChecker::bytes_needed(program) + each_unit * units_of(program);
  return e;
}

std::string to_npy(DType dtype, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes) {
  const char* descr = "";
  switch (dtype) {
    case DType::int8:
      descr = "|i1";
      break;
    case DType::int32:
      descr = "<i4";
      break;
    case DType::int64:
      descr = "<i8";
      break;
    case DType::fp32:
      descr = "<f4";
      break;
    case DType::bf16:
      descr = "<u2";
      break;
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      descr = "|u1";
      break;
  }
  std::string extents;
  for (std::int64_t extent : shape) extents += fmt::format("{},{}", extent, shape.size() == 1 ? "" : " ");
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, extents);
  constexpr std::size_t before = 10;  // magic, version, length
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

}  // namespace rdusim
