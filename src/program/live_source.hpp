// How the kernel's values are summed.
#pragma once
#include "program/source.hpp"

namespace coretap {

/// The counters of a value as the kernel copies it (value_bytes() in program/maps.hpp), summed over
/// all CPUs if it has one for each, including operations that are in progress.
CounterSource::Counters sum_of_cpus(const CounterShape& shape, const char* value, std::size_t cpus,
                                    std::uint64_t now_ns);
/// The largest values of this interval, one for each of CounterShape::largest.
CounterSource::Counters largest_of_cpus(const CounterShape& shape, const char* value,
                                        std::size_t cpus, std::uint32_t interval);

}  // namespace coretap
