// Byte messages between the processes of one run on one computer: a ring of shared memory for each pair and lane.
//
//   waiting  wait() spins for some twenty microseconds, then sleeps until another process has written or read something
//   memory   mapped before fork(), taken page by page as it is written to, freed when the last process has gone
//
// A message may be longer than its ring: it goes through it piece by piece, so both ends must go on pumping and
// receiving. Whether a process lives is not known here (crew.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "models/processes/mail.h"

namespace rdusim {

class SharedMail final : public Mail {
 public:
  // Requires processes >= 2. Bytes of each ring: powers of two. Without memory for them mapped() is false.
  explicit SharedMail(std::uint32_t processes, std::size_t mail_bytes = 1U << 20, std::size_t record_bytes = 1U << 20);
  ~SharedMail() override;
  SharedMail(const SharedMail&) = delete;
  SharedMail& operator=(const SharedMail&) = delete;

  bool mapped() const { return base_ != nullptr; }
  std::uint32_t size() const override { return processes_; }
  std::uint32_t rank() const override { return rank_; }
  // Which of them this process is; once, before anything is sent.
  void is(std::uint32_t rank) { rank_ = rank; }

  void send(std::uint32_t to, Lane lane, std::span<const std::span<const std::byte>> parts) override;
  bool receive(std::uint32_t from, Lane lane, std::vector<std::byte>& message) override;
  void pump() override;
  bool unsent() const override;
  std::uint32_t news() override;
  void wait(std::uint32_t seen) override;
  void leave() override;

 private:
  struct Ring;
  struct Desk;  // of a process: whether there is news, and whether it sleeps
  struct Coming {
    std::size_t length_known = 0;  // bytes of the length that have come
    std::uint64_t length = 0;
    std::size_t got = 0;
    std::vector<std::byte> message;
  };
  struct Going {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
  };

  Ring* ring(std::uint32_t from, std::uint32_t to, Lane lane) const;
  Desk* desk(std::uint32_t rank) const;
  std::size_t put(Ring& r, std::span<const std::byte> bytes) const;
  std::size_t take(Ring& r, std::span<std::byte> bytes) const;
  void tell(std::uint32_t rank) const;

  std::uint32_t processes_;
  std::uint32_t rank_ = 0;
  std::size_t mail_bytes_, record_bytes_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<Coming> coming_;            // by (from, lane)
  std::vector<std::deque<Going>> going_;  // by (to, lane)
};

}  // namespace rdusim
