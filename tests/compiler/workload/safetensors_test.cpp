#include "compiler/workload/safetensors.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/compiler/workload/data_files.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::safetensors_test {

namespace {

Result<SafetensorsIndex> parse(const std::string& json, std::uint64_t data_bytes) {
  return parse_safetensors_header(json, data_bytes, "m.safetensors", "here");
}

Result<SafetensorsIndex> read(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto file = DataFile::open(folder.write("m.safetensors", bytes), "m.safetensors", "here");
  REQUIRE(file.ok());
  return read_safetensors_index(*file, "m.safetensors", "here");
}

template <class T>
std::string code(const Result<T>& result) {
  return result.ok() ? "ok" : std::string(info(result.diagnostics().list()[0].code).name);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("a file's tensors are found, with their place") {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "BF16", "[2,3]", 8, 20) + "," +
                             entry("a", "F32", "[2]", 0, 8) + "}   ";
  const auto index = read(safetensors(header, std::string(20, 'x')));
  INFO(index.diagnostics().to_text());
  REQUIRE(index.ok());
  REQUIRE(index->tensors.size() == 2);
  CHECK(index->tensors[0].name == "b");
  CHECK(index->tensors[0].dtype == "BF16");
  CHECK(index->tensors[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(index->data_offset == 8 + header.size());
  CHECK(safetensors_data_offset(*index, "b", DType::bf16, {2, 3}, "m", "here").value() == 8 + header.size() + 8);
  CHECK(safetensors_data_offset(*index, "a", DType::fp32, {2}, "m", "here").value() == 8 + header.size());
}

TEST_CASE("every dtype of rdusim has its name in safetensors") {
  struct Name {
    std::string name;
    DType dtype;
  };
  for (const Name& row : std::vector<Name>{{"BF16", DType::bf16},
                                           {"F32", DType::fp32},
                                           {"I8", DType::int8},
                                           {"I32", DType::int32},
                                           {"I64", DType::int64},
                                           {"F8_E4M3", DType::fp8_e4m3},
                                           {"F8_E5M2", DType::fp8_e5m2}}) {
    const int bytes = static_cast<int>(3 * bytes_of(row.dtype));
    const auto index = parse("{" + entry("t", row.name, "[3]", 0, bytes) + "}", static_cast<std::uint64_t>(bytes));
    CAPTURE(row.name);
    REQUIRE(index.ok());
    CHECK(safetensors_dtype(row.name) == row.dtype);
    for (const DType asked : all_dtypes) {
      CHECK(safetensors_data_offset(*index, "t", asked, {3}, "m", "here").ok() == (asked == row.dtype));
    }
  }
}

TEST_CASE("tensors of dtypes that rdusim has not may be in the file, with the right size where it is known") {
  CHECK(code(parse("{" + entry("t", "F16", "[3]", 0, 6) + "}", 6)) == "ok");
  CHECK(code(parse("{" + entry("t", "F16", "[3]", 0, 7) + "}", 7)) == "safetensors-malformed");
  const auto index = parse("{" + entry("t", "F4", "[3]", 0, 2) + "}", 2);  // of a later version
  REQUIRE(index.ok());
  CHECK(code(safetensors_data_offset(*index, "t", DType::int8, {3}, "m", "here")) == "safetensors-mismatch");
}

TEST_CASE("empty and rank-zero tensors take their place") {
  const auto index = parse("{" + entry("none", "F32", "[0,7]", 0, 0) + "," + entry("one", "F32", "[]", 0, 4) + "," +
                               entry("mid", "F32", "[3,0]", 4, 4) + "," + entry("two", "F32", "[2]", 4, 12) + "," +
                               entry("end", "F32", "[0]", 12, 12) + "}",
                           12);
  INFO(index.diagnostics().to_text());
  REQUIRE(index.ok());
  CHECK(index->tensors[1].shape.empty());
  CHECK(code(safetensors_data_offset(*index, "one", DType::fp32, {1}, "m", "here")) == "safetensors-mismatch");
  CHECK(code(parse("{}", 0)) == "ok");
  CHECK(code(parse("{" + entry("in", "F32", "[0]", 2, 2) + "," + entry("a", "F32", "[1]", 0, 4) + "}", 4)) ==
        "safetensors-malformed");
}

TEST_CASE("holes, overlaps and wrong lengths are refused") {
  const auto two = [](int begin, int end, const std::string& shape = "[4]") {
    return "{" + entry("a", "I8", "[4]", 0, 4) + "," + entry("b", "I8", shape, begin, end) + "}";
  };
  CHECK(code(parse(two(4, 8), 8)) == "ok");
  CHECK(code(parse(two(5, 9), 9)) == "safetensors-malformed");         // a hole
  CHECK(code(parse(two(3, 7), 7)) == "safetensors-malformed");         // an overlap
  CHECK(code(parse(two(0, 4), 4)) == "safetensors-malformed");         // the same bytes twice
  CHECK(code(parse(two(4, 8), 9)) == "safetensors-malformed");         // bytes behind the last
  CHECK(code(parse(two(4, 8), 7)) == "safetensors-malformed");         // bytes that are not there
  CHECK(code(parse(two(4, 8, "[5]"), 8)) == "safetensors-malformed");  // a range of another size
  CHECK(code(parse(two(8, 4), 8)) == "safetensors-malformed");         // backwards
  CHECK(code(parse("{" + entry("a", "I8", "[4]", 4, 8) + "}", 8)) == "safetensors-malformed");  // a hole at the start
  CHECK(code(parse("{}", 1)) == "safetensors-malformed");
}

TEST_CASE("a header that is not what it should be is refused, each in its way") {
  for (const char* json :
       {"",
        " {}",
        "[]",
        "{",
        "{}x",
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1]}}",
        "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":1,\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[-1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[-1,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,18446744073709551616]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[9223372036854775807,9223372036854775807],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I64\",\"shape\":[9223372036854775807],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"I8\",\"shape\":[1],"
        "\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"I8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"__metadata__\":{\"a\":1},\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"__metadata__\":\"a\",\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"\xFF\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}"}) {
    CAPTURE(json);
    const auto index = parse(json, 1);
    CHECK(code(index) == "safetensors-malformed");
    CHECK(index.diagnostics().list()[0].where == "here");
  }
}

TEST_CASE("the header's length is believed only where the file and the limit allow it") {
  CHECK(code(read("")) == "safetensors-malformed");
  CHECK(code(read(std::string(7, '\0'))) == "safetensors-malformed");
  CHECK(code(read(little_endian(0, 8))) == "safetensors-malformed");
  CHECK(code(read(little_endian(2, 8) + "{}")) == "ok");
  CHECK(code(read(little_endian(3, 8) + "{}")) == "safetensors-malformed");
  CHECK(code(read(little_endian(~std::uint64_t{0}, 8) + "{}")) == "safetensors-malformed");
  CHECK(code(read(little_endian(safetensors_header_limit + 1, 8) + "{}")) == "safetensors-malformed");
}

TEST_CASE("a header of a hundred megabytes is refused by its length, before it is read") {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.safetensors", little_endian(safetensors_header_limit + 1, 8));
  std::filesystem::resize_file(path, 8 + safetensors_header_limit + 1);  // sparse
  const auto file = DataFile::open(path, "m", "here");
  REQUIRE(file.ok());
  const auto index = read_safetensors_index(*file, "m", "here");
  REQUIRE(code(index) == "safetensors-malformed");
  CHECK(index.diagnostics().list()[0].message.find("limit is 100000000") != std::string::npos);
}

TEST_CASE("a header of very many values is refused before memory is taken for them") {
  std::string json = "{\"a\":[";
  for (std::uint64_t i = 0; i <= safetensors_values_limit; ++i) json += "0,";
  json += "0]}";
  const auto index = parse(json, 0);
  REQUIRE(code(index) == "safetensors-malformed");
  CHECK(index.diagnostics().list()[0].message.find("values") != std::string::npos);
}

TEST_CASE("a tensor that is not there is answered with the likely one") {
  const auto index = parse("{" + entry("layers.0.w", "I8", "[4]", 0, 4) + "}", 4);
  REQUIRE(index.ok());
  const auto result = safetensors_data_offset(*index, "layers.0.v", DType::int8, {4}, "m", "here");
  REQUIRE(code(result) == "safetensors-mismatch");
  CHECK(result.diagnostics().list()[0].help == std::vector<std::string>{"did you mean 'layers.0.w'?"});
  CHECK(code(safetensors_data_offset(*index, "layers.0.w", DType::int8, {2, 2}, "m", "here")) ==
        "safetensors-mismatch");
}

}  // namespace rdusim::safetensors_test
