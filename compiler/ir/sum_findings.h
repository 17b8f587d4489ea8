// What an untimed run finds out about sums: what each page holds, and whether what stores receive is what the operators
// ask for.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/ir/partial_sums.h"
#include "compiler/ir/untimed_run.h"

namespace rdusim {

inline constexpr std::uint32_t no_box = std::numeric_limits<std::uint32_t>::max();

// What a page holds, as far as sums are concerned.
struct PageContent {
  enum class Kind : std::uint8_t {
    nothing,   // zeros: a buffer's initial pages, a constant of 0
    constant,  // one number everywhere
    data,      // elements of a tensor
    sum,       // partial sums that were added
    computed,  // made of whole values by something that is not a sum
    spoilt,    // a fault has been reported; what follows from it is not
  };
  Kind kind = Kind::nothing;
  std::uint32_t source = 0;    // data: tensor; sum: SumId; computed: the stage that made it
  std::uint32_t box = no_box;  // of the whole operand; no_box: any (nothing, constant)
  std::uint64_t begin = 0;     // the row-major elements of the box that are here: [begin, end)
  std::uint64_t end = 0;
};

// `content` cut to a chunk of it.
PageContent part_of(PageContent content, Chunk chunk);

// One for all runs of a program.
class SumFindings {
 public:
  SumFindings(const SpatialProgram& program, std::uint32_t native_tile);

  SumTable sums;

  // Boxes have numbers: the same box, the same number.
  std::uint32_t box_id(const ElementBox& box);
  const ElementBox& box(std::uint32_t id) const { return boxes_[id]; }
  std::uint64_t size(std::uint32_t id) const { return sizes_[id]; }  // elements
  // The place on chip of a movable page of `tensor` that a pattern names.
  std::uint32_t box_of(const AccessPattern& pattern, const Tensor& tensor, const TileBox& page);

  // Whose products a matmul stage adds: its operator's; where that is no matmul, and several stages multiply for it, a
  // number for each operand that is multiplied by a transposed one, and one for the others.
  OperatorId products_of(const Stage& stage) const { return products_[stage.id.value]; }

  // The contraction of `op` has `k` elements: first come, first kept; an operator graph comes before all.
  void contraction(OperatorId op, std::int64_t k) { contraction_.try_emplace(op.value, k); }
  // `stage` computes the partial sum `leaf`, for notes.
  void computes(const SumLeaf& leaf, StageId stage);

  // Whether the partials of every operator in `sum` are there exactly once, and no addend twice.
  bool complete(SumId sum) { return facts(sum).complete; }

  // Holds what `stage` stores as `chunk` of page `page` of `tensor` against what is due there.
  void check_stored(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk,
                    const PageContent& content);

  // Keeps the first fault of each code of each stage.
  void fault(Code code, StageId stage, std::string message, std::vector<Note> notes = {});

  // All faults, by code and stage; once, when all runs have ended. Adds the summation trees that no store has met.
  std::vector<SumFault> faults();

  // "[0,32)[64,96), elements [0,512) of it"
  std::string place(const PageContent& content) const;

 private:
  struct Facts {
    bool complete = false;
    bool single = false;           // partials of one operator, and nothing else
    std::optional<OperatorId> op;  // the first whose partials it holds
  };
  struct Tree {
    SumId sum;
    Chunk chunk;
    SummationTreeId id;
    bool met = false;
  };
  struct Trees {
    std::vector<Tree> all;
    std::multimap<SumId, std::size_t> by_sum;
    std::optional<StageId> store;  // the first that stores a sum of the operator
  };

  PageContent as_page_of_rows(const PageContent& content);
  bool moved(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk, const PageContent& content);
  void check_value(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk,
                   const PageContent& content);
  const Facts& facts(SumId sum);
  std::int64_t contraction_of(OperatorId op) const;
  OperatorId owner_of(OperatorId products) const;
  void report_incomplete(const Stage& stage, const Tensor& tensor, SumId sum);
  void check_order(const Stage& stage, const PageContent& content, OperatorId op);

  const SpatialProgram& p_;
  std::uint32_t native_tile_;
  std::map<ElementBox, std::uint32_t> box_ids_;
  std::vector<ElementBox> boxes_;
  std::vector<std::uint64_t> sizes_;
  std::vector<OperatorId> products_;                   // by stage
  std::map<std::uint32_t, std::int64_t> contraction_;  // by operator
  std::map<std::uint32_t, OperatorId> writer_of_operand_;
  std::map<std::uint32_t, std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, StageId>> computed_by_;
  std::map<std::uint32_t, Trees> trees_;  // by operator
  std::map<SumId, Facts> facts_;
  std::set<std::pair<Code, std::uint32_t>> seen_;
  std::vector<SumFault> faults_;
};

}  // namespace rdusim
