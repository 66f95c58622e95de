// Attaches programs of ON_TARGETS to the places that the plan has found.
#pragma once
#include <cstdint>

#include "coretap/result.hpp"
#include "program/links.hpp"

struct bpf_program;

namespace coretap {

struct Session;

/// Before load: the numbers, names and constants that the plan's targets need.
void configure_targets(Session& s);

/// Is it such a program?
bool is_target(const bpf_program* program);

/// Adds links, copies of the program where each place needs one, and words on places that the
/// kernel refuses. Fails if it refuses all.
Result<void> attach_targets(Session& s, bpf_program* program);

/// Calls that the kernel did not hand to programs, by its own count (since 6.7).
std::uint64_t missed_at(const Links& links);

}  // namespace coretap
