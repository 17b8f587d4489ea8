// A machine, as its target file describes it (models/targets/*.toml; the page beside them says what each key means).
//
// Every number names its unit. Rates are exact fractions per fabric cycle, worked out once when the file is read. A
// target is immutable once read; the program carries its text whole, so that a run needs no file but prog.bin.
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/ids.h"
#include "compiler/support/result.h"
#include "compiler/support/units.h"

namespace rdusim {

enum class LocalHandshake : std::uint8_t { valid_ready, circular_buffer };
enum class CrossingHandshake : std::uint8_t { token, semaphore, barrier };

struct Mesh {
  std::uint32_t width = 0;   // sites along x
  std::uint32_t height = 0;  // sites along y
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

struct Position {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

// What one site gives to the stages on it.
struct SiteResources {
  std::uint32_t pcu_contexts = 0;   // compute stages that its PCU can host; their firings serialise
  std::uint32_t vector_inputs = 0;  // pages of different ports that one firing of a compute stage may take
  std::uint32_t vector_outputs = 0;
  std::uint32_t movement_engines = 0;  // loads, stores and receives; each serialises the stages on it
  std::uint32_t buffers = 0;           // paged buffers in its PMU (circular buffer ids, N-buffer contexts)
  std::uint32_t semaphores = 0;
  std::uint32_t semaphore_bits = 0;     // width of a semaphore; 0 where there are none
  std::uint32_t page_counter_bits = 0;  // of a circular buffer's pushed and popped; 0: not stated, any number fits
  std::uint32_t token_bits = 0;         // width of a credit counter
};

// law: models/units/pcu.h
struct PcuParameters {
  std::uint32_t lanes = 0;
  std::uint32_t stages = 0;
  std::array<std::uint32_t, all_dtypes.size()> macs_per_cycle{};      // by dtype of the operands; 0: cannot
  std::array<std::uint32_t, all_dtypes.size()> simd_ops_per_cycle{};  // element-wise operations, by dtype of the result
  Cycles systolic_fill_cycles = 0;                                    // first operand in to array full
  Cycles systolic_drain_cycles = 0;                                   // last operand in to last result out of the tail
  Cycles simd_latency_cycles = 0;                                     // header + stages + tail

  std::uint32_t macs(DType t) const { return macs_per_cycle[static_cast<std::size_t>(t)]; }
  std::uint32_t simd(DType t) const { return simd_ops_per_cycle[static_cast<std::size_t>(t)]; }
  // Element-wise operations a cycle with `in_use` of the lanes at work (0: all); a type without a rate takes a cycle for
  // each.
  Fraction simd_rate(DType t, std::uint32_t in_use) const {
    const std::uint64_t all = simd(t) != 0 ? simd(t) : 1;
    return in_use == 0 || lanes == 0 ? Fraction{all, 1} : Fraction{all * in_use, lanes};
  }
  // Multiply-accumulates a cycle: of the array, or, with `in_use` not 0, of so many lanes of the SIMD pipeline.
  Fraction mac_rate(DType operand, DType accumulator, std::uint32_t in_use) const {
    return in_use != 0 ? simd_rate(accumulator, in_use) : Fraction{macs(operand) != 0 ? macs(operand) : 1, 1};
  }
  // From the last operand of a product to its result: the array's fill and drain, or the SIMD pipeline and the reduction
  // tree over the lanes in use.
  Cycles product_latency(std::uint32_t in_use) const {
    if (in_use == 0) return systolic_fill_cycles + systolic_drain_cycles;
    return simd_latency_cycles + static_cast<Cycles>(std::bit_width(in_use));
  }
  // Rows of a product that take time, of a page of `rows`: whole groups of `stages`, the narrower side of the array,
  // where those divide a tile; else whole tiles. (An array of lanes x stages that keeps its sums in place works on a
  // block of so many results at a time.)
  std::uint64_t rows_taken(std::uint64_t rows, std::uint64_t tile) const {
    const std::uint64_t group = stages != 0 && tile % stages == 0 ? stages : tile;
    return (rows + group - 1) / group * group;
  }
};

// law: models/units/pmu.h
struct PmuParameters {
  Bytes capacity_bytes = 0;
  std::uint32_t banks = 0;
  Fraction read_bytes_per_cycle;
  Fraction write_bytes_per_cycle;
  Cycles access_latency_cycles = 0;
};

// The on-chip network. law: models/units/network.h
struct NetworkParameters {
  Fraction link_bytes_per_cycle;  // one direction of one mesh link, vector network
  Cycles hop_cycles = 0;          // head of a page from switch to switch
  Cycles endpoint_cycles = 0;     // unit to its switch, and switch to unit, each
  Cycles control_hop_cycles = 0;  // token, credit or barrier wire, a hop
  Bytes flit_bytes = 0;
  // Flit level only.
  std::uint32_t virtual_channels = 4;
  std::uint32_t buffer_flits = 8;  // of a virtual channel, at a switch's input
};

// law: models/units/agcu.h
struct AgcuParameters {
  std::vector<Position> at;  // AGCU i stands beside the switch at at[i]
  Fraction bytes_per_cycle;  // each way
  Cycles latency_cycles = 0;
  std::uint32_t outstanding_bursts = 0;
  Bytes burst_bytes = 0;
};

// A memory outside the mesh. law: models/units/memory.h
struct MemoryParameters {
  std::string technology;  // "HBM2e, 4 stacks of 8 channels of 128 bits"
  Bytes capacity_bytes = 0;
  std::uint32_t channels = 0;
  Fraction channel_bytes_per_cycle;  // peak of one channel
  Bytes interleave_bytes = 0;        // consecutive addresses on one channel
  Cycles latency_cycles = 0;         // request to first byte, unloaded
  Bytes row_bytes = 0;
  Cycles row_miss_cycles = 0;    // exposed when a burst opens a row
  Cycles turnaround_cycles = 0;  // bus, between a read and a write
  Cycles refresh_interval_cycles = 0;
  Cycles refresh_cycles = 0;  // channel busy, each interval
  // What small and scattered accesses cost besides. 0 banks: rows are always open in time, but for row_miss_cycles.
  std::uint32_t banks = 0;              // of a channel
  Cycles row_cycle_cycles = 0;          // between two rows of one bank
  Fraction activation_cycles = {0, 1};  // between two rows of a channel, whatever their banks
  Bytes access_bytes = 1;               // the least that is transferred, and its alignment
  std::uint32_t queue_requests = 1;     // accesses that wait at a channel, among which reads and writes are grouped

  // What streaming reads can sustain over all channels, after rows and refresh, from the numbers above; bytes a cycle.
  Fraction sustainable_bytes_per_cycle() const;
  Fraction peak_bytes_per_cycle() const;
  // Addresses that far apart, or a multiple of it, lie in one channel and equally far from the start of a row.
  Bytes stripe_bytes() const;
};

// One direction of one link, between two chips or between a chip and a switch. law: models/units/chip_link.h
struct ChipLinkParameters {
  LinkId id;        // dense
  ChipId from, to;  // a switch has a number from Target::chips on
  Fraction bytes_per_cycle;
  Cycles latency_cycles = 0;       // into a switch: to where it sends on
  Bytes signal_bytes = 0;          // what a credit, ready, valid or barrier message occupies
  Bytes room_bytes = 0;            // into a switch: what it takes in before it has sent on; else 0
  Fraction error_rate = {0, 1};    // share of what it carries that comes broken, and is sent again
  std::uint32_t most_retries = 0;  // how often; then the link is given up
  std::uint64_t error_seed = 0;
  friend bool operator==(const ChipLinkParameters&, const ChipLinkParameters&) = default;
};

struct HostParameters {
  Cycles section_launch_cycles = 0;
  Cycles argument_load_cycles = 0;
  Bytes result_bytes = 0;  // of an output that the host reads from a register of the machine; 0: it has none
};

// A number of a target, where it is from, and how sure it is.
struct Provenance {
  std::string key;    // "pcu.macs_per_cycle.bf16"
  std::string value;  // as written in the file
  std::string source;
  bool published = false;                          // else assumed
  std::optional<std::pair<double, double>> range;  // of an assumed number
};

struct Target {
  std::string name;
  std::string summary;  // one line: what machine this is
  std::string text;     // the TOML it was read from, whole
  std::string sha256;   // of text

  Fraction clock_ghz;
  std::uint32_t chips = 0;        // sockets of the machine
  std::uint32_t switches = 0;     // between them
  std::uint32_t node_chips = 0;   // of a node, which divide `chips`: chip i is in node i / node_chips; 0: no nodes
  std::uint32_t native_tile = 0;  // rows and columns of a tile
  Mesh mesh;
  SiteResources site;
  PcuParameters pcu;
  PmuParameters pmu;
  NetworkParameters network;
  AgcuParameters agcu;
  MemoryParameters hbm;
  std::optional<MemoryParameters> ddr;
  HostParameters host;
  LocalHandshake local = LocalHandshake::valid_ready;
  std::vector<CrossingHandshake> crossing;  // in order of preference; may be empty
  std::vector<ChipLinkParameters> links;    // all directed links of the topology
  std::vector<Provenance> numbers;

  std::uint32_t sites() const { return mesh.width * mesh.height; }
};

// Reads a target from TOML text. `where` names it in messages. Errors: RDU2002-RDU2008.
Result<Target> read_target(const std::string& text, const std::string& where);

// A shipped machine by name (the texts are built into the binary), or a file. Errors: RDU2001, RDU1001 and those above.
Result<Target> find_target(const std::string& name_or_file);
std::vector<std::string_view> shipped_targets();

// "chip3", or of a number from target.chips on "switch0".
std::string link_end(const Target& target, ChipId end);

// The links from chip `from` to chip `to` in order, fewest hops first, then least id; empty where from == to.
// Deterministic; the same for every message between the two. Requires both < target.chips.
std::vector<LinkId> route(const Target& target, ChipId from, ChipId to);

}  // namespace rdusim
