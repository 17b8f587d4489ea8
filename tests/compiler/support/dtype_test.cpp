#include "compiler/support/dtype.h"

#include <doctest/doctest.h>

namespace rdusim::dtype_test {

TEST_CASE("every dtype is found by its name, and by no other") {
  for (DType t : all_dtypes) CHECK(dtype_named(name_of(t)) == t);
  CHECK_FALSE(dtype_named("fp16"));
  CHECK_FALSE(dtype_named(""));
  CHECK_FALSE(dtype_named("INT8"));
}

TEST_CASE("integers are summed in integers, floats in fp32") {
  CHECK(accumulator_of(DType::int8) == DType::int32);
  CHECK(accumulator_of(DType::int32) == DType::int32);
  CHECK(accumulator_of(DType::int64) == DType::int64);
  for (DType t : {DType::fp8_e4m3, DType::fp8_e5m2, DType::bf16, DType::fp32}) CHECK(accumulator_of(t) == DType::fp32);
}

TEST_CASE("an accumulator is at least as wide as what it sums") {
  for (DType t : all_dtypes) {
    CHECK(bytes_of(accumulator_of(t)) >= bytes_of(t));
    CHECK(is_integer(accumulator_of(t)) == is_integer(t));
  }
}

}  // namespace rdusim::dtype_test
