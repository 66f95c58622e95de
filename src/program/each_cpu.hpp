// Programs that the loader runs, rather than an event: section "run/each_cpu" at the start, section
// "run/asked" as it needs an answer.
#pragma once
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

struct Session;

inline constexpr std::string_view kRun = "run", kEachCpu = "each_cpu";

/// Runs it once on each CPU that is online, in an interrupt of what runs there, which is its
/// current task. A program that is not loaded does nothing.
Result<void> run_on_each_cpu(const Session& s, std::string_view program);
/// The same with all programs of section "run/each_cpu", when all is attached.
Result<void> start_on_each_cpu(const Session& s);

}  // namespace coretap
