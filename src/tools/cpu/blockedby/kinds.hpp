// Objects that tasks wait for, in words, and reasons of waits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/fields.hpp"
#include "cpu/blockedby.h"
#include "stacks/wait_rules.hpp"

namespace coretap::blocked {

/// "mutex", "rwsem", "futex mutex"; empty: the object is known by the reason of the wait only.
std::string_view object_name(std::uint32_t kind);

/// The index of the native call of this name (WALL_CALL); CALLS: this machine has none.
std::uint32_t call_index(std::string_view name);

/// "a mutex", "data in a pipe": after "waits for".
std::string waits_for(std::uint32_t kind, std::size_t reason);

/// The command name of a thread that still exists; empty: it does not.
std::string comm_of(std::uint32_t tid);

/// "1.234 s", "12.3 ms", "45 us".
std::string short_time(std::uint64_t ns);

}  // namespace coretap::blocked
