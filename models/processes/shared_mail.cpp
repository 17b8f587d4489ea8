#include "models/processes/shared_mail.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>

namespace rdusim {

// One writer, one reader; both count bytes and never turn back.
struct SharedMail::Ring {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  alignas(64) std::uint64_t bytes = 0;  // a power of two
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

struct SharedMail::Desk {
  alignas(64) std::atomic<std::uint32_t> news{0};
  std::atomic<std::uint32_t> asleep{0};
};

namespace {

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, time, nullptr, 0);
}

}  // namespace

SharedMail::SharedMail(std::uint32_t processes, std::size_t mail_bytes, std::size_t record_bytes)
    : processes_(processes),
      mail_bytes_(mail_bytes),
      record_bytes_(record_bytes),
      coming_(processes * lanes),
      going_(processes * lanes) {
  const std::size_t pairs = std::size_t{processes} * processes;
  mapped_bytes_ =
      processes * sizeof(Desk) + pairs * (sizeof(Ring) + mail_bytes) + processes * (sizeof(Ring) + record_bytes);
  void* at = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  base_ = static_cast<std::byte*>(at);
  for (std::uint32_t i = 0; i < processes; ++i) new (desk(i)) Desk;
  for (std::uint32_t from = 0; from < processes; ++from) {
    for (std::uint32_t to = 0; to < processes; ++to) (new (ring(from, to, mail)) Ring)->bytes = mail_bytes;
    (new (ring(from, 0, records)) Ring)->bytes = record_bytes;
  }
}

SharedMail::~SharedMail() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

SharedMail::Desk* SharedMail::desk(std::uint32_t rank) const {
  return reinterpret_cast<Desk*>(base_ + rank * sizeof(Desk));
}

SharedMail::Ring* SharedMail::ring(std::uint32_t from, std::uint32_t to, Lane lane) const {
  std::byte* at = base_ + processes_ * sizeof(Desk);
  const std::size_t small = sizeof(Ring) + mail_bytes_, large = sizeof(Ring) + record_bytes_;
  if (lane == mail) return reinterpret_cast<Ring*>(at + (std::size_t{from} * processes_ + to) * small);
  return reinterpret_cast<Ring*>(at + std::size_t{processes_} * processes_ * small + from * large);
}

void SharedMail::tell(std::uint32_t rank) const {
  Desk& d = *desk(rank);
  d.news.fetch_add(1);
  if (d.asleep.load() != 0) futex(d.news, FUTEX_WAKE, INT_MAX, nullptr);
}

std::size_t SharedMail::put(Ring& r, std::span<const std::byte> bytes) const {
  const std::uint64_t written = r.written.load(std::memory_order_relaxed);
  const std::uint64_t room = r.bytes - (written - r.read.load(std::memory_order_acquire));
  const std::size_t n = std::min<std::uint64_t>(room, bytes.size());
  const std::size_t at = written & (r.bytes - 1);
  const std::size_t first = std::min<std::size_t>(n, r.bytes - at);
  if (n == 0) return 0;
  std::memcpy(r.data() + at, bytes.data(), first);
  std::memcpy(r.data(), bytes.data() + first, n - first);
  r.written.store(written + n, std::memory_order_release);
  return n;
}

std::size_t SharedMail::take(Ring& r, std::span<std::byte> bytes) const {
  const std::uint64_t read = r.read.load(std::memory_order_relaxed);
  const std::uint64_t there = r.written.load(std::memory_order_acquire) - read;
  const std::size_t n = std::min<std::uint64_t>(there, bytes.size());
  const std::size_t at = read & (r.bytes - 1);
  const std::size_t first = std::min<std::size_t>(n, r.bytes - at);
  if (n == 0) return 0;
  std::memcpy(bytes.data(), r.data() + at, first);
  std::memcpy(bytes.data() + first, r.data(), n - first);
  r.read.store(read + n, std::memory_order_release);
  return n;
}

void SharedMail::send(std::uint32_t to, Lane lane, std::span<const std::span<const std::byte>> parts) {
  std::uint64_t length = 0;
  for (const auto& part : parts) length += part.size();
  Ring& r = *ring(rank_, to, lane);
  std::deque<Going>& going = going_[to * lanes + lane];
  bool stuck = !going.empty(), moved = false;
  const auto give = [&](std::span<const std::byte> bytes) {
    if (!stuck) {
      const std::size_t n = put(r, bytes);
      moved = moved || n != 0;
      bytes = bytes.subspan(n);
    }
    if (bytes.empty()) return;
    if (!stuck || going.empty()) going.emplace_back();
    stuck = true;
    going.back().bytes.insert(going.back().bytes.end(), bytes.begin(), bytes.end());
  };
  give(std::as_bytes(std::span(&length, 1)));
  for (const auto& part : parts) give(part);
  if (moved) tell(to);
}

void SharedMail::pump() {
  for (std::uint32_t to = 0; to < processes_; ++to) {
    bool moved = false;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::deque<Going>& going = going_[to * lanes + lane];
      while (!going.empty()) {
        Going& g = going.front();
        const std::size_t n = put(*ring(rank_, to, static_cast<Lane>(lane)), std::span(g.bytes).subspan(g.sent));
        moved = moved || n != 0;
        g.sent += n;
        if (g.sent != g.bytes.size()) break;
        going.pop_front();
      }
    }
    if (moved) tell(to);
  }
}

bool SharedMail::unsent() const {
  return std::any_of(going_.begin(), going_.end(), [](const auto& g) { return !g.empty(); });
}

bool SharedMail::receive(std::uint32_t from, Lane lane, std::vector<std::byte>& message) {
  Ring& r = *ring(from, rank_, lane);
  Coming& c = coming_[from * lanes + lane];
  bool moved = false;
  const auto get = [&](std::span<std::byte> bytes) {
    const std::size_t n = take(r, bytes);
    moved = moved || n != 0;
    return n;
  };
  if (c.length_known < sizeof c.length)
    c.length_known += get(std::as_writable_bytes(std::span(&c.length, 1)).subspan(c.length_known));
  bool whole = false;
  if (c.length_known == sizeof c.length) {
    // Grows as it comes: no memory is taken on a length's word. What an earlier message left is written over.
    while (c.got < c.length) {
      constexpr std::uint64_t piece = 1U << 20;
      if (c.message.size() == c.got) c.message.resize(std::min<std::uint64_t>(c.length, c.got + piece));
      const std::size_t most = std::min<std::uint64_t>(c.message.size(), c.length);
      const std::size_t n = get(std::span(c.message).subspan(c.got, most - c.got));
      c.got += n;
      if (n == 0) break;
    }
    if (c.got == c.length) {
      whole = true;
      c.message.resize(c.got);
      std::swap(message, c.message);
      c.length_known = c.got = 0;
    }
  }
  if (moved) tell(from);
  return whole;
}

std::uint32_t SharedMail::news() {
  return desk(rank_)->news.load();
}

void SharedMail::leave() {
  if (rank_ == 0) return;  // nobody waits for it any more
  while (unsent()) {
    const std::uint32_t seen = news();
    pump();
    if (unsent()) wait(seen);
  }
}

void SharedMail::wait(std::uint32_t seen) {
  using Clock = std::chrono::steady_clock;
  Desk& d = *desk(rank_);
  const auto until = Clock::now() + std::chrono::microseconds(20);
  do {
    for (int i = 0; i < 64; ++i) {
      if (d.news.load(std::memory_order_relaxed) != seen) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (Clock::now() < until);
  d.asleep.store(1);
  const timespec most{0, 50'000'000};
  futex(d.news, FUTEX_WAIT, seen, &most);  // not if there has been news since
  d.asleep.store(0);
}

}  // namespace rdusim
