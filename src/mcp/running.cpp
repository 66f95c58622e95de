#include "mcp/running.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/own_process.hpp"
#include "base/uninterrupted.hpp"
#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"

namespace coretap::mcp {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kToStart = 30 * kSecond;  // to load and attach its programs
constexpr std::uint64_t kToEnd = 3 * kSecond;     // after a signal, to print what it has

Result<void> make_pipe(Fd& from, Fd& to) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  from = Fd(ends[0]);
  to = Fd(ends[1]);
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  return {};
}

}  // namespace

Running::~Running() {
  if (pid_ <= 0 || status_ >= 0) return;
  kill(pid_, SIGKILL);
  uninterrupted([&] { return waitpid(pid_, nullptr, 0); });
}

Result<void> Running::start(const Call& call) {
  Fd to_output, to_errors;
  if (auto r = make_pipe(output_, to_output); !r) return r;
  if (auto r = make_pipe(errors_, to_errors); !r) return r;
  auto pid = start_own_process(call.words, to_output.get(), to_errors.get());
  if (!pid) return pid.error();
  pid_ = *pid;
  end_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!end_) return system_error("cannot wait for a process", errno);
  interrupt_at_ = monotonic_ns() + kToStart + static_cast<std::uint64_t>(seconds_ * kSecond);
  return {};
}

void Running::Text::add(std::string_view bytes, std::size_t most) {
  auto part = bytes.substr(0, most - std::min(most, kept.size()));
  kept += part;
  dropped += bytes.size() - part.size();
}

void Running::read(Fd& from, Text& to, std::size_t most) {
  char bytes[1 << 16];
  while (from) {
    auto got = uninterrupted([&] { return ::read(from.get(), bytes, sizeof bytes); });
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return from.reset();
    to.add({bytes, static_cast<std::size_t>(got)}, most);
    // One that prints without end must not keep others from being read.
    if (static_cast<std::size_t>(got) < sizeof bytes) return;
  }
}

void Running::read() {
  read(output_, out_, kMostOutput);
  read(errors_, err_, kMostErrors);
}

bool Running::is_over() {
  if (status_ < 0) {
    int how = 0;
    auto ended = uninterrupted([&] { return waitpid(pid_, &how, WNOHANG); });
    if (ended == 0) return false;
    status_ = ended < 0 ? kFailed : WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }
  read();
  return true;
}

void Running::stop(std::uint64_t now_ns) {
  if (kill_at_ || status_ >= 0) return;
  kill(pid_, SIGINT);
  kill_at_ = now_ns + kToEnd;
}

std::uint64_t Running::hurry(std::uint64_t now_ns) {
  if (killed_ || status_ >= 0) return UINT64_MAX;
  if (!kill_at_ && now_ns >= interrupt_at_) stop(now_ns);
  if (kill_at_ && now_ns >= kill_at_) {
    kill(pid_, SIGKILL);
    killed_ = true;
    return UINT64_MAX;
  }
  return kill_at_ ? kill_at_ : interrupt_at_;
}

std::string Running::answer() const {
  JsonLine line;
  begin_answer(line, id);
  line.key("result").begin_object().key("content").begin_array();
  auto add = [&](std::string_view text) {
    line.begin_object().text("type", "text").text("text", text).end_object();
  };
  std::string_view text = out_.kept;
  if (out_.dropped) text = text.substr(0, text.rfind('\n') + 1);
  add(text);
  if (out_.dropped)
    add(
        fmt::format("The output is truncated: its last {} bytes are left out. Filters, or fewer "
                    "seconds, make it shorter.",
                    out_.dropped + out_.kept.size() - text.size()));
  if (!err_.kept.empty()) add(err_.kept);
  if (killed_) add("It took too long, and was killed.");
  line.end_array().boolean("isError", status_ != kOk).end_object();
  return std::string(line.finish());
}

}  // namespace coretap::mcp
