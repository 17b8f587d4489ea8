// Messages by MPI, in a module of its own: only what mpirun has started loads it (mpi_crew.cpp).
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>

#include "models/processes/mail.h"

namespace rdusim {
namespace {

using Bits = std::vector<std::byte>;

class MpiMail final : public Mail {
 public:
  MpiMail() {
    int given = 0, size = 1, rank = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size_ = static_cast<std::uint32_t>(size);
    rank_ = static_cast<std::uint32_t>(rank);
    come_.resize(size_ * lanes);
    coming_.resize(size_ * lanes);
  }

  std::uint32_t size() const override { return size_; }
  std::uint32_t rank() const override { return rank_; }

  void send(std::uint32_t to, Lane lane, std::span<const std::span<const std::byte>> parts) override {
    std::uint64_t length = 0;
    for (const auto& part : parts) length += part.size();
    // A message is its length and its bytes, in pieces whose length an int can count.
    Bits piece;
    piece.reserve(std::min<std::uint64_t>(length + sizeof length, most_bytes));
    const auto head = std::as_bytes(std::span(&length, 1));
    piece.insert(piece.end(), head.begin(), head.end());
    for (auto part : parts) {
      while (!part.empty()) {
        if (piece.size() == most_bytes) {
          post(to, lane, std::move(piece));
          piece = {};
        }
        const std::size_t n = std::min(part.size(), most_bytes - piece.size());
        piece.insert(piece.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
        part = part.subspan(n);
      }
    }
    post(to, lane, std::move(piece));
  }

  bool receive(std::uint32_t from, Lane lane, Bits& message) override {
    std::deque<Bits>& come = come_[from * lanes + lane];
    if (come.empty()) return false;
    message = std::move(come.front());
    come.pop_front();
    if (lane == records) held_ -= message.size();
    return true;
  }

  void pump() override {
    take(stop_tag);
    take(mail);
    // What is listened to lies far behind: the others wait.
    constexpr std::size_t most_held = std::size_t{1} << 28;
    if (held_ < most_held) take(records);
    for (auto it = going_.begin(); it != going_.end();) {
      int done = 0;
      MPI_Test(&it->request, &done, MPI_STATUS_IGNORE);
      if (done != 0) ++news_;
      it = done != 0 ? going_.erase(it) : std::next(it);
    }
  }
  bool unsent() const override { return !going_.empty(); }

  std::uint32_t news() override {
    pump();
    return news_;
  }
  void wait(std::uint32_t seen) override {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    while (news() == seen) {
      const auto waited = Clock::now() - began;
      if (waited > std::chrono::milliseconds(50)) return;
      if (waited < std::chrono::microseconds(20)) {
        sched_yield();
      } else {
        usleep(20);
      }
    }
  }

  void order_stop() override {
    for (std::uint32_t to = 0; to < size_; ++to)
      if (to != rank_) post(to, stop_tag, Bits(1));
  }
  bool stop_ordered() override { return stop_; }

  // All have come here when nobody has anything under way: what still comes until then is for nobody.
  void leave() override {
    MPI_Request all = MPI_REQUEST_NULL;
    bool waiting = false;
    for (int done = 0; done == 0;) {
      held_ = 0;
      pump();
      for (auto& come : come_) come.clear();
      if (!waiting && going_.empty()) {
        MPI_Ibarrier(MPI_COMM_WORLD, &all);
        waiting = true;
      }
      if (waiting) MPI_Test(&all, &done, MPI_STATUS_IGNORE);
      if (done == 0) usleep(20);
    }
    MPI_Finalize();
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;
  static constexpr int stop_tag = lanes;
  struct Going {
    MPI_Request request = MPI_REQUEST_NULL;
    Bits bytes;
  };
  struct Coming {
    std::uint64_t length = 0;
    bool begun = false;
    Bits bytes;
  };

  void post(std::uint32_t to, int tag, Bits bytes) {
    Going& g = going_.emplace_back();
    g.bytes = std::move(bytes);
    MPI_Isend(g.bytes.data(), static_cast<int>(g.bytes.size()), MPI_BYTE, static_cast<int>(to), tag, MPI_COMM_WORLD,
              &g.request);
  }

  // Everything of a tag that is there.
  void take(int tag) {
    while (true) {
      int there = 0, bytes = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status);
      if (there == 0) return;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      Bits piece(static_cast<std::size_t>(bytes));
      MPI_Recv(piece.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ++news_;
      if (tag == stop_tag) {
        stop_ = true;
      } else {
        join(static_cast<std::size_t>(status.MPI_SOURCE) * lanes + static_cast<std::size_t>(tag), std::move(piece));
      }
    }
  }
  void join(std::size_t from, Bits piece) {
    Coming& c = coming_[from];
    if (!c.begun) {
      std::copy_n(piece.begin(), sizeof c.length, std::as_writable_bytes(std::span(&c.length, 1)).begin());
      piece.erase(piece.begin(), piece.begin() + sizeof c.length);
      c.begun = true;
      c.bytes = std::move(piece);
    } else {
      c.bytes.insert(c.bytes.end(), piece.begin(), piece.end());
    }
    if (c.bytes.size() < c.length) return;
    if (from % lanes == records) held_ += c.bytes.size();
    come_[from].push_back(std::move(c.bytes));
    c = {};
  }

  std::uint32_t size_ = 1, rank_ = 0, news_ = 0;
  bool stop_ = false;
  std::size_t held_ = 0;  // bytes of records that have come and not been received
  std::list<Going> going_;
  std::vector<Coming> coming_;          // by (from, lane)
  std::vector<std::deque<Bits>> come_;  // by (from, lane)
};

}  // namespace
}  // namespace rdusim

// Once in a process. The caller owns what it is given.
extern "C" rdusim::Mail* rdusim_join_mpi() {
  return new rdusim::MpiMail;
}
