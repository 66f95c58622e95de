// Attaches programs of targets to the places that the plan has found.
#pragma once
#include <cstdint>

#include "coretap/result.hpp"
#include "program/links.hpp"
#include "program/targets.hpp"

struct bpf_program;

namespace coretap {

struct Session;

/// Before load: sets the ids, names and constants that the plan's targets need.
void configure_targets(Session& s);

/// For a program at such places: adds links, copies of the program if each place needs one, and
/// notes on places that the kernel refuses. Fails if it refuses all.
Result<void> attach_targets(Session& s, bpf_program* program, TargetPoint::Kind kind);

/// Hits for which the kernel did not run the program, by its own count (since 6.7).
std::uint64_t missed_at(const Links& links);

}  // namespace coretap
