// Programs that the loader runs: section "run/each_cpu" once at the start, section "run/asked" when
// it needs an answer.
#pragma once
#include <string_view>

#include "coretap/object_names.hpp"
#include "coretap/result.hpp"

namespace coretap {

struct Session;

inline constexpr std::string_view kRun = "run", kEachCpu = "each_cpu";

/// Runs the program once on each online CPU, in an interrupt: its current task is the one that the
/// CPU runs. Does nothing for a program that is not loaded.
Result<void> run_on_each_cpu(const Session& s, ProgramName program);
/// The same with all programs of section "run/each_cpu"; call it when everything is attached.
Result<void> start_on_each_cpu(const Session& s);

}  // namespace coretap
