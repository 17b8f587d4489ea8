// What the bare SystemC kernel can do: N methods that only wake themselves, each at its own pace. The yardstick beside
// which scripts/bench sets the machine's activations a second, in the same run on the same computer.
//
//   kernel_dispatch PROCESSES ACTIVATIONS      prints activations a second
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <systemc>
#include <vector>

namespace {

std::uint64_t left = 0;
std::uint64_t done = 0;

class Waker final : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Waker);
  Waker(const sc_core::sc_module_name& name, std::uint64_t pace) : sc_module(name), pace_(pace) { SC_METHOD(step); }

 private:
  void step() {
    ++done;
    if (done < left) next_trigger(sc_core::sc_time::from_value(pace_));
  }
  std::uint64_t pace_;
};

}  // namespace

int sc_main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto processes = std::strtoull(argv[1], nullptr, 10);
  left = std::strtoull(argv[2], nullptr, 10);
  std::vector<std::unique_ptr<Waker>> wakers;
  for (std::uint64_t i = 0; i < processes; ++i)
    wakers.push_back(std::make_unique<Waker>(("waker" + std::to_string(i)).c_str(), 7 + i % 13));
  const auto begin = std::chrono::steady_clock::now();
  sc_core::sc_start();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%.0f\n", double(done) / seconds);
  return 0;
}
