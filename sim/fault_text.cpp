#include "sim/fault_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/file.h"
#include "sim/instances.h"

namespace rdusim {

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

template <class Part>
std::optional<std::uint32_t> index_named(const std::vector<Part>& parts, std::string_view name) {
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<Fault> parse_fault(const std::string& text, const SpatialProgram& program) {
  const std::string where = "--inject " + text;
  const auto refuse = [&](std::string message, std::string help) {
    Diagnostics d;
    d.error(Code::RDU6007, where, "{}", message).suggest("{}", help);
    return d;
  };
  const auto at = text.find('@');
  if (at == std::string::npos) return refuse("a fault is KIND@PLACE[#INSTANCE][:NTH]", "for example page_drop@edge0:2");
  std::string kind_name = text.substr(0, at);
  std::replace(kind_name.begin(), kind_name.end(), '-', '_');
  const auto* kind =
      std::find_if(fault_laws.begin(), fault_laws.end(), [&](const FaultLaw& k) { return k.name == kind_name; });
  if (kind == fault_laws.end()) {
    std::vector<std::string_view> names;
    for (const FaultLaw& k : fault_laws) names.push_back(k.name);
    return refuse(fmt::format("'{}' is not a kind of fault", kind_name),
                  fmt::format("use one of {}", fmt::join(names, ", ")));
  }

  Fault fault;
  fault.kind = kind->kind;
  std::string_view place = std::string_view(text).substr(at + 1);
  // The numbers at the end; a name may hold ':' or '#' itself, so what is no number belongs to the name.
  if (const auto colon = place.rfind(':'); colon != std::string_view::npos) {
    if (const auto n = number(place.substr(colon + 1))) {
      fault.nth = *n;
      place = place.substr(0, colon);
    }
  }
  if (const auto hash = place.rfind('#'); hash != std::string_view::npos) {
    if (const auto n = number(place.substr(hash + 1)); n && *n <= 0xffffffff) {
      fault.instance = static_cast<std::uint32_t>(*n);
      place = place.substr(0, hash);
    }
  }

  const auto instances_of = [&](GroupId g) {
    return program.placement ? program.group(g).sites.size() : std::size_t{0};
  };
  const auto check_instance = [&](GroupId g) -> std::string {
    if (fault.instance < instances_of(g)) return {};
    return fmt::format("'{}' has {} instances, and there is no instance {}", place, instances_of(g), fault.instance);
  };

  if (kind->place == FaultPlace::fold) {
    const auto s = index_named(program.stages, place);
    if (!s || !std::holds_alternative<Generic>(program.stages[*s].kind)) {
      std::vector<std::string_view> names;
      for (const Stage& stage : program.stages) {
        if (std::holds_alternative<Generic>(stage.kind) && names.size() < 20) names.push_back(stage.name);
      }
      return refuse(
          fmt::format("'{}' is not a stage that folds partial sums", place),
          names.empty() ? std::string("the program has none") : fmt::format("use one of {}", fmt::join(names, ", ")));
    }
    if (const auto wrong = check_instance(program.stages[*s].group); !wrong.empty())
      return refuse(wrong, "choose one that exists");
    fault.stage = StageAt{StageId{*s}, fault.instance};
    return fault;
  }

  if (place.starts_with("edge")) {
    std::string_view digits = place.substr(4);
    if (digits.starts_with(' ')) digits.remove_prefix(1);
    if (const auto n = number(digits)) {
      if (*n >= program.edges.size())
        return refuse(fmt::format("there is no edge {}", *n),
                      fmt::format("edges are numbered 0 to {}", program.edges.empty() ? 0 : program.edges.size() - 1));
      const Edge& e = program.edges[*n];
      const bool fits = (kind->place == FaultPlace::hand_off && !is_local(e.handshake)) ||
                        (kind->place == FaultPlace::token_edge && e.handshake == Handshake::token) ||
                        (kind->place == FaultPlace::semaphore_edge && e.handshake == Handshake::semaphore);
      if (!fits)
        return refuse(fmt::format("edge {} has no hand-off that '{}' could break", *n, kind->name),
                      "use a crossing edge with tokens or semaphores, as the fault's name asks for");
      if (const auto wrong = check_instance(program.stage(e.from).group); !wrong.empty())
        return refuse(wrong, "choose one that exists");
      fault.edge = e.id;
      return fault;
    }
  }
  if (kind->place != FaultPlace::hand_off)
    return refuse(fmt::format("'{}' breaks a crossing edge, and '{}' is none", kind->name, place), "name it as edgeN");
  const auto b = index_named(program.buffers, place);
  if (!b) {
    std::vector<std::string_view> names;
    for (const Buffer& buffer : program.buffers) names.push_back(buffer.name);
    const auto near = nearest(place, names);
    return refuse(
        fmt::format("the program has no buffer '{}'", place),
        near.empty() ? std::string("`rdusim show` lists the buffers") : fmt::format("did you mean '{}'?", near));
  }
  if (const auto wrong = check_instance(program.buffers[*b].group); !wrong.empty())
    return refuse(wrong, "choose one that exists");
  fault.buffer = BufferAt{BufferId{*b}, fault.instance};
  // What is pushed into a landing buffer came over an edge: that is where it goes astray.
  const Instances instances(program);
  const auto receiver = instances.receiver_into(instances.of(*fault.buffer));
  if (receiver) {
    const std::vector<std::uint32_t>& channels = instances.receivers()[*receiver].channels;
    const ChannelAt& channel = instances.channel_at(channels[fault.nth % channels.size()]);
    fault.buffer.reset();
    fault.edge = channel.edge;
    fault.instance = channel.from;
    fault.nth /= channels.size();
  }
  return fault;
}

}  // namespace rdusim
