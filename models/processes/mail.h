// Byte messages between the processes of one run, whatever carries them: shared memory (shared_mail.h) on one computer, MPI
// (mpi/mpi_mail.cpp) on several.
//
//   order    messages of a lane from one process to another come whole, in the order in which they were sent
//   waiting  send() never waits: what does not go at once is kept, and moved on by pump(). wait() returns when something
//            may have come or gone, after 50 ms at the latest
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rdusim {

class Mail {
 public:
  enum Lane : std::uint8_t {
    mail,     // between any two
    records,  // to process 0 only: large
  };
  static constexpr std::size_t lanes = 2;

  virtual ~Mail() = default;
  virtual std::uint32_t size() const = 0;
  virtual std::uint32_t rank() const = 0;

  // The parts one after the other are one message. Requires to != rank(), and to == 0 on the lane of records.
  virtual void send(std::uint32_t to, Lane lane, std::span<const std::span<const std::byte>> parts) = 0;
  // The oldest message that has come whole replaces `message`.
  virtual bool receive(std::uint32_t from, Lane lane, std::vector<std::byte>& message) = 0;
  virtual void pump() = 0;
  virtual bool unsent() const = 0;

  // To be asked before anything is received or pumped, so that wait() misses nothing that came since.
  virtual std::uint32_t news() = 0;
  virtual void wait(std::uint32_t seen) = 0;

  // Process 0 has all the others stop where they are; they ask whether it did. Where they are its children (crew.h) it
  // ends them instead, and this does nothing.
  virtual void order_stop() {}
  virtual bool stop_ordered() { return false; }
  // Each process, once, when it has nothing more to say and waits for nothing: what it sent has gone.
  virtual void leave() = 0;
};

}  // namespace rdusim
