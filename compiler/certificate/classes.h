// Instances that do the same, moved.
//
// Instance i does what instance r does, translated, where every stage of theirs moves pages of the same extents, the
// operands' contraction ranges are the same, and one translation of rows and columns takes each page of r to that of i
// all the way from the loads to the stores. Executing r then proves i.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/certificate/subject.h"

namespace rdusim::certificate {

struct Classes {
  std::vector<std::uint32_t> representatives;  // rising; 0 is one
  std::vector<std::uint32_t> of;               // by instance: its representative

  // How many of the first n instances `representative` stands for.
  std::uint64_t weight(std::uint32_t representative, std::size_t n) const;
};

// Of the instances of a section's stages. Requires Subject::uniform.
Classes classes_of(const Subject& s, SectionId section);

}  // namespace rdusim::certificate
