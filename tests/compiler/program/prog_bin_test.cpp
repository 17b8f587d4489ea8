#include "compiler/program/prog_bin.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "compiler/program/program_json.h"
#include "compiler/program/segments.h"
#include "compiler/support/file.h"
#include "tests/compiler/program/made_programs.h"
#include "tests/compiler/program/repaired.h"

namespace rdusim::prog_bin_test {
using made::small_program;
namespace pf = program_file;

namespace {

// The only code that decoding gives; fails the test where the bytes are accepted or where there are several.
Code refusal(std::string_view bytes) {
  const auto result = decode(bytes, "p.bin");
  REQUIRE(!result.ok());
  REQUIRE(result.diagnostics().list().size() == 1);
  CHECK(result.diagnostics().list().front().where == "p.bin");
  return result.diagnostics().list().front().code;
}

std::string message(std::string_view bytes) {
  const auto result = decode(bytes, "p.bin");
  REQUIRE(!result.ok());
  return result.diagnostics().list().front().message;
}

}  // namespace

TEST_CASE("a program in which every field is set comes back equal, and encodes to the same bytes") {
  const SpatialProgram program = made::every_field();
  const std::string bytes = encode(program);
  const auto back = decode(bytes, "p.bin");
  INFO(back.diagnostics().to_text());
  REQUIRE(back.ok());
  CHECK(*back == program);
  CHECK(encode(*back) == bytes);
}

TEST_CASE("the program in which every field is set has every kind of stage and fill, and every part") {
  const SpatialProgram program = made::every_field();
  std::vector<bool> kinds(std::variant_size_v<StageKind>);
  for (const Stage& s : program.stages) kinds[s.kind.index()] = true;
  CHECK(std::count(kinds.begin(), kinds.end(), false) == 0);
  std::vector<bool> fills(std::variant_size_v<Fill>);
  for (const Tensor& t : program.tensors) fills[t.fill.index()] = true;
  CHECK(std::count(fills.begin(), fills.end(), false) == 0);
  CHECK(program.operators.has_value());
  CHECK(program.placement.has_value());
  CHECK(program.memory.has_value());
  CHECK(program.schedule.has_value());
  CHECK(program.certificate.has_value());
}

TEST_CASE("whatever is changed in a program changes its bytes, and the change comes back") {
  const SpatialProgram program = made::every_field();
  const std::string bytes = encode(program);
  made::each_change(program, [&](const SpatialProgram& other) {
    const std::string other_bytes = encode(other);
    CHECK(other_bytes != bytes);
    const auto back = decode(other_bytes, "p.bin");
    REQUIRE(back.ok());
    CHECK(*back == other);
    CHECK(!(*back == program));
  });
}

TEST_CASE("an empty program and an empty part are kept apart") {
  const SpatialProgram none;
  SpatialProgram empty;
  empty.operators.emplace();
  empty.placement.emplace();
  empty.memory.emplace();
  empty.schedule.emplace();
  empty.certificate.emplace();
  const auto back_none = decode(encode(none), "p.bin");
  const auto back_empty = decode(encode(empty), "p.bin");
  REQUIRE(back_none.ok());
  REQUIRE(back_empty.ok());
  CHECK(*back_none == none);
  CHECK(*back_empty == empty);
}

TEST_CASE("any program comes back equal, and equal programs have equal bytes") {
  CHECK(made::of_any_program([](const SpatialProgram& program) {
    const std::string bytes = encode(program);
    const auto back = decode(bytes, "p.bin");
    RC_ASSERT(back.ok());
    RC_ASSERT(*back == program);
    RC_ASSERT(encode(*back) == bytes);
    RC_ASSERT(encode(SpatialProgram(program)) == bytes);
    // Equal as numbers is not enough: JSON tells -0.0 from 0.0.
    RC_ASSERT(to_text(to_json(*back)) == to_text(to_json(program)));
  }));
}

TEST_CASE("a NaN is written as the one NaN") {
  SpatialProgram one = small_program();
  SpatialProgram other = one;
  one.tensors[0].fill = ConstantFill{std::bit_cast<double>(std::uint64_t{0xFFF8000000000001U}), 0};
  other.tensors[0].fill = ConstantFill{std::numeric_limits<double>::quiet_NaN(), 0};
  CHECK(encode(one) == encode(other));
}

TEST_CASE("a file of schema version 1 is read as ever, and is what would be written today") {
  // Where this fails, the schema was changed in a way that needs a new version: users have such files.
  const std::string path = std::string(RDUSIM_SOURCE_DIR) + "/tests/compiler/program/small-v1.prog.bin";
  const auto file = read_file(path, 1U << 20U);
  REQUIRE(file.ok());
  const auto program = decode(*file, path);
  INFO(program.diagnostics().to_text());
  REQUIRE(program.ok());
  CHECK(*program == small_program());
  // All but the compiler's version, which may rise, and the checksum over it.
  std::string now = encode(small_program());
  now.replace(24, pf::version_bytes, *file, 24, pf::version_bytes);
  CHECK(made::repaired(now) == *file);
}

TEST_CASE("a zero keeps its sign") {
  SpatialProgram program = small_program();
  const auto negative = [](double number) { return number == 0 && std::signbit(number); };
  program.tensors[0].fill = ConstantFill{-0.0, 0};
  auto back = decode(encode(program), "p.bin");
  REQUIRE(back.ok());
  CHECK(negative(std::get<ConstantFill>(back->tensors[0].fill).value));
  program.tensors[0].fill = RandomFill{1, -0.0, -0.0};
  back = decode(encode(program), "p.bin");
  REQUIRE(back.ok());
  CHECK(negative(std::get<RandomFill>(back->tensors[0].fill).low));
  CHECK(negative(std::get<RandomFill>(back->tensors[0].fill).high));
  program.tensors[0].fill = ValuesFill{{}, {-0.0}};
  back = decode(encode(program), "p.bin");
  REQUIRE(back.ok());
  CHECK(negative(std::get<ValuesFill>(back->tensors[0].fill).floats[0]));
  Generic generic;
  generic.bodies = {{1, {{ExprOp::constant, 0, -0.0}}}};
  program.stages[0].kind = generic;
  back = decode(encode(program), "p.bin");
  REQUIRE(back.ok());
  CHECK(negative(std::get<Generic>(back->stages[0].kind).bodies[0].value[0].number));
}

TEST_CASE("bytes are read wherever they lie in memory") {
  const SpatialProgram program = made::every_field();
  const std::string bytes = encode(program);
  for (std::size_t shift = 1; shift < 8; ++shift) {
    const std::string moved = std::string(shift, '#') + bytes;
    const auto back = decode(std::string_view(moved).substr(shift), "p.bin");
    REQUIRE(back.ok());
    CHECK(*back == program);
  }
}

TEST_CASE("a list that is long is cut into pieces, and comes back whole") {
  SpatialProgram program = small_program();
  Placement placement;
  for (std::size_t g = 0; g < 64; ++g) {
    Group group;
    group.id = GroupId{g};
    for (std::uint32_t s = 0; s < 30000; ++s) group.sites.push_back({ChipId{g}, {s, s + 1}});
    placement.groups.push_back(std::move(group));
    placement.work.push_back({StageId{g}, WorkId{g}, {{g}, {1, 2, 3}}});
  }
  program.placement = placement;
  for (std::size_t i = 1; i < 300000; ++i) {
    Buffer buffer = program.buffers[0];
    buffer.id = BufferId{i};
    buffer.name = "a buffer of some name that takes room " + std::to_string(i);
    program.buffers.push_back(buffer);
  }
  for (std::size_t i = 0; i < 1100000; ++i) program.semaphores.push_back({SemaphoreId{i}, GroupId{i}, 1, 4});
  const std::string bytes = encode(program);
  const auto segments = pf::split(bytes, prog_bin_version, "p.bin");
  REQUIRE(segments.ok());
  const auto pieces = [&](pf::SegmentKind kind) {
    return std::count_if(segments->begin(), segments->end(), [&](const auto& s) { return s.kind == kind; });
  };
  CHECK(pieces(pf::SegmentKind::placement) == 2);
  CHECK(pieces(pf::SegmentKind::buffers) == 2);
  CHECK(pieces(pf::SegmentKind::semaphores) == 2);
  CHECK(pieces(pf::SegmentKind::stages) == 1);
  const auto back = decode(bytes, "p.bin");
  REQUIRE(back.ok());
  CHECK(*back == program);
}

TEST_CASE("a site costs no more than 20 bytes, and an instance of a load no more than 12") {
  SpatialProgram program = small_program();
  const std::size_t before = encode(program).size();
  Group group;
  for (std::uint32_t s = 0; s < 1000; ++s) {
    group.sites.push_back({ChipId{}, {s % 32, s / 32}});
    group.agcus.push_back(AgcuId{std::size_t{s % 16}});
  }
  program.placement.emplace().groups = {group};
  const std::size_t placed = encode(program).size();
  CHECK(placed - before < 20 * 1000);
  auto& load = std::get<Load>(program.stages[0].kind);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    load.pattern.first.push_back({i, 2 * i});
    load.multicast_set.push_back(static_cast<std::uint32_t>(i / 4));
  }
  CHECK(encode(program).size() - placed < 12 * 1000 + 100);
}

TEST_CASE("a file cut off anywhere is refused as truncated") {
  const std::string bytes = encode(small_program());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CAPTURE(n);
    CHECK(refusal(std::string_view(bytes).substr(0, n)) == Code::RDU5003);
  }
  CHECK(decode(bytes, "p.bin").ok());
}

TEST_CASE("a file with a bit flipped anywhere is refused") {
  const std::string bytes = encode(small_program());
  const std::size_t header = made::number_at(bytes, 12, 4);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string altered = bytes;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    const auto result = decode(altered, "p.bin");
    CAPTURE(bit);
    REQUIRE(!result.ok());
    // In a segment, it is the segment's checksum that tells; between segments, the padding.
    const Code code = result.diagnostics().list().front().code;
    if (bit / 8 >= header) CHECK((code == Code::RDU5004 || code == Code::RDU5005));
  }
}

TEST_CASE("bytes after the end are refused") {
  CHECK(refusal(encode(small_program()) + '\0') == Code::RDU5005);
}

TEST_CASE("what is no program is refused as that") {
  CHECK(refusal("PK\x03\x04") == Code::RDU5001);
  CHECK(refusal("{\"schema\": \"rdusim.program/1\"}") == Code::RDU5001);
  CHECK(refusal("RDUSIMPC") == Code::RDU5001);
  CHECK(refusal("rdusimpb and more bytes that do not matter") == Code::RDU5001);
}

TEST_CASE("another version is refused with both versions and the writer's name") {
  const SpatialProgram program = small_program();
  for (std::uint32_t version : {0U, prog_bin_version + 1, 0xFFFFFFFFU}) {
    std::string bytes = encode(program);
    made::set_number(bytes, 8, 4, version);
    bytes.replace(24, pf::version_bytes, std::string("9.8.7\n") + std::string(10, '\0'));
    CHECK(refusal(bytes) == Code::RDU5002);
    CHECK(message(bytes).find("schema version " + std::to_string(version)) != std::string::npos);
    CHECK(message(bytes).find("9.8.7?") != std::string::npos);
    // Its header may be shorter or longer than ours.
    CHECK(refusal(bytes.substr(0, 12)) == Code::RDU5002);
  }
}

TEST_CASE("sizes that are declared and not there are refused before memory is taken") {
  const std::string bytes = encode(small_program());
  constexpr std::uint64_t huge[] = {
      0,           1,           0x7FFFFFFF,         0x80000000,         0xFFFFFFFF,
      0x100000000, 1ULL << 62U, (1ULL << 63U) - 16, 0xFFFFFFFFFFFFFFF0, 0xFFFFFFFFFFFFFFFF};
  struct Field {
    std::size_t at, size;
  };
  // Header's length, file's length, segments, reserved, then of two entries: kind, reserved, offset, length.
  const std::size_t first = pf::fixed_bytes;
  const std::size_t second = first + pf::entry_bytes;
  for (const Field field : {Field{12, 4},
                            {16, 8},
                            {40, 4},
                            {44, 4},
                            {first, 4},
                            {first + 4, 4},
                            {first + 8, 8},
                            {first + 16, 8},
                            {second, 4},
                            {second + 4, 4},
                            {second + 8, 8},
                            {second + 16, 8}}) {
    for (std::uint64_t value : huge) {
      std::string altered = bytes;
      made::set_number(altered, field.at, field.size, value);
      if (altered == bytes) continue;
      altered = made::repaired(altered);
      CAPTURE(field.at);
      CAPTURE(value);
      const Code code = refusal(altered);
      CHECK((code == Code::RDU5005 || code == Code::RDU5003 || code == Code::RDU5004));
    }
  }
}

TEST_CASE("segments out of order, twice, or of no kind that exists are refused") {
  const std::string bytes = encode(small_program());
  const auto segments = pf::split(bytes, prog_bin_version, "p.bin");
  REQUIRE(segments.ok());
  std::vector<pf::Segment> parts;
  for (const auto& s : *segments) parts.push_back({s.kind, std::string(s.bytes)});
  REQUIRE(pf::join(parts, prog_bin_version) == bytes);
  const auto refused = [](std::vector<pf::Segment> list) { return refusal(pf::join(list, prog_bin_version)); };

  CHECK(refused({}) == Code::RDU5005);
  CHECK(refused({parts.begin() + 1, parts.end()}) == Code::RDU5005);
  auto swapped = parts;
  std::swap(swapped[1], swapped[2]);
  CHECK(refused(swapped) == Code::RDU5005);
  auto twice = parts;
  twice.insert(twice.begin(), parts[0]);
  CHECK(refused(twice) == Code::RDU5005);
  auto unknown = parts;
  unknown.push_back({static_cast<pf::SegmentKind>(16), parts[0].bytes});
  CHECK(refused(unknown) == Code::RDU5005);
  auto other_root = parts;
  other_root[1].bytes.clear();
  CHECK(refused(other_root) == Code::RDU5005);
  // A list's second piece goes on where the first ended.
  auto more = parts;
  more.insert(more.begin() + 2, parts[1]);
  const auto joined = decode(pf::join(more, prog_bin_version), "p.bin");
  REQUIRE(joined.ok());
  CHECK(joined->tensors.size() == 2);
}

TEST_CASE("bytes that belong to no segment are refused") {
  const std::string bytes = encode(small_program());
  const std::size_t size = bytes.size();
  // After the last one,
  std::string longer = bytes + std::string(16, '\0');
  made::set_number(longer, 16, 8, size + 16);
  CHECK(refusal(made::repaired(longer)) == Code::RDU5005);
  CHECK(message(made::repaired(longer)).find("the last segment ends at") != std::string::npos);
  // and between two.
  const std::size_t last = pf::fixed_bytes + (made::number_at(bytes, 40, 4) - 1) * pf::entry_bytes;
  const std::size_t offset = made::number_at(bytes, last + 8, 8);
  std::string gap = bytes;
  gap.insert(offset, 16, '\0');
  made::set_number(gap, last + 8, 8, offset + 16);
  made::set_number(gap, 16, 8, size + 16);
  CHECK(refusal(made::repaired(gap)) == Code::RDU5005);
  // Nor may a segment start before the end of another.
  std::string overlap = bytes;
  made::set_number(overlap, last + 8, 8, offset - 16);
  CHECK(refusal(made::repaired(overlap)) == Code::RDU5005);
  CHECK(message(made::repaired(overlap)).find("lies at") != std::string::npos);
}

TEST_CASE("a byte altered under right checksums gives another program or a refusal, never a crash") {
  const std::string bytes = encode(made::every_field());
  const std::size_t header = made::number_at(bytes, 12, 4);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::size_t at = header; at < bytes.size(); ++at) {
    for (int value : {0x00, 0x01, 0x7F, 0xFF}) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(value);
      const auto result = decode(made::repaired(altered), "p.bin");
      if (!result.ok()) {
        ++refused;
        CHECK(result.diagnostics().list().front().code == Code::RDU5005);
        continue;
      }
      ++accepted;
      // What was accepted can be written and read again.
      const std::string again = encode(*result);
      const auto back = decode(again, "p.bin");
      REQUIRE(back.ok());
      CHECK(encode(*back) == again);
    }
  }
  CHECK(accepted > 0);
  CHECK(refused > 0);
}

TEST_CASE("each program file of the errors folder is refused with the code that its name starts with, and just that") {
  CHECK(made::each_refused_file(".bin", [](const std::string& bytes, Code code) { CHECK(refusal(bytes) == code); }) ==
        7);
}

}  // namespace rdusim::prog_bin_test
