#include "record/segments.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "coretap/clock.hpp"

namespace coretap::record {

std::string segment_name(std::string_view tool, std::uint64_t number) {
  return fmt::format("{}.{:06}.ctr", tool, number);
}

Result<void> Segments::begin_next(Writer& to, std::uint64_t now_ns) {
  constexpr std::int64_t kLeast = 64 << 10;
  state_.closed = state_.segment.load();
  if (shared_.full || shared_.left < kLeast) {
    wake();
    return Error{fmt::format("cannot write {}", name_), "there is no space left"};
  }
  if (!run_) run_ = static_cast<std::uint64_t>(since_1970_ns(now_ns)) << 8 | (now_ns & 255);
  began_ns_ = now_ns;
  followed_ = state_.wanted;
  const auto number = state_.segment + 1;
  const auto name = segment_name(name_, number);
  if (auto opened = to.open_new(directory_, name, *this); !opened) return opened;
  if (to.failed()) {
    ::unlinkat(directory_, name.c_str(), 0);
    give_back(in_blocks(to.bytes()));
    return to.error();
  }
  state_.segment = number;
  wake();
  return {};
}

bool Segments::take(std::uint64_t bytes) {
  const auto more = static_cast<std::int64_t>(bytes);
  const auto left = shared_.full ? -1 : shared_.left.fetch_sub(more) - more;
  if (left < 0) {
    if (!shared_.full) shared_.left += more;
    wake();
    return false;
  }
  state_.bytes += bytes;
  if (left < shared_.reserve) wake();
  return true;
}

bool Segments::due(const Writer& to, std::uint64_t now_ns) const {
  // Timers are early or late by some milliseconds.
  constexpr std::uint64_t kLate = 100'000'000;
  return now_ns - began_ns_ + kLate >= limits_.ns || followed_ != state_.wanted || to.failed() ||
         too_large(to);
}

void Segments::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

}  // namespace coretap::record
