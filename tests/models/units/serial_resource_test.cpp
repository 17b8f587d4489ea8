#include "models/units/serial_resource.h"

#include <doctest/doctest.h>

namespace rdusim::serial_resource_test {
namespace {

TEST_CASE("a request takes bytes over rate, exactly") {
  SerialResource r;
  const Rate rate(Fraction{64, 1});
  const Slot s = r.take(10, rate, 4096);
  CHECK(s.begin == 10);
  CHECK(s.end == 74);
  CHECK(r.free_at() == 74);
}

TEST_CASE("a request waits for the one before, and not one cycle longer") {
  SerialResource r;
  const Rate rate(Fraction{64, 1});
  r.take(10, rate, 64);
  CHECK(r.take(10, rate, 64).begin == 11);
  CHECK(r.take(12, rate, 64).begin == 12);  // the resource is free at 12: no wait
  CHECK(r.take(20, rate, 64).begin == 20);
}

TEST_CASE("the fraction left over is carried to a request that follows without a gap") {
  SerialResource r;
  const Rate rate(Fraction{125, 3});  // 100 bytes take 2.4 cycles
  CHECK(r.take(0, rate, 100).end == 3);
  CHECK(r.take(0, rate, 100).end == 5);   // 4.8
  CHECK(r.take(0, rate, 100).end == 8);   // 7.2
  CHECK(r.take(0, rate, 100).end == 10);  // 9.6
  CHECK(r.take(0, rate, 100).end == 12);  // 12.0: five requests take exactly twelve cycles
  CHECK(r.free_at() == 12);
}

TEST_CASE("the fraction is lost in a gap: a request does not begin before it is offered") {
  SerialResource r;
  const Rate rate(Fraction{125, 3});
  r.take(0, rate, 100);  // until 2.4
  CHECK(r.take(3, rate, 100).begin == 3);
  CHECK(r.free_at() == 6);  // 5.4
}

TEST_CASE("a rate of a power of two and the same rate as another fraction give the same spans") {
  for (Bytes b : {0u, 1u, 63u, 64u, 65u, 4096u, 100000u}) {
    const Span a = Rate(Fraction{64, 3}).span(b);
    const Span c = Rate(Fraction{192, 9}).span(b);
    CHECK(a.whole == c.whole);
    CHECK(a.part * 3 == c.part);
    CHECK(a.ceil() == ceil_div(b, Fraction{64, 3}));
  }
}

TEST_CASE("neither a rate of zero nor a size beyond all bounds stops time") {
  CHECK(Rate(Fraction{0, 1}).span(100).ceil() == 100);
  const Rate slow(Fraction{3, 1000000});
  CHECK(slow.span(~std::uint64_t{0} / 2).whole > 1000);
}

TEST_CASE("what holds a resource delays the next request by just that") {
  SerialResource r;
  r.hold(5, 10);
  CHECK(r.take(5, Rate(Fraction{1, 1}), 1).begin == 15);
  r.reset();
  CHECK(r.free_at() == 0);
}

}  // namespace
}  // namespace rdusim::serial_resource_test
