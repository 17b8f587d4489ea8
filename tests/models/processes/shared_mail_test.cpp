// Messages between processes: whole, in order, through rings that are smaller than they are; and no process is left.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "models/processes/crew.h"
#include "models/processes/shared_mail.h"

namespace rdusim::shared_mail_test {
namespace {

using Message = std::vector<std::byte>;

// Message `n` of a process: its length and bytes follow from both, with periods that divide no ring.
Message message(std::uint32_t from, std::uint32_t n) {
  Message m((n * 7919 + from * 104729) % 50021);
  for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<std::byte>((i * 31 + n * 17 + from * 13) % 251);
  return m;
}

// Sends `count` messages to every other one, and takes as many. True: each came as it was sent.
bool exchange(SharedMail& mail, std::uint32_t count) {
  std::vector<std::uint32_t> got(mail.size());
  std::uint32_t sent = 0;
  bool right = true;
  Message in;
  while (true) {
    const std::uint32_t seen = mail.news();
    mail.pump();
    bool moved = false;
    if (sent < count) {
      const Message m = message(mail.rank(), sent++);
      const std::span<const std::byte> parts[] = {std::span(m).first(m.size() / 3), std::span(m).subspan(m.size() / 3)};
      for (std::uint32_t to = 0; to < mail.size(); ++to)
        if (to != mail.rank()) mail.send(to, SharedMail::mail, parts);
      moved = true;
    }
    bool all = sent == count && !mail.unsent();
    for (std::uint32_t from = 0; from < mail.size(); ++from) {
      if (from == mail.rank()) continue;
      while (got[from] < count && mail.receive(from, SharedMail::mail, in)) {
        right = right && in == message(from, got[from]++);
        moved = true;
      }
      all = all && got[from] == count;
    }
    if (all) return right;
    if (!moved) mail.wait(seen);
  }
}

TEST_CASE("messages come whole and in order, through rings smaller than they are, whoever sends to whom") {
  SharedMail mail(3, 4096, 4096);
  REQUIRE(mail.mapped());
  std::vector<pid_t> children;
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(60);
      mail.is(rank);
      _exit(exchange(mail, 300) ? 0 : 1);
    }
    children.push_back(pid);
  }
  CHECK(exchange(mail, 300));
  for (const pid_t pid : children) {
    int status = 1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("who waits sleeps until there is news, and not much longer than its limit where there is none") {
  SharedMail mail(2);
  REQUIRE(mail.mapped());
  const auto began = std::chrono::steady_clock::now();
  mail.wait(mail.news());
  const double slept = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  CHECK(slept > 0.04);
  CHECK(slept < 5);
  // News since it was asked for: no sleep.
  const std::uint32_t seen = mail.news();
  const pid_t pid = fork();
  if (pid == 0) {
    mail.is(1);
    const std::byte one{1};
    const std::span<const std::byte> parts[] = {std::span(&one, 1)};
    mail.send(0, SharedMail::mail, parts);
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  CHECK(mail.news() != seen);
  Message in;
  CHECK(mail.receive(1, SharedMail::mail, in));
  CHECK(in == Message{std::byte{1}});
  CHECK_FALSE(mail.receive(1, SharedMail::mail, in));
}

bool lives(pid_t pid) {
  return kill(pid, 0) == 0;
}

TEST_CASE("a process that is killed is lost, by number and signal, and the others go with the crew") {
  std::vector<pid_t> pids;
  {
    auto crew = Crew::start(4);
    REQUIRE(crew);
    if (crew->rank() != 0) {
      while (true) pause();
    }
    pids = crew->children();
    REQUIRE(pids.size() == 3);
    CHECK_FALSE(crew->lost());
    kill(pids[1], SIGKILL);
    std::optional<std::string> how;
    for (int i = 0; i < 500 && !how; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      how = crew->lost();
    }
    REQUIRE(how);
    CHECK(*how == "process 2 of 4 was killed by signal 9");
    CHECK(crew->children() == std::vector<pid_t>{pids[0], pids[2]});
    CHECK_FALSE(crew->lost());  // told once
    CHECK(lives(pids[0]));
  }
  for (const pid_t pid : pids) CHECK_FALSE(lives(pid));
}

TEST_CASE("a process that ends with another status than 0 is lost, one that ends with 0 is done") {
  auto crew = Crew::start(3);
  REQUIRE(crew);
  if (crew->rank() != 0) _exit(crew->rank() == 1 ? 0 : 7);
  std::optional<std::string> how;
  for (int i = 0; i < 500 && !how; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    how = crew->lost();
  }
  REQUIRE(how);
  CHECK(*how == "process 2 of 3 ended with status 7");
}

TEST_CASE("children die with the process that started them") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    auto crew = Crew::start(2);
    if (crew->rank() != 0) {
      while (true) pause();
    }
    const pid_t child = crew->children().front();
    if (write(ends[1], &child, sizeof child) != sizeof child) _exit(1);
    while (true) pause();
  }
  pid_t child = -1;
  REQUIRE(read(ends[0], &child, sizeof child) == sizeof child);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  // It is nobody's child now, and may stay a zombie until it is waited for: what counts is that it no longer runs.
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    char state = 'Z';
    if (std::FILE* f = std::fopen(("/proc/" + std::to_string(child) + "/stat").c_str(), "r")) {
      if (std::fscanf(f, "%*d %*s %c", &state) != 1) state = '?';
      std::fclose(f);
    }
    gone = state == 'Z' || state == 'X';
  }
  CHECK(gone);
}

}  // namespace
}  // namespace rdusim::shared_mail_test
