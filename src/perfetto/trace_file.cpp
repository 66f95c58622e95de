#include "perfetto/trace_file.hpp"

#include <poll.h>
#include <sys/utsname.h>

#include <ctime>
#include <utility>

#include "base/present_clock.hpp"
#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "kernel/kernel.hpp"

namespace coretap::perfetto {

namespace {

constexpr std::size_t kPacked = 1 << 18;    // bytes that are written at once
constexpr std::size_t kMostKept = 8 << 20;  // that a reader has not taken
constexpr int kLastWaitMs = 1000;           // for a reader, at the end

std::uint64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

/// All at one moment, as nearly as possible: this task may be preempted between the readings.
Clocks read_clocks() {
  if (replaying()) {
    const auto now = monotonic_ns();  // a recording does not have the time since boot
    return {now, now, now + static_cast<std::uint64_t>(wall_ahead_ns())};
  }
  Clocks best;
  std::uint64_t within = UINT64_MAX;
  for (int attempt = 0; attempt < 5; attempt++) {
    auto before = present_monotonic_ns();
    auto boot = read_clock(CLOCK_BOOTTIME), real = read_clock(CLOCK_REALTIME);
    auto took = present_monotonic_ns() - before;
    if (took >= within) continue;
    within = took;
    best = {before + took / 2, boot, real};
  }
  return best;
}

Clocks recorded_clocks(const Clocks& now) {
  const auto answer = recalled(Ask::clocks, "", [&] {
    std::string bytes;
    for (auto clock : {now.monotonic, now.boot, now.real}) put_varint(bytes, clock);
    return bytes;
  });
  std::string_view bytes = answer;
  Clocks then;
  const bool known = take_varint(bytes, then.monotonic) && take_varint(bytes, then.boot) &&
                     take_varint(bytes, then.real);
  return known ? then : now;
}

bool differ(const Clocks& last, const Clocks& now) {
  constexpr std::uint64_t kMostNs = 10'000'000'000, kJumpNs = 1'000'000;
  const auto passed = now.monotonic - last.monotonic;
  auto jumped = [&](std::uint64_t by) { return by - passed + kJumpNs > 2 * kJumpNs; };
  return passed >= kMostNs || jumped(now.boot - last.boot) || jumped(now.real - last.real);
}

System this_system() {
  const auto words = unpacked(recalled(Ask::kernel, "system", [] {
    utsname is{};
    if (uname(&is) != 0) return std::string();
    return packed({is.sysname, is.release, is.version, is.machine});
  }));
  constexpr std::size_t kWords = 4;
  if (words.size() == kWords) return {words[0], words[1], words[2], words[3]};
  if (!replaying()) return {};
  // Recorded without a trace.
  return {.name = "Linux", .release = kernel_release(), .version = "", .machine = ""};
}

void TraceFile::open(const std::string& path) {
  auto file = NewFile::create(path, NewFile::For::owner);
  if (!file) {
    failed_ = file.error();
    return;
  }
  own_ = std::move(*file);
  open_part(*own_);
}

void TraceFile::open_part(NewFile& file) {
  to_ = &file;
  gzip_.emplace(Compression::fast);
}

void TraceFile::add(std::string_view bytes) {
  if (failed_) return;
  if (!gzip_->add(bytes, packed_)) failed_ = Error{"cannot compress the trace", "zlib failed"};
  if (packed_.size() >= kPacked) write(false);
}

void TraceFile::finish() {
  if (failed_) return;
  if (!gzip_->finish(packed_)) failed_ = Error{"cannot compress the trace", "zlib failed"};
  write(true);
  if (failed_ || !own_) return;
  if (auto r = own_->finish(); !r) failed_ = r.error();
}

void TraceFile::write(bool all) {
  std::string_view rest = packed_;
  while (!failed_) {
    const auto before = rest.size();
    if (auto r = to_->add_now(rest); !r) failed_ = r.error();
    bytes_ += before - rest.size();
    if (rest.empty() || !all) break;
    pollfd reader{.fd = to_->fd(), .events = POLLOUT, .revents = 0};
    if (poll(&reader, 1, kLastWaitMs) <= 0) break;
  }
  if (!failed_ && (rest.size() > kMostKept || (all && !rest.empty())))
    failed_ = Error{"cannot write the trace", "its reader is too slow"};
  packed_.erase(0, failed_ ? packed_.size() : packed_.size() - rest.size());
}

}  // namespace coretap::perfetto
