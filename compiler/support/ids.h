// Identifiers of the parts of a program: dense, positional, one type each, so that a stage cannot be mistaken for a buffer.
//
// Element i of a list has id i. "None" is std::nullopt, never a special number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace rdusim {

template <class Tag>
struct Id {
  std::uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

using ChipId = Id<struct ChipTag>;
using TensorId = Id<struct TensorTag>;      // a program's tensor (a slice, once sharded)
using OperandId = Id<struct OperandTag>;    // an operator graph's tensor
using OperatorId = Id<struct OperatorTag>;
using CollectiveId = Id<struct CollectiveTag>;
using StageId = Id<struct StageTag>;
using BufferId = Id<struct BufferTag>;
using EdgeId = Id<struct EdgeTag>;
using SemaphoreId = Id<struct SemaphoreTag>;
using SectionId = Id<struct SectionTag>;
using GroupId = Id<struct GroupTag>;
using LinkId = Id<struct LinkTag>;          // a directed inter-chip link of the target
using WorkId = Id<struct WorkTag>;
using SummationTreeId = Id<struct SummationTreeTag>;
using AgcuId = Id<struct AgcuTag>;

}  // namespace rdusim

template <class Tag>
struct std::hash<rdusim::Id<Tag>> {
  std::size_t operator()(rdusim::Id<Tag> id) const noexcept { return id.value; }
};
