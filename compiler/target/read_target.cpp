#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/support/file.h"
#include "compiler/support/toml.h"
#include "compiler/target/target.h"
#include "compiler/target/topology.h"

namespace rdusim {
namespace {

constexpr std::size_t max_text_bytes = std::size_t{1} << 20;
constexpr std::uint64_t max_links = 1'000'000;
constexpr std::uint64_t max_sites = 1'000'000;

// A point of the text; {0, 0} before its first line.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

Place place_of(const TomlValue& value) {
  return {value.line, value.column};
}

std::string_view type_of(const TomlValue& value) {
  return value.as_float() != nullptr ? "a decimal number" : value.type_name();
}

// Whole or decimal; the nearest double of a whole number that is none.
std::optional<double> number_in(const TomlValue& value) {
  if (const auto* integer = value.as_integer()) return static_cast<double>(*integer);
  if (const auto* decimal = value.as_float()) return *decimal;
  return std::nullopt;
}

// All faults found, given out in order of their place in the text.
class Faults {
 public:
  explicit Faults(std::string where) : where_(std::move(where)) {}

  template <class... Args>
  Diagnostic& at(Place place, Code code, fmt::format_string<Args...> format, Args&&... args) {
    Diagnostic d{code,
                 Severity::error,
                 fmt::format("{}:{}:{}", where_, std::max(1U, place.line), std::max(1U, place.column)),
                 fmt::format(format, std::forward<Args>(args)...),
                 {},
                 {}};
    return found_.emplace(place, std::move(d))->second;
  }
  std::size_t count() const { return found_.size(); }
  Diagnostics take() {
    Diagnostics out;
    for (auto& [place, d] : found_) out.add(std::move(d));
    return out;
  }

 private:
  std::string where_;
  std::multimap<Place, Diagnostic> found_;  // equal keys keep the order of insertion
};

// What a number of a target may be.
struct Bounds {
  double least = 0;
  double most = 0;
};
constexpr Bounds any_cycles{0, 1e9};
constexpr Bounds any_ns{0, 1e9};
constexpr Bounds any_bytes{1, 1e15};
constexpr Bounds any_rate{1e-6, 1e6};

// A number as the text gives it: `{ value = V, published = "..." }` or `{ value = V, assumed = "...", range = [A, B]
// }`.
struct Number {
  Fraction value;
  Place place;
};

// A table of the text, read key by key; `finish` says what was not asked for.
class Section {
 public:
  Section(const TomlValue* table, std::string path, Place place, Faults& faults, std::vector<Provenance>& numbers)
      : table_(table), path_(std::move(path)), place_(place), faults_(faults), numbers_(numbers) {}

  bool present() const { return table_ != nullptr; }
  Place place() const { return place_; }
  std::string key_path(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  // The node of a required key; null, and said so, where it is missing.
  const TomlValue* node(std::string_view key) {
    known_.push_back(key);
    if (table_ == nullptr) return nullptr;
    const TomlValue* found = table_->find(key);
    if (found == nullptr) faults_.at(place_, Code::RDU2004, "'{}' is missing", key_path(key));
    return found;
  }

  bool has(std::string_view key) {
    known_.push_back(key);
    return table_ != nullptr && table_->find(key) != nullptr;
  }

  // The node of a key, without asking for it.
  const TomlValue* peek(std::string_view key) const { return table_ == nullptr ? nullptr : table_->find(key); }

  Section section(std::string_view key) {
    const TomlValue* found = node(key);
    if (found == nullptr) return {nullptr, key_path(key), place_, faults_, numbers_};
    const bool table = found->as_table() != nullptr;
    if (!table) wrong_type(*found, key, "a table");
    return {table ? found : nullptr, key_path(key), place_of(*found), faults_, numbers_};
  }

  std::string string(std::string_view key) {
    const TomlValue* found = node(key);
    if (found == nullptr) return {};
    if (const auto* text = found->as_string()) return *text;
    wrong_type(*found, key, "a string");
    return {};
  }

  void wrong_type(const TomlValue& found, std::string_view key, std::string_view expected) {
    faults_.at(place_of(found), Code::RDU2005, "'{}' is {}, where {} is asked for", key_path(key), type_of(found),
               expected);
  }

  // The table of a number, once its source and its mark are in order; null otherwise.
  const TomlValue* sourced(std::string_view key, bool with_range, Provenance& out) {
    const TomlValue* found = node(key);
    if (found == nullptr) return nullptr;
    if (found->as_table() == nullptr) {
      const bool bare = number_in(*found).has_value() || (found->as_array() != nullptr && !with_range);
      if (bare) {
        faults_.at(place_of(*found), Code::RDU2007, "'{}' is bare: nothing says where it is from", key_path(key))
            .suggest("write {} = {{ value = ..., published = \"source\" }}, or {{ value = ..., assumed = \"why\"{} }}",
                     key, with_range ? ", range = [least, most]" : "");
      } else {
        wrong_type(*found, key, "a number with its source");
      }
      return nullptr;
    }
    Section entry(found, key_path(key), place_of(*found), faults_, numbers_);
    out.key = entry.path_;
    const std::size_t before = faults_.count();
    const bool published = entry.has("published");
    const bool assumed = entry.has("assumed");
    const bool ranged = entry.has("range");
    entry.node("value");
    if (published == assumed) {
      faults_.at(entry.place_, Code::RDU2007, "'{}' says {} of 'published' and 'assumed'", entry.path_,
                 published ? "both" : "neither");
    } else {
      out.published = published;
      out.source = entry.string(published ? "published" : "assumed");
      if (faults_.count() == before && out.source.empty()) {
        faults_.at(entry.place_, Code::RDU2007, "the source of '{}' is empty", entry.path_);
      }
      if (assumed && with_range && !ranged) {
        faults_.at(entry.place_, Code::RDU2007, "'{}' is assumed without a range", entry.path_)
            .suggest("add range = [least, most]: how far it may lie from the truth");
      } else if (ranged && (published || !with_range)) {
        faults_.at(entry.place_, Code::RDU2007, "'{}' has a range, which only an assumed number has", entry.path_);
      } else if (ranged) {
        out.range = entry.range();
      }
    }
    entry.finish();
    return faults_.count() == before ? found : nullptr;
  }

  std::optional<Number> number(std::string_view key, Bounds bounds, bool whole) {
    Provenance from;
    const TomlValue* entry = sourced(key, true, from);
    if (entry == nullptr) return std::nullopt;
    const TomlValue& value = *entry->find("value");
    const Place at = place_of(value);
    const auto number = number_in(value);
    if (!number || (whole && value.as_integer() == nullptr)) {
      wrong_type(value, std::string(key) + ".value", whole ? "an integer" : "a number");
      return std::nullopt;
    }
    const double approximate = *number;
    if (!(approximate >= bounds.least && approximate <= bounds.most)) {
      faults_.at(at, Code::RDU2006, "'{}' is {}, outside {} to {}", from.key, approximate, bounds.least, bounds.most);
      return std::nullopt;
    }
    std::optional<Fraction> exact;
    if (const auto* integer = value.as_integer()) {
      exact = Fraction{static_cast<std::uint64_t>(*integer), 1};
      from.value = fmt::format("{}", *integer);
    } else {
      exact = exact_fraction(approximate);
      from.value = fmt::format("{}", approximate);
    }
    if (!exact) {
      faults_.at(at, Code::RDU2006, "'{}' has more digits than an exact fraction holds", from.key);
      return std::nullopt;
    }
    if (from.range && (approximate < from.range->first || approximate > from.range->second)) {
      faults_.at(at, Code::RDU2006, "'{}' is {}, outside its own range {} to {}", from.key, approximate,
                 from.range->first, from.range->second);
      return std::nullopt;
    }
    numbers_.push_back(std::move(from));
    return Number{*exact, at};
  }

  // Whole numbers. Leave `out` as it is where there is a fault.
  template <class T>
  void whole(std::string_view key, Bounds bounds, T& out) {
    if (const auto n = number(key, bounds, true)) out = static_cast<T>(n->value.num);
  }

  void exact(std::string_view key, Bounds bounds, Fraction& out) {
    if (const auto n = number(key, bounds, false)) out = n->value;
  }

  enum class Round { up, down };
  // A time in ns as whole cycles of `clock_ghz`.
  void cycles(std::string_view key, Bounds bounds, const Fraction& clock_ghz, Round round, Cycles& out) {
    const auto n = number(key, bounds, false);
    if (!n || clock_ghz.num == 0) return;
    const auto scaled = multiply(n->value, clock_ghz);
    if (!scaled) {
      inexact(*n, key);
    } else {
      out = scaled->num / scaled->den + (round == Round::up && scaled->num % scaled->den != 0 ? 1 : 0);
    }
  }

  // The same, with its fraction of a cycle.
  void exact_cycles(std::string_view key, Bounds bounds, const Fraction& clock_ghz, Fraction& out) {
    const auto n = number(key, bounds, false);
    if (!n || clock_ghz.num == 0) return;
    if (const auto scaled = multiply(n->value, clock_ghz)) {
      out = *scaled;
    } else {
      inexact(*n, key);
    }
  }

  // A bandwidth in GB/s, shared by `ways`, as bytes a cycle of `clock_ghz`.
  void rate(std::string_view key, const Fraction& clock_ghz, std::uint32_t ways, Fraction& out) {
    const auto n = number(key, any_rate, false);
    if (!n || clock_ghz.num == 0 || ways == 0) return;
    auto scaled = divide(n->value, clock_ghz);
    if (scaled) scaled = divide(*scaled, Fraction{ways, 1});
    if (!scaled) {
      inexact(*n, key);
    } else {
      out = *scaled;
    }
  }

  void finish() {
    if (table_ == nullptr) return;
    for (const TomlMember& member : *table_->as_table()) {
      if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
      const Place at{member.line, member.column};
      auto& fault = faults_.at(at, Code::RDU2003, "'{}' is not a key of a target", key_path(member.key));
      if (const auto near = nearest(member.key, known_); !near.empty()) fault.suggest("did you mean '{}'?", near);
    }
  }

 private:
  std::optional<std::pair<double, double>> range() {
    const TomlValue* found = node("range");
    const TomlArray* list = found->as_array();
    const bool pair = list != nullptr && list->size() == 2;
    const auto least = pair ? number_in((*list)[0]) : std::nullopt;
    const auto most = pair ? number_in((*list)[1]) : std::nullopt;
    if (!least || !most) {
      faults_.at(place_of(*found), Code::RDU2005, "'{}' is not two numbers, [least, most]", key_path("range"));
      return std::nullopt;
    }
    if (!(*least <= *most)) {
      faults_.at(place_of(*found), Code::RDU2006, "'{}' is {} to {}: the least comes first", key_path("range"), *least,
                 *most);
      return std::nullopt;
    }
    return std::pair{*least, *most};
  }

  void inexact(const Number& n, std::string_view key) {
    faults_.at(n.place, Code::RDU2006, "'{}' is no exact fraction of 64 bits in cycles of this clock", key_path(key));
  }

  const TomlValue* table_;  // null where there is none
  std::string path_;
  Place place_;
  Faults& faults_;
  std::vector<Provenance>& numbers_;
  std::vector<std::string_view> known_;
};

void read_name(Section& root, Target& out, Faults& faults) {
  out.name = root.string("name");
  out.summary = root.string("summary");
  const bool plain = std::all_of(out.name.begin(), out.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (const TomlValue* name = root.peek("name"); name != nullptr && name->as_string() != nullptr) {
    if (!plain || out.name.empty() || out.name.size() > 64) {
      faults.at(place_of(*name), Code::RDU2006,
                "a target's name is 1 to 64 letters, digits, '-', '_' and '.', so that files can be named after it");
    }
  }
}

template <class T, std::size_t N>
std::optional<T> one_of(const TomlValue& node, std::string_view key,
                        const std::array<std::pair<std::string_view, T>, N>& choices, Faults& faults) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    faults.at(place_of(node), Code::RDU2005, "'{}' is {}, where a string is asked for", key, type_of(node));
    return std::nullopt;
  }
  std::string list;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == *text) return value;
    list += (list.empty() ? "" : ", ") + std::string(name);
    names.push_back(name);
  }
  auto& fault = faults.at(place_of(node), Code::RDU2006, "'{}' is '{}'; it is one of {}", key, *text, list);
  if (const auto near = nearest(*text, names); !near.empty()) fault.suggest("did you mean '{}'?", near);
  return std::nullopt;
}

constexpr std::array<std::pair<std::string_view, LocalHandshake>, 2> local_names = {
    {{"valid_ready", LocalHandshake::valid_ready}, {"circular_buffer", LocalHandshake::circular_buffer}}};
constexpr std::array<std::pair<std::string_view, CrossingHandshake>, 3> crossing_names = {
    {{"token", CrossingHandshake::token},
     {"semaphore", CrossingHandshake::semaphore},
     {"barrier", CrossingHandshake::barrier}}};
constexpr std::array<std::pair<std::string_view, LinkScope>, 3> scope_names = {
    {{"node", LinkScope::node}, {"counterparts", LinkScope::counterparts}, {"machine", LinkScope::machine}}};
constexpr std::array<std::pair<std::string_view, LinkShape>, 4> shape_names = {{{"full_mesh", LinkShape::full_mesh},
                                                                                {"ring", LinkShape::ring},
                                                                                {"line", LinkShape::line},
                                                                                {"switch", LinkShape::star}}};

void read_handshakes(Section section, Target& out, Faults& faults) {
  if (const TomlValue* local = section.node("local")) {
    if (const auto kind = one_of(*local, section.key_path("local"), local_names, faults)) out.local = *kind;
  }
  if (const TomlValue* crossing = section.node("crossing")) {
    if (const auto* list = crossing->as_array()) {
      for (const TomlValue& each : *list) {
        const auto kind = one_of(each, section.key_path("crossing"), crossing_names, faults);
        if (!kind) continue;
        if (std::find(out.crossing.begin(), out.crossing.end(), *kind) != out.crossing.end()) {
          faults.at(place_of(each), Code::RDU2006, "'{}' stands twice in '{}'", *each.as_string(),
                    section.key_path("crossing"));
        } else {
          out.crossing.push_back(*kind);
        }
      }
    } else {
      section.wrong_type(*crossing, "crossing", "an array");
    }
  }
  section.finish();
}

std::uint32_t read_machine(Section section, Target& out, Faults& faults) {
  std::uint32_t node_chips = 0;
  section.exact("clock_ghz", {0.001, 100}, out.clock_ghz);
  section.whole("chips", {1, 65536}, out.chips);
  const auto per_node = section.number("node_chips", {1, 65536}, true);
  if (per_node) node_chips = static_cast<std::uint32_t>(per_node->value.num);
  section.whole("native_tile_elements", {1, 1024}, out.native_tile);
  section.finish();
  if (out.chips != 0 && node_chips != 0 && out.chips % node_chips != 0) {
    faults.at(per_node->place, Code::RDU2006, "nodes of {} chips do not divide the machine's {}", node_chips,
              out.chips);
    node_chips = 0;
  }
  out.node_chips = node_chips;
  return node_chips;
}

void read_mesh(Section section, Target& out, Faults& faults) {
  section.whole("width_sites", {1, 65536}, out.mesh.width);
  section.whole("height_sites", {1, 65536}, out.mesh.height);
  section.finish();
  const std::uint64_t sites = std::uint64_t{out.mesh.width} * out.mesh.height;
  if (sites > max_sites) {
    faults.at(section.place(), Code::RDU2006, "a mesh of {} sites, more than {}", sites, max_sites);
  }
}

void read_site(Section section, Target& out, Faults& faults) {
  SiteResources& s = out.site;
  section.whole("pcu_contexts", {1, 1024}, s.pcu_contexts);
  section.whole("vector_inputs", {1, 1024}, s.vector_inputs);
  section.whole("vector_outputs", {1, 1024}, s.vector_outputs);
  section.whole("movement_engines", {1, 1024}, s.movement_engines);
  section.whole("buffers", {1, 65536}, s.buffers);
  section.whole("semaphores", {0, 65536}, s.semaphores);
  section.whole("semaphore_bits", {0, 64}, s.semaphore_bits);
  if (section.has("page_counter_bits")) section.whole("page_counter_bits", {1, 64}, s.page_counter_bits);
  section.whole("token_bits", {0, 64}, s.token_bits);
  section.finish();
  const auto provides = [&](CrossingHandshake h) {
    return std::find(out.crossing.begin(), out.crossing.end(), h) != out.crossing.end();
  };
  if (!section.present()) return;
  if ((s.semaphores == 0) != (s.semaphore_bits == 0)) {
    faults.at(section.place(), Code::RDU2006, "{} semaphores of {} bits: both are zero, or neither", s.semaphores,
              s.semaphore_bits);
  }
  if (provides(CrossingHandshake::semaphore) && s.semaphores == 0) {
    faults.at(section.place(), Code::RDU2006, "the crossing hand-off 'semaphore' needs semaphores");
  }
  if (provides(CrossingHandshake::token) && s.token_bits == 0) {
    faults.at(section.place(), Code::RDU2006, "the crossing hand-off 'token' needs a credit counter of at least 1 bit");
  }
}

void read_by_dtype(Section section, std::array<std::uint32_t, all_dtypes.size()>& out) {
  for (DType t : all_dtypes) section.whole(name_of(t), {0, 1e6}, out[static_cast<std::size_t>(t)]);
  section.finish();
}

void read_pcu(Section section, PcuParameters& out) {
  section.whole("lanes", {1, 4096}, out.lanes);
  section.whole("stages", {1, 4096}, out.stages);
  section.whole("systolic_fill_cycles", any_cycles, out.systolic_fill_cycles);
  section.whole("systolic_drain_cycles", any_cycles, out.systolic_drain_cycles);
  section.whole("simd_latency_cycles", any_cycles, out.simd_latency_cycles);
  read_by_dtype(section.section("macs_per_cycle"), out.macs_per_cycle);
  read_by_dtype(section.section("simd_ops_per_cycle"), out.simd_ops_per_cycle);
  section.finish();
}

void read_pmu(Section section, PmuParameters& out) {
  section.whole("capacity_bytes", any_bytes, out.capacity_bytes);
  section.whole("banks", {1, 65536}, out.banks);
  section.exact("read_bytes_per_cycle", any_rate, out.read_bytes_per_cycle);
  section.exact("write_bytes_per_cycle", any_rate, out.write_bytes_per_cycle);
  section.whole("access_latency_cycles", any_cycles, out.access_latency_cycles);
  section.finish();
}

void read_network(Section section, NetworkParameters& out) {
  section.exact("link_bytes_per_cycle", any_rate, out.link_bytes_per_cycle);
  section.whole("hop_cycles", any_cycles, out.hop_cycles);
  section.whole("endpoint_cycles", any_cycles, out.endpoint_cycles);
  section.whole("control_hop_cycles", any_cycles, out.control_hop_cycles);
  section.whole("flit_bytes", {1, 65536}, out.flit_bytes);
  if (section.has("virtual_channels")) section.whole("virtual_channels", {1, 16}, out.virtual_channels);
  if (section.has("buffer_flits")) section.whole("buffer_flits", {1, 4096}, out.buffer_flits);
  section.finish();
}

void read_positions(Section& section, const Mesh& mesh, AgcuParameters& out, std::vector<Provenance>& numbers,
                    Faults& faults) {
  Provenance from;
  const TomlValue* entry = section.sourced("at", false, from);
  if (entry == nullptr) return;
  const TomlValue& value = *entry->find("value");
  const TomlArray* list = value.as_array();
  if (list == nullptr || list->empty()) {
    section.wrong_type(value, "at.value", "an array of positions [x, y], at least one,");
    return;
  }
  if (list->size() > max_sites) {
    faults.at(place_of(value), Code::RDU2006, "{} positions, more than {}", list->size(), max_sites);
    return;
  }
  for (const TomlValue& each : *list) {
    const TomlArray* pair = each.as_array();
    const bool two = pair != nullptr && pair->size() == 2;
    const std::int64_t* whole_x = two ? (*pair)[0].as_integer() : nullptr;
    const std::int64_t* whole_y = two ? (*pair)[1].as_integer() : nullptr;
    if (whole_x == nullptr || whole_y == nullptr) {
      faults.at(place_of(each), Code::RDU2005, "'{}' has {} that is not a position [x, y]", from.key, type_of(each));
      continue;
    }
    const std::int64_t x = *whole_x;
    const std::int64_t y = *whole_y;
    if (x < 0 || y < 0 || x >= mesh.width || y >= mesh.height) {
      faults.at(place_of(each), Code::RDU2006, "'{}' has ({}, {}), off the mesh of {} x {}", from.key, x, y, mesh.width,
                mesh.height);
      continue;
    }
    out.at.push_back({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)});
  }
  from.value = fmt::format("{} positions", out.at.size());
  numbers.push_back(std::move(from));
}

void read_agcu(Section section, const Mesh& mesh, AgcuParameters& out, std::vector<Provenance>& numbers,
               Faults& faults) {
  read_positions(section, mesh, out, numbers, faults);
  section.exact("bytes_per_cycle", any_rate, out.bytes_per_cycle);
  section.whole("latency_cycles", any_cycles, out.latency_cycles);
  section.whole("outstanding_bursts", {1, 1e6}, out.outstanding_bursts);
  section.whole("burst_bytes", {1, 1e9}, out.burst_bytes);
  section.finish();
}

// What small and scattered accesses cost: all of it, or nothing.
void read_banks(Section& section, const Fraction& clock_ghz, MemoryParameters& out) {
  constexpr std::string_view keys[] = {"banks", "row_cycle_ns", "activation_ns", "access_bytes", "queue_requests"};
  if (std::none_of(std::begin(keys), std::end(keys), [&](std::string_view key) { return section.has(key); })) return;
  section.whole("banks", {1, 65536}, out.banks);
  section.cycles("row_cycle_ns", any_ns, clock_ghz, Section::Round::up, out.row_cycle_cycles);
  section.exact_cycles("activation_ns", any_ns, clock_ghz, out.activation_cycles);
  section.whole("access_bytes", {1, 65536}, out.access_bytes);
  section.whole("queue_requests", {1, 65536}, out.queue_requests);
}

void read_memory(Section section, const Fraction& clock_ghz, MemoryParameters& out, Faults& faults) {
  using Round = Section::Round;
  out.technology = section.string("technology");
  section.whole("capacity_bytes", any_bytes, out.capacity_bytes);
  section.whole("channels", {1, 65536}, out.channels);
  section.rate("gb_per_s", clock_ghz, out.channels, out.channel_bytes_per_cycle);
  section.whole("interleave_bytes", {1, 1e9}, out.interleave_bytes);
  section.cycles("latency_ns", any_ns, clock_ghz, Round::up, out.latency_cycles);
  section.whole("row_bytes", {1, 1e9}, out.row_bytes);
  section.cycles("row_miss_ns", any_ns, clock_ghz, Round::up, out.row_miss_cycles);
  section.cycles("turnaround_ns", any_ns, clock_ghz, Round::up, out.turnaround_cycles);
  section.cycles("refresh_interval_ns", {1, 1e9}, clock_ghz, Round::down, out.refresh_interval_cycles);
  section.cycles("refresh_ns", any_ns, clock_ghz, Round::up, out.refresh_cycles);
  read_banks(section, clock_ghz, out);
  section.finish();
  if (out.refresh_interval_cycles != 0 && out.refresh_cycles >= out.refresh_interval_cycles) {
    faults.at(section.place(), Code::RDU2006, "refresh takes {} of every {} cycles: nothing is left",
              out.refresh_cycles, out.refresh_interval_cycles);
  }
}

void read_host(Section section, const Fraction& clock_ghz, HostParameters& out) {
  section.cycles("section_launch_ns", any_ns, clock_ghz, Section::Round::up, out.section_launch_cycles);
  section.cycles("argument_load_ns", any_ns, clock_ghz, Section::Round::up, out.argument_load_cycles);
  if (section.has("result_bytes")) section.whole("result_bytes", {1, 64}, out.result_bytes);
  section.finish();
}

// What only a switch has.
void read_switch(Section& section, const Fraction& clock_ghz, LinkGroup& group, Faults& faults) {
  section.cycles("switch_latency_ns", any_ns, clock_ghz, Section::Round::up, group.switch_cycles);
  const auto room = section.number("buffer_bytes", any_bytes, true);
  if (!room) return;
  group.room_bytes = room->value.num;
  if (group.room_bytes < group.signal_bytes)
    faults.at(room->place, Code::RDU2006, "'{}' is {}, too little for a signal of {} bytes",
              section.key_path("buffer_bytes"), group.room_bytes, group.signal_bytes);
}

// A link that never breaks anything says nothing of it.
void read_errors(Section& section, LinkGroup& group) {
  constexpr std::string_view keys[] = {"error_rate", "error_seed", "most_retries"};
  if (std::none_of(std::begin(keys), std::end(keys), [&](std::string_view key) { return section.has(key); })) return;
  section.exact("error_rate", {0, 1}, group.error_rate);
  section.whole("error_seed", {0, 1e15}, group.error_seed);
  section.whole("most_retries", {0, 1e6}, group.most_retries);
}

void read_links(Section& root, std::uint32_t node_chips, Target& out, Faults& faults) {
  if (!root.has("links")) return;
  const TomlValue& node = *root.peek("links");
  const TomlArray* list = node.as_array();
  if (list == nullptr) {
    root.wrong_type(node, "links", "an array of tables, [[links]],");
    return;
  }
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const TomlValue& each = (*list)[i];
    const std::string path = fmt::format("links[{}]", i);
    if (each.as_table() == nullptr) {
      faults.at(place_of(each), Code::RDU2005, "'{}' is {}, where a table is asked for", path, type_of(each));
      continue;
    }
    Section section(&each, path, place_of(each), faults, out.numbers);
    const std::size_t before = faults.count();
    LinkGroup group;
    if (const TomlValue* joins = section.node("joins")) {
      if (const auto scope = one_of(*joins, section.key_path("joins"), scope_names, faults)) group.scope = *scope;
    }
    if (const TomlValue* shape = section.node("shape")) {
      if (const auto kind = one_of(*shape, section.key_path("shape"), shape_names, faults)) group.shape = *kind;
    }
    section.rate("gb_per_s", out.clock_ghz, 1, group.bytes_per_cycle);
    if (section.has("back_gb_per_s"))
      section.rate("back_gb_per_s", out.clock_ghz, 1, group.back_bytes_per_cycle.emplace());
    // At least one cycle: what happens in a cycle is seen in the next, and chips are simulated apart for that long.
    const auto latency = section.number("latency_ns", any_ns, false);
    if (latency && out.clock_ghz.num != 0) {
      const auto scaled = multiply(latency->value, out.clock_ghz);
      if (scaled) group.latency_cycles = ceil_div(scaled->num, Fraction{scaled->den, 1});
      if (!scaled || group.latency_cycles == 0) {
        faults.at(latency->place, Code::RDU2006, "the latency of a link is at least one cycle, exactly");
      }
    }
    section.whole("signal_bytes", {1, 65536}, group.signal_bytes);
    if (group.shape == LinkShape::star) read_switch(section, out.clock_ghz, group, faults);
    read_errors(section, group);
    section.finish();
    if (faults.count() != before || out.chips == 0 || node_chips == 0) continue;
    total += link_count(group, out.chips, node_chips);
    if (total > max_links) {
      faults.at(section.place(), Code::RDU2006, "{} directed links, more than {}", total, max_links);
      return;
    }
    append_links(group, out.chips, node_chips, out.switches, out.links);
  }
}

}  // namespace

Result<Target> read_target(const std::string& text, const std::string& where) {
  Faults faults(where);
  if (text.size() > max_text_bytes) {
    faults.at({}, Code::RDU2002, "{} bytes, more than a target's limit of {}", text.size(), max_text_bytes);
    return faults.take();
  }
  if (!is_utf8(text) || text.find('\0') != std::string::npos) {
    faults.at({}, Code::RDU2002, "the text is not UTF-8");
    return faults.take();
  }
  const auto parsed = parse_toml(text, where, Code::RDU2002);
  if (!parsed.ok()) return parsed.diagnostics();

  Target out;
  out.text = text;
  out.sha256 = sha256(text);
  Section root(&*parsed, "", {}, faults, out.numbers);
  read_name(root, out, faults);
  read_handshakes(root.section("handshakes"), out, faults);
  const std::uint32_t node_chips = read_machine(root.section("machine"), out, faults);
  read_mesh(root.section("mesh"), out, faults);
  read_site(root.section("site"), out, faults);
  read_pcu(root.section("pcu"), out.pcu);
  read_pmu(root.section("pmu"), out.pmu);
  read_network(root.section("network"), out.network);
  read_agcu(root.section("agcu"), out.mesh, out.agcu, out.numbers, faults);
  read_memory(root.section("hbm"), out.clock_ghz, out.hbm, faults);
  if (root.has("ddr")) read_memory(root.section("ddr"), out.clock_ghz, out.ddr.emplace(), faults);
  read_host(root.section("host"), out.clock_ghz, out.host);
  read_links(root, node_chips, out, faults);
  root.finish();
  if (faults.count() != 0) return faults.take();

  if (const auto lonely = unreachable_chip(out.chips, out.switches, out.links)) {
    faults.at({}, Code::RDU2008, "no links lead from chip 0 to chip {} and back ({} chips, {} directed links)",
              lonely->value, out.chips, out.links.size());
    return faults.take();
  }
  return out;
}

}  // namespace rdusim
