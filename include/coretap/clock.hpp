// Times: the kernel's monotonic nanoseconds and the wall clock.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

/// The time that bpf_ktime_get_ns() returns, in any time namespace.
std::uint64_t monotonic_ns();

/// Why the offset of this time namespace's clock is not known (errno): the times above are wrong
/// then, unless it is the first namespace. 0: it is known.
int clock_error();

/// Nanoseconds since 1970 for a moment of the monotonic clock.
std::int64_t since_1970_ns(std::uint64_t monotonic);

/// The offset of the wall clock from the monotonic clock now.
std::int64_t wall_ahead_ns();

// For recordings (src/record):
/// monotonic_ns() returns this moment until release_clock(), so that a recorded report and the one
/// shown from the recording have the same times.
void hold_clock(std::uint64_t monotonic);
void release_clock();
/// The wall clock is that much ahead until release_clock(), not as the system says.
void set_wall_ahead(std::int64_t ns);

/// "13:05:59", local time.
std::string wall_time();

/// "13:05:59.123", local time, for a moment of the monotonic clock.
std::string wall_time(std::uint64_t monotonic);

/// The same in UTC.
std::string utc_time(std::uint64_t monotonic);

/// ISO 8601 with microseconds and zone, for a moment of the monotonic clock. No further digits:
/// many parsers accept six at most (RFC 5424, %f of Python).
std::string iso_time(std::uint64_t monotonic);

/// Nanoseconds since 1970 of a text that iso_time() made; nothing: it has another form.
std::optional<std::uint64_t> time_in_iso(std::string_view text);

}  // namespace coretap
