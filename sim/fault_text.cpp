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

// "edge 7", "edge7"
std::optional<std::uint64_t> numbered(std::string_view place, std::string_view what) {
  if (!place.starts_with(what)) return std::nullopt;
  place.remove_prefix(what.size());
  if (place.starts_with(' ')) place.remove_prefix(1);
  return number(place);
}

struct Refusal {
  std::string message, help;
};

// The parts of KIND@PLACE[#INSTANCE][:NTH].
class Parser {
 public:
  Parser(const FaultLaw& law, std::string_view place, const SpatialProgram& p) : law_(law), place_(place), p_(p) {
    fault_.kind = law.kind;
    // The numbers at the end; a name may hold ':' or '#' itself, so what is no number belongs to the name.
    if (const auto colon = place_.rfind(':'); colon != std::string_view::npos) {
      if (const auto n = number(place_.substr(colon + 1))) {
        fault_.nth = *n;
        place_ = place_.substr(0, colon);
      }
    }
    if (const auto hash = place_.rfind('#'); hash != std::string_view::npos) {
      if (const auto n = number(place_.substr(hash + 1)); n && *n <= 0xffffffff) {
        fault_.instance = static_cast<std::uint32_t>(*n);
        place_ = place_.substr(0, hash);
      }
    }
  }

  std::optional<Refusal> read() {
    switch (law_.place) {
      case FaultPlace::hand_off:
        return numbered(place_, "edge") && !index_named(p_.buffers, place_) ? edge() : buffer();
      case FaultPlace::buffer:
        return buffer();
      case FaultPlace::edge:
      case FaultPlace::token_edge:
      case FaultPlace::semaphore_edge:
      case FaultPlace::barrier_edge:
        return edge();
      case FaultPlace::link:
        return link();
      default:
        return stage();
    }
  }
  const Fault& fault() const { return fault_; }

 private:
  std::optional<Refusal> instance_of(GroupId g) const {
    const std::size_t n = p_.placement ? p_.group(g).sites.size() : 0;
    if (fault_.instance < n) return std::nullopt;
    return Refusal{fmt::format("'{}' has {} instances, and there is no instance {}", place_, n, fault_.instance),
                   "choose one that exists"};
  }

  std::optional<Refusal> stage() {
    const auto s = index_named(p_.stages, place_);
    if (!s || !may_strike(law_.place, p_.stages[*s])) {
      std::vector<std::string_view> names;
      for (const Stage& other : p_.stages) {
        if (may_strike(law_.place, other) && names.size() < 20) names.push_back(other.name);
      }
      return Refusal{
          fmt::format("'{}' is not a stage that '{}' could break", place_, law_.name),
          names.empty() ? std::string("the program has none") : fmt::format("use one of {}", fmt::join(names, ", "))};
    }
    fault_.stage = StageAt{StageId{*s}, fault_.instance};
    return instance_of(p_.stages[*s].group);
  }

  std::optional<Refusal> edge() {
    const auto n = numbered(place_, "edge");
    if (!n)
      return Refusal{fmt::format("'{}' breaks a crossing edge, and '{}' is none", law_.name, place_),
                     "name it as edgeN"};
    if (*n >= p_.edges.size())
      return Refusal{fmt::format("there is no edge {}", *n),
                     fmt::format("edges are numbered 0 to {}", p_.edges.empty() ? 0 : p_.edges.size() - 1)};
    const Edge& e = p_.edges[*n];
    if (!may_strike(law_.place, e))
      return Refusal{fmt::format("edge {} has no hand-off that '{}' could break", *n, law_.name),
                     "use a crossing edge, with tokens, semaphores or a barrier, as the fault's name asks for"};
    fault_.edge = e.id;
    return instance_of(p_.stage(e.from).group);
  }

  std::optional<Refusal> link() {
    const auto n = numbered(place_, "link");
    if (!n || std::find(p_.links.begin(), p_.links.end(), LinkId{*n}) == p_.links.end()) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < p_.links.size() && i < 20; ++i)
        names.push_back(fmt::format("link{}", p_.links[i].value));
      return Refusal{
          fmt::format("the program uses no link '{}'", place_),
          names.empty() ? std::string("it uses none") : fmt::format("use one of {}", fmt::join(names, ", "))};
    }
    fault_.link = LinkId{*n};
    return std::nullopt;
  }

  std::optional<Refusal> buffer() {
    const auto b = index_named(p_.buffers, place_);
    if (!b) {
      std::vector<std::string_view> names;
      for (const Buffer& other : p_.buffers) names.push_back(other.name);
      const auto near = nearest(place_, names);
      return Refusal{
          fmt::format("the program has no buffer '{}'", place_),
          near.empty() ? std::string("`rdusim show` lists the buffers") : fmt::format("did you mean '{}'?", near)};
    }
    if (auto wrong = instance_of(p_.buffers[*b].group)) return wrong;
    fault_.buffer = BufferAt{BufferId{*b}, fault_.instance};
    // What is pushed into a landing buffer came over an edge: that is where it goes astray.
    const Instances instances(p_);
    const auto receiver = instances.receiver_into(instances.of(*fault_.buffer));
    if (!receiver) return std::nullopt;
    if (law_.place == FaultPlace::buffer)
      return Refusal{
          fmt::format("'{}' is a landing buffer, and '{}' breaks one that nothing crosses into", place_, law_.name),
          "choose another buffer"};
    const std::vector<std::uint32_t>& channels = instances.receivers()[*receiver].channels;
    const ChannelAt& channel = instances.channel_at(channels[fault_.nth % channels.size()]);
    fault_.buffer.reset();
    fault_.edge = channel.edge;
    fault_.instance = channel.from;
    fault_.nth /= channels.size();
    return std::nullopt;
  }

  const FaultLaw& law_;
  std::string_view place_;
  const SpatialProgram& p_;
  Fault fault_;
};

// Whether a body adds an operand to what it has.
bool adds(const Generic& g) {
  for (const auto& run : g.bodies)
    for (std::size_t i = 1; i < run.value.size(); ++i)
      if (run.value[i].op == ExprOp::add && run.value[i - 1].op == ExprOp::operand) return true;
  return false;
}

}  // namespace

bool may_strike(FaultPlace place, const Stage& s) {
  const bool sums = std::holds_alternative<MatmulTiles>(s.kind);
  const bool folds = std::holds_alternative<Generic>(s.kind);
  const bool loads = std::holds_alternative<Load>(s.kind);
  const bool stores = std::holds_alternative<Store>(s.kind);
  switch (place) {
    case FaultPlace::stage:
      return sums || folds || loads || stores;
    case FaultPlace::mover:
      return loads || stores;
    case FaultPlace::load:
      return loads;
    case FaultPlace::sum:
      return sums || folds;
    case FaultPlace::fold:
      return folds && !makes_values(std::get<Generic>(s.kind)) && adds(std::get<Generic>(s.kind));
    case FaultPlace::bias:
      return folds && by_row(std::get<Generic>(s.kind)) && adds(std::get<Generic>(s.kind));
    case FaultPlace::matmul:
      return sums;
    default:
      return false;
  }
}

bool may_strike(FaultPlace place, const Edge& e) {
  switch (place) {
    case FaultPlace::hand_off:
    case FaultPlace::edge:
      return !is_local(e.handshake);
    case FaultPlace::token_edge:
      return e.handshake == Handshake::token;
    case FaultPlace::semaphore_edge:
      return e.handshake == Handshake::semaphore;
    case FaultPlace::barrier_edge:
      return e.handshake == Handshake::barrier;
    default:
      return false;
  }
}

std::string_view name_of(FaultPlace p) {
  switch (p) {
    case FaultPlace::hand_off:
      return "buffer or edgeN";
    case FaultPlace::buffer:
      return "buffer";
    case FaultPlace::edge:
      return "edgeN";
    case FaultPlace::token_edge:
      return "edgeN (tokens)";
    case FaultPlace::semaphore_edge:
      return "edgeN (semaphores)";
    case FaultPlace::barrier_edge:
      return "edgeN (barrier)";
    case FaultPlace::stage:
      return "stage";
    case FaultPlace::mover:
      return "load or store";
    case FaultPlace::load:
      return "load";
    case FaultPlace::sum:
      return "matmul or fold";
    case FaultPlace::fold:
      return "fold";
    case FaultPlace::bias:
      return "stage that adds by row";
    case FaultPlace::matmul:
      return "matmul";
    case FaultPlace::link:
      return "linkN";
  }
  return "";
}

std::string checks_of(const FaultLaw& l) {
  std::string codes;
  for (const Code c : l.checks) codes += fmt::format("{}RDU{}", codes.empty() ? "" : " ", static_cast<int>(c));
  return codes.empty() ? "costs time alone" : codes;
}

Result<Fault> parse_fault(const std::string& text, const SpatialProgram& program) {
  const std::string where = "--inject " + text;
  const auto refuse = [&](const Refusal& r) {
    Diagnostics d;
    d.error(Code::RDU6007, where, "{}", r.message).suggest("{}", r.help);
    return d;
  };
  const auto at = text.find('@');
  if (at == std::string::npos)
    return refuse({"a fault is KIND@PLACE[#INSTANCE][:NTH]", "for example page_drop@edge0:2"});
  std::string kind = text.substr(0, at);
  std::replace(kind.begin(), kind.end(), '-', '_');
  const auto* law =
      std::find_if(fault_laws.begin(), fault_laws.end(), [&](const FaultLaw& l) { return l.name == kind; });
  if (law == fault_laws.end()) {
    std::vector<std::string_view> names;
    for (const FaultLaw& l : fault_laws) names.push_back(l.name);
    return refuse(
        {fmt::format("'{}' is not a kind of fault", kind), fmt::format("use one of {}", fmt::join(names, ", "))});
  }
  Parser parser(*law, std::string_view(text).substr(at + 1), program);
  if (const auto refusal = parser.read()) return refuse(*refusal);
  return parser.fault();
}

std::string to_text(const Fault& f, const SpatialProgram& p) {
  const std::string_view kind = law_of(f.kind).name;
  if (f.link) return fmt::format("{}@link{}:{}", kind, f.link->value, f.nth);
  std::string place;
  std::uint32_t instance = f.instance;
  if (f.edge) place = fmt::format("edge{}", f.edge->value);
  if (f.buffer) place = p.buffer(f.buffer->buffer).name, instance = f.buffer->instance;
  if (f.stage) place = p.stage(f.stage->stage).name, instance = f.stage->instance;
  return fmt::format("{}@{}#{}:{}", kind, place, instance, f.nth);
}

}  // namespace rdusim
