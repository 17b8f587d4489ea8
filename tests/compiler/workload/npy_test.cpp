#include "compiler/workload/npy.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "tests/compiler/workload/data_files.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::npy_test {

namespace {

Result<NpyHeader> parse(const std::string& bytes) {
  return parse_npy_header(std::as_bytes(std::span(bytes)), "x.npy", "w.toml:1:1");
}

Result<std::uint64_t> offset(const std::string& bytes, DType dtype, const std::vector<std::int64_t>& shape) {
  const TemporaryFolder folder;
  const auto file = DataFile::open(folder.write("x.npy", bytes), "x.npy", "here");
  REQUIRE(file.ok());
  return npy_data_offset(*file, dtype, shape, "x.npy", "here");
}

std::string code(const Result<std::uint64_t>& result) {
  return result.ok() ? "ok" : std::string(info(result.diagnostics().list()[0].code).name);
}

}  // namespace

TEST_CASE("a header is read in each version") {
  for (const int major : {1, 2, 3}) {
    const std::string bytes = npy("<f4", "(3, 4)", std::string(48, 'x'), major);
    const auto header = parse(bytes);
    CAPTURE(major);
    REQUIRE(header.ok());
    CHECK(header->descr == "<f4");
    CHECK_FALSE(header->fortran_order);
    CHECK(header->shape == std::vector<std::int64_t>{3, 4});
    CHECK(header->data_offset == bytes.size() - 48);
    CHECK(header->data_offset % 64 == 0);
    CHECK(offset(bytes, DType::fp32, {3, 4}).value() == header->data_offset);
  }
}

TEST_CASE("a header may order its keys and write its strings and spaces as Python allows") {
  for (const char* text : {"{'shape':(3,4),'fortran_order':False,'descr':'<f4'}",
                           "{ \"descr\" : \"<f4\" , \"fortran_order\" : False , \"shape\" : ( 3 , 4 , ) , }",
                           "\n{'descr': '<f4',\n 'fortran_order': False,\n 'shape': (3, 4)}\n"}) {
    const auto header = parse(npy_with_header(text, ""));
    INFO(text);
    INFO(header.diagnostics().to_text());
    REQUIRE(header.ok());
    CHECK(header->shape == std::vector<std::int64_t>{3, 4});
  }
  CHECK(parse(npy("<f4", "(3,)", "")).value().shape == std::vector<std::int64_t>{3});
  CHECK(parse(npy("<f4", "()", "")).value().shape.empty());
  CHECK(parse(npy("<f4", "(0, 3)", "")).value().shape == std::vector<std::int64_t>{0, 3});
  CHECK(parse(npy_with_header("{'descr': [('a', '<i4'), ('b', '|S3')], 'fortran_order': False, 'shape': (3,)}", ""))
            .value()
            .descr.empty());
}

TEST_CASE("a malformed header is refused, each in its way") {
  const std::string good = npy("<f4", "(3, 4)", std::string(48, 'x'));
  std::vector<std::string> bad = {
      "",
      "\x93NUMP",
      "\x93NUMPZ" + good.substr(6),
      good.substr(0, 6),
      good.substr(0, 9),
      good.substr(0, 10),
      good.substr(0, 100),
      npy("<f4", "(3, 4)", "", 2).substr(0, 11),
  };
  std::string version = good;
  version[6] = 4;
  bad.push_back(version);
  version[6] = 0;
  bad.push_back(version);
  version[6] = 1;
  version[7] = 1;
  bad.push_back(version);
  std::string long_header = npy("<f4", "(3, 4)", "", 2);
  long_header[11] = '\x7F';  // two gigabytes
  bad.push_back(long_header);
  std::string no_newline = good;
  no_newline[127] = ' ';
  bad.push_back(no_newline);
  for (const char* text : {
           "",
           "{}",
           "{",
           "[]",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,,4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3.0, 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [3, 4]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)",
           "{'descr': '<f4', 'fortran_order': False 'shape': (3, 4)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 'more': 1}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}",
           "{'descr': '', 'fortran_order': False, 'shape': (3, 4)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (3, 4)}",
           "{'descr': 4, 'fortran_order': False, 'shape': (3, 4)}",
           "{'descr': [('a', '<i4'), 'fortran_order': False, 'shape': (3, 4)}",
           "{'descr': '<\\x664', 'fortran_order': False, 'shape': (3, 4)}",
           "{descr: '<f4', 'fortran_order': False, 'shape': (3, 4)}",
       }) {
    bad.push_back(npy_with_header(text, std::string(48, 'x')));
  }
  for (const std::string& bytes : bad) {
    const auto header = parse(bytes);
    CAPTURE(bytes);
    REQUIRE_FALSE(header.ok());
    CHECK(header.diagnostics().list().size() == 1);
    CHECK(header.diagnostics().list()[0].code == Code::RDU1017);
    CHECK(code(offset(bytes, DType::fp32, {3, 4})) == "npy-malformed");
  }
}

TEST_CASE("a file has just the bytes that its shape asks for") {
  const auto bytes = [](std::size_t n) { return npy("<f4", "(3, 4)", std::string(n, 'x')); };
  CHECK(code(offset(bytes(48), DType::fp32, {3, 4})) == "ok");
  CHECK(code(offset(bytes(47), DType::fp32, {3, 4})) == "npy-malformed");
  CHECK(code(offset(bytes(49), DType::fp32, {3, 4})) == "npy-malformed");
  CHECK(code(offset(bytes(0), DType::fp32, {3, 4})) == "npy-malformed");
}

TEST_CASE("each dtype takes the descriptions that hold its bits, and no other") {
  const std::vector<std::string> all = {"|i1", "<i1", ">i1", "<i2", "<i4", ">i4", "=i4", "i4",  "<i8", ">i8", "|u1",
                                        "<u1", "<u2", ">u2", "<u4", "<f2", "<f4", ">f4", "<f8", "|V1", "<V1", "|V2",
                                        "<V2", ">V2", "|V4", "|f1", "<f1", "|b1", "|O",  "|S1", "<U1", "<c8"};
  const auto taken = [](DType t) -> std::vector<std::string> {
    switch (t) {
      case DType::int8:
        return {"|i1", "<i1"};
      case DType::int32:
        return {"<i4"};
      case DType::int64:
        return {"<i8"};
      case DType::fp32:
        return {"<f4"};
      case DType::bf16:
        return {"<u2", "|V2", "<V2"};
      case DType::fp8_e4m3:
        return {"|u1", "<u1", "|V1", "<V1"};
      case DType::fp8_e5m2:
        return {"|u1", "<u1", "|V1", "<V1", "|f1", "<f1"};
    }
    return {};
  };
  for (const DType t : all_dtypes) {
    const auto good = taken(t);
    for (const std::string& descr : all) {
      CAPTURE(descr);
      CAPTURE(name_of(t));
      const bool expected = std::find(good.begin(), good.end(), descr) != good.end();
      const auto result = offset(npy(descr, "(3, 4)", std::string(12 * bytes_of(t), 'x')), t, {3, 4});
      CHECK(code(result) == (expected ? "ok" : "npy-mismatch"));
    }
  }
}

TEST_CASE("another order, shape or kind is a mismatch that says what is there") {
  CHECK(code(offset(npy("<f4", "(3, 4)", std::string(48, 'x'), 1, "True"), DType::fp32, {3, 4})) == "npy-mismatch");
  CHECK(code(offset(npy("<f4", "(4, 3)", std::string(48, 'x')), DType::fp32, {3, 4})) == "npy-mismatch");
  CHECK(code(offset(npy("<f4", "(12,)", std::string(48, 'x')), DType::fp32, {3, 4})) == "npy-mismatch");
  CHECK(code(offset(npy("<f4", "()", std::string(4, 'x')), DType::fp32, {1})) == "npy-mismatch");
  CHECK(code(offset(npy("<f4", "(0,)", ""), DType::fp32, {1})) == "npy-mismatch");
  CHECK(code(offset(
            npy_with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 4)}", std::string(48, 'x')),
            DType::fp32, {3, 4})) == "npy-mismatch");
  const auto all = offset(npy(">i4", "(4, 3)", std::string(48, 'x'), 1, "True"), DType::fp32, {3, 4});
  CHECK(all.diagnostics().list().size() == 3);
}

TEST_CASE("a shape whose product overflows is only compared, never multiplied") {
  CHECK(code(offset(npy("<f4", "(9223372036854775807, 9223372036854775807)", ""), DType::fp32, {3, 4})) ==
        "npy-mismatch");
}

TEST_CASE("any change to a header is read or refused, never worse") {
  const std::string good = npy("<f4", "(3, 4)", std::string(48, 'x'));
  CHECK(rc::check("changed bytes", [&] {
    std::string bytes = good;
    const auto changes = *rc::gen::inRange(1, 5);
    for (int i = 0; i < changes; ++i) {
      bytes[*rc::gen::inRange<std::size_t>(0, 128)] = static_cast<char>(*rc::gen::inRange(0, 256));
    }
    bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    const auto header = parse(bytes);
    if (header.ok()) RC_ASSERT(header->data_offset <= bytes.size());
  }));
}

}  // namespace rdusim::npy_test
