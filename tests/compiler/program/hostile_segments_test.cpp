// Segments that rdusim does not write: well framed, and wrong inside.
#include <doctest/doctest.h>

#include "compiler/ir/enum_names.h"
#include "compiler/program/prog_bin.h"
#include "compiler/program/segments.h"
#include "prog_bin_generated.h"

namespace rdusim::hostile_segments_test {
namespace pf = program_file;
namespace fb = prog_bin;

namespace {

using Builder = flatbuffers::FlatBufferBuilder;

template <class Root>
pf::Segment finish(pf::SegmentKind kind, Builder& b, flatbuffers::Offset<Root> root) {
  b.Finish(root);
  return {kind, std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize())};
}

pf::Segment header() {
  Builder b;
  return finish(pf::SegmentKind::header, b, fb::CreateHeader(b, 0, 0, 0, 0, 32, true, true, fb::CreateShardPlan(b, 1)));
}

// What is said of a file with this segment besides the header; empty where it is accepted.
std::string fault(const pf::Segment& segment) {
  std::vector<pf::Segment> parts;
  if (segment.kind != pf::SegmentKind::header) parts.push_back(header());
  parts.push_back(segment);
  const auto result = decode(pf::join(parts, prog_bin_version), "p.bin");
  if (result.ok()) return {};
  REQUIRE(result.diagnostics().list().size() == 1);
  CHECK(result.diagnostics().list().front().code == Code::RDU5005);
  return result.diagnostics().list().front().message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

template <class MakeStage>
pf::Segment stages(MakeStage make) {
  Builder b;
  const std::vector<flatbuffers::Offset<fb::Stage>> list = {make(b)};
  const auto list_at = b.CreateVector(list);
  return finish(pf::SegmentKind::stages, b, fb::CreateStages(b, list_at));
}

template <class MakeKind>
pf::Segment stage_of(fb::StageKind kind, MakeKind make) {
  return stages([&](Builder& b) { return fb::CreateStage(b, 0, 0, kind, make(b)); });
}

flatbuffers::Offset<fb::AccessPattern> pattern(Builder& b, flatbuffers::Offset<fb::Rows> first) {
  return fb::CreateAccessPattern(b, 0, 0, first);
}

pf::Segment load_with(flatbuffers::Offset<fb::Rows> (*first)(Builder&)) {
  return stage_of(fb::StageKind::Load, [&](Builder& b) {
    const auto first_at = first(b);
    return fb::CreateLoad(b, 0, pattern(b, first_at)).Union();
  });
}

template <class E>
void check_names(const char* const* schema) {
  for (std::size_t i = 0; i < enum_count<E>(); ++i) CHECK(enum_name(static_cast<E>(i)) == schema[i]);
  CHECK(schema[enum_count<E>()] == nullptr);
}

}  // namespace

TEST_CASE("the schema names every enumerator as the program does") {
  check_names<DType>(fb::EnumNamesDType());
  check_names<TensorRole>(fb::EnumNamesTensorRole());
  check_names<OperatorKind>(fb::EnumNamesOperatorKind());
  check_names<MemorySpace>(fb::EnumNamesMemorySpace());
  check_names<Layout>(fb::EnumNamesLayout());
  check_names<IteratorKind>(fb::EnumNamesIteratorKind());
  check_names<ExprOp>(fb::EnumNamesExprOp());
  check_names<StageRole>(fb::EnumNamesStageRole());
  check_names<Direction>(fb::EnumNamesDirection());
  check_names<BufferKind>(fb::EnumNamesBufferKind());
  check_names<Handshake>(fb::EnumNamesHandshake());
  check_names<PageMapKind>(fb::EnumNamesPageMapKind());
  check_names<CollectiveKind>(fb::EnumNamesCollectiveKind());
  check_names<CollectiveAlgorithm>(fb::EnumNamesCollectiveAlgorithm());
  check_names<ShardKind>(fb::EnumNamesShardKind());
  check_names<ObligationKind>(fb::EnumNamesObligationKind());
  check_names<ProofStatus>(fb::EnumNamesProofStatus());
  check_names<ProofScope>(fb::EnumNamesProofScope());
}

TEST_CASE("names in files are those that workloads and messages use") {
  for (DType t : all_dtypes) CHECK(enum_name(t) == name_of(t));
  for (const auto role :
       {TensorRole::input, TensorRole::weight, TensorRole::output, TensorRole::intermediate, TensorRole::state})
    CHECK(enum_name(role) == name_of(role));
  CHECK(enum_name(OperatorKind::matmul) == name_of(OperatorKind::matmul));
}

TEST_CASE("a header alone is a program") {
  Builder b;
  CHECK(fault(finish(pf::SegmentKind::header, b,
                     fb::CreateHeader(b, 0, 0, 0, 0, 32, true, true, fb::CreateShardPlan(b, 1))))
            .empty());
}

TEST_CASE("a header without a shard plan is refused") {
  Builder b;
  CHECK(contains(fault(finish(pf::SegmentKind::header, b, fb::CreateHeader(b))), "no shard plan"));
}

TEST_CASE("an enumerator out of range is refused, with the range") {
  Builder b;
  const auto plan = fb::CreateShardPlan(b, 1, true, static_cast<fb::ShardKind>(4));
  const std::string said =
      fault(finish(pf::SegmentKind::header, b, fb::CreateHeader(b, 0, 0, 0, 0, 32, true, true, plan)));
  CHECK(contains(said, "4 is none of the values from none to tensor"));

  Builder list;
  const std::vector<fb::DType> dtypes = {fb::DType::fp32, static_cast<fb::DType>(7)};
  const auto dtypes_at = list.CreateVector(dtypes);
  const auto good = fb::CreateShardPlan(list, 1);
  CHECK(contains(fault(finish(pf::SegmentKind::header, list,
                              fb::CreateHeader(list, 0, 0, 0, 0, 32, true, true, good, 0, dtypes_at))),
                 "7 is none of the values from int8 to fp32"));
}

TEST_CASE("a name that is not UTF-8 is refused") {
  Builder b;
  const auto name = b.CreateString("\xFF\xFE");
  const auto plan = fb::CreateShardPlan(b, 1);
  CHECK(contains(fault(finish(pf::SegmentKind::header, b, fb::CreateHeader(b, name, 0, 0, 0, 32, true, true, plan))),
                 "not UTF-8"));
}

TEST_CASE("a stage of no kind, or without its kind's table, is refused and named by its place") {
  CHECK(contains(fault(stage_of(fb::StageKind::NONE, [](Builder&) { return flatbuffers::Offset<void>(); })),
                 "element 0: stage kind 0"));
  CHECK(
      contains(fault(stage_of(static_cast<fb::StageKind>(9), [](Builder& b) { return fb::CreateRecv(b, 1).Union(); })),
               "stage kind 9"));
}

TEST_CASE("an element without an id is refused") {
  CHECK(contains(fault(stages([](Builder& b) {
                   const auto kind = fb::CreateRecv(b, 1).Union();
                   return fb::CreateStage(b, flatbuffers::nullopt, 0, fb::StageKind::Recv, kind);
                 })),
                 "no id"));
}

TEST_CASE("a load without its access pattern is refused") {
  CHECK(contains(fault(stage_of(fb::StageKind::Load, [](Builder& b) { return fb::CreateLoad(b, 0).Union(); })),
                 "no access pattern"));
}

TEST_CASE("a fill of no kind is refused") {
  Builder b;
  const std::vector<flatbuffers::Offset<fb::Tensor>> list = {fb::CreateTensor(b, 0)};
  const auto list_at = b.CreateVector(list);
  CHECK(contains(fault(finish(pf::SegmentKind::tensors, b, fb::CreateTensors(b, list_at))), "fill 0"));
}

TEST_CASE("lists of lists whose numbers do not add up are refused") {
  const auto rows = [](Builder& b, std::uint32_t n, std::uint32_t columns, std::vector<std::uint32_t> lengths,
                       std::vector<std::uint32_t> narrow, std::vector<std::uint64_t> wide) {
    const auto lengths_at = lengths.empty() ? 0 : b.CreateVector(lengths);
    const auto narrow_at = narrow.empty() ? 0 : b.CreateVector(narrow);
    const auto wide_at = wide.empty() ? 0 : b.CreateVector(wide);
    return fb::CreateRows(b, n, columns, lengths_at, narrow_at, wide_at);
  };
  static const auto make = rows;
  CHECK(fault(load_with([](Builder& b) { return make(b, 2, 2, {}, {1, 2, 3, 4}, {}); })).empty());
  CHECK(fault(load_with([](Builder& b) { return make(b, 0, 0, {1, 2}, {1, 2, 3}, {}); })).empty());
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 2, 2, {}, {1, 2, 3}, {}); })), "together have 3"));
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 0, 0, {1, 3}, {1, 2, 3}, {}); })), "together have 3"));
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 3, 1, {1, 1, 1}, {1, 2, 3}, {}); })), "both"));
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 1, 1, {}, {1}, {1}); })), "both narrow and wide"));
  // Lists of nothing would cost nothing in the file.
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 0xFFFFFFFF, 0, {}, {}, {}); })),
                 "4294967295 lists of 0"));
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 0, 7, {}, {}, {}); })), "0 lists of 7"));
  CHECK(contains(fault(load_with([](Builder& b) { return make(b, 0x80000000, 0x80000000, {}, {1}, {}); })),
                 "together have 1"));
}

TEST_CASE("a number that does not fit its list is refused") {
  Builder b;
  const std::vector<std::uint64_t> wide = {std::uint64_t{1} << 32U};
  const auto wide_at = b.CreateVector(wide);
  const auto targets = fb::CreateRows(b, 1, 1, 0, 0, wide_at);
  const fb::Chunk chunk(0, 1);
  const std::vector<flatbuffers::Offset<fb::Edge>> list = {
      fb::CreateEdge(b, 0, 0, 0, 0, fb::Handshake::fifo, fb::PageMapKind::one_to_one, targets, &chunk)};
  const auto list_at = b.CreateVector(list);
  CHECK(contains(fault(finish(pf::SegmentKind::edges, b, fb::CreateEdges(b, list_at))), "4294967296"));
}

TEST_CASE("an edge with half a semaphore pair, or without its chunk, is refused") {
  const auto edge = [](bool with_chunk, bool with_valid) {
    Builder b;
    const std::vector<std::uint32_t> ids = {1};
    const auto valid_at = with_valid ? b.CreateVector(ids) : 0;
    const fb::Chunk chunk(0, 1);
    const std::vector<flatbuffers::Offset<fb::Edge>> list = {
        fb::CreateEdge(b, 0, 0, 0, 0, fb::Handshake::fifo, fb::PageMapKind::one_to_one, 0,
                       with_chunk ? &chunk : nullptr, 0, flatbuffers::nullopt, valid_at)};
    const auto list_at = b.CreateVector(list);
    return finish(pf::SegmentKind::edges, b, fb::CreateEdges(b, list_at));
  };
  CHECK(fault(edge(true, false)).empty());
  CHECK(contains(fault(edge(true, true)), "no ready one"));
  CHECK(contains(fault(edge(false, false)), "no chunk"));
}

TEST_CASE("ports that say more or fewer runs than there are, are refused") {
  const auto stage = [](std::uint32_t need, std::uint32_t chunks) {
    return stages([&](Builder& b) {
      const std::vector<fb::Port> ports = {fb::Port(fb::Direction::input, 0, need, 0, 0, 0, chunks)};
      const std::vector<fb::Run> runs = {fb::Run(1, 1), fb::Run(1, 0)};
      const auto ports_at = b.CreateVectorOfStructs(ports);
      const auto runs_at = b.CreateVectorOfStructs(runs);
      const auto kind = fb::CreateRecv(b, 1).Union();
      return fb::CreateStage(b, 0, 0, fb::StageKind::Recv, kind, fb::StageRole::compute, ports_at, runs_at);
    });
  };
  CHECK(fault(stage(2, 0)).empty());
  CHECK(contains(fault(stage(3, 0)), "fewer than they say"));
  CHECK(contains(fault(stage(0xFFFFFFFF, 0)), "fewer than they say"));
  CHECK(contains(fault(stage(1, 0)), "say 1"));
  CHECK(contains(fault(stage(2, 1)), "fewer than they say"));
}

TEST_CASE("a generic body that says more or fewer rows or nodes than there are, is refused") {
  const auto generic = [](std::vector<std::uint32_t> map_rows, std::uint32_t nodes) {
    return stage_of(fb::StageKind::Generic, [&](Builder& b) {
      const std::vector<std::int64_t> values = {1, 0, 0, 1};
      const std::vector<fb::Body> bodies = {fb::Body(1, nodes)};
      const std::vector<fb::ExprNode> list = {fb::ExprNode(fb::ExprOp::operand, 0, 0)};
      const auto map_rows_at = b.CreateVector(map_rows);
      const auto values_at = b.CreateVector(values);
      const auto maps = fb::CreateSignedRows(b, 2, 2, 0, values_at);
      const auto bodies_at = b.CreateVectorOfStructs(bodies);
      const auto nodes_at = b.CreateVectorOfStructs(list);
      return fb::CreateGeneric(b, 0, map_rows_at, maps, bodies_at, nodes_at).Union();
    });
  };
  CHECK(fault(generic({1, 1}, 1)).empty());
  CHECK(contains(fault(generic({1, 2}, 1)), "fewer than they say"));
  CHECK(contains(fault(generic({1}, 1)), "say 1"));
  CHECK(contains(fault(generic({1, 1}, 2)), "fewer than they say"));
  CHECK(contains(fault(generic({1, 1}, 0)), "say 0"));
}

TEST_CASE("a certificate whose claims do not add up is refused") {
  const auto certificate = [](std::uint32_t consumers, bool with_memory) {
    Builder b;
    const std::vector<fb::BufferClaim> claims = {fb::BufferClaim(0, consumers, 1, 1, 1, 1)};
    const std::vector<std::uint64_t> popped = {1, 1};
    const auto claims_at = b.CreateVectorOfStructs(claims);
    const auto popped_at = b.CreateVector(popped);
    const fb::MemoryClaim memory(1, 2, 3, 4);
    return finish(pf::SegmentKind::certificate, b,
                  fb::CreateCertificate(b, 0, claims_at, popped_at, 0, 0, with_memory ? &memory : nullptr));
  };
  CHECK(fault(certificate(2, true)).empty());
  CHECK(contains(fault(certificate(3, true)), "fewer than they say"));
  CHECK(contains(fault(certificate(1, true)), "say 1"));
  CHECK(contains(fault(certificate(2, false)), "no claim of memory"));
}

TEST_CASE("the mesh stands in the first piece of a placement, and only there") {
  const auto piece = [](bool with_mesh) {
    Builder b;
    const fb::Mesh mesh(4, 4);
    return finish(pf::SegmentKind::placement, b, fb::CreatePlacement(b, with_mesh ? &mesh : nullptr));
  };
  const auto ok = [&](bool first, bool second) {
    return decode(pf::join({header(), piece(first), piece(second)}, prog_bin_version), "p.bin").ok();
  };
  CHECK(ok(true, false));
  CHECK_FALSE(ok(true, true));
  CHECK_FALSE(ok(false, true));
  CHECK_FALSE(ok(false, false));
}

TEST_CASE("a small file cannot describe a large program by naming one table many times") {
  // 1 MiB of offsets to one stage with 1 MiB of sites: 275 GB, were it believed.
  Builder b;
  const std::vector<std::uint32_t> numbers(1U << 18U, 7);
  const auto sets_at = b.CreateVector(numbers);
  const auto pattern_at = pattern(b, 0);
  const auto kind = fb::CreateLoad(b, 0, pattern_at, sets_at).Union();
  const auto stage = fb::CreateStage(b, 0, 0, fb::StageKind::Load, kind);
  const std::vector<flatbuffers::Offset<fb::Stage>> list(1U << 18U, stage);
  const auto list_at = b.CreateVector(list);
  const std::string said = fault(finish(pf::SegmentKind::stages, b, fb::CreateStages(b, list_at)));
  CHECK((contains(said, "shared") || contains(said, "well formed")));

  // A few, that the verifier's count of tables lets pass.
  Builder few;
  const auto few_sets = few.CreateVector(numbers);
  const auto few_pattern = pattern(few, 0);
  const auto few_kind = fb::CreateLoad(few, 0, few_pattern, few_sets).Union();
  const auto few_stage = fb::CreateStage(few, 0, 0, fb::StageKind::Load, few_kind);
  const std::vector<flatbuffers::Offset<fb::Stage>> few_list(8, few_stage);
  const auto few_list_at = few.CreateVector(few_list);
  CHECK(contains(fault(finish(pf::SegmentKind::stages, few, fb::CreateStages(few, few_list_at))), "shared"));
}

TEST_CASE("a vector that is not aligned is refused") {
  // Shifts the bytes of a list of 64-bit numbers by four: the length still stands at a multiple of four.
  Builder b;
  const std::vector<std::uint64_t> popped = {1, 2, 3};
  const auto popped_at = b.CreateVector(popped);
  const fb::MemoryClaim memory(1, 2, 3, 4);
  pf::Segment segment =
      finish(pf::SegmentKind::certificate, b, fb::CreateCertificate(b, 0, 0, popped_at, 0, 0, &memory));
  const auto* root = flatbuffers::GetRoot<fb::Certificate>(segment.bytes.data());
  const auto* data = reinterpret_cast<const char*>(root->popped()) - segment.bytes.data() + segment.bytes.data();
  const auto length_at = static_cast<std::size_t>(data - segment.bytes.data());
  const auto field = static_cast<std::size_t>(
      reinterpret_cast<const char*>(
          reinterpret_cast<const flatbuffers::Table*>(root)->GetAddressOf(fb::Certificate::VT_POPPED)) -
      segment.bytes.data());
  // The offset now leads four bytes further, to where 1 is the length of a vector of one.
  std::uint32_t offset = flatbuffers::ReadScalar<std::uint32_t>(segment.bytes.data() + field);
  REQUIRE(field + offset == length_at);
  offset += 4;
  flatbuffers::WriteScalar(segment.bytes.data() + field, offset);
  CHECK(contains(fault(segment), "not aligned"));
}

TEST_CASE("a segment that is not the table that its kind names is refused") {
  CHECK(!fault({pf::SegmentKind::stages, ""}).empty());
  CHECK(!fault({pf::SegmentKind::stages, std::string(4, '\xFF')}).empty());
  CHECK(!fault({pf::SegmentKind::stages, std::string(64, '\0')}).empty());
  pf::Segment other = header();
  other.kind = pf::SegmentKind::stages;
  CHECK(!fault(other).empty());
}

}  // namespace rdusim::hostile_segments_test
