// Passes the shared filters and the followed command to the kernel program.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "coretap/config.hpp"

namespace coretap {

struct Session;

/// The pid namespace whose ids this process sees; nothing if that is the initial one.
std::optional<ino_t> own_pid_namespace();

/// Removes tasks that do not exist from --pid and --tid, with a note for each; fails if none is
/// left.
Result<std::vector<std::string>> find_tasks(Config::Tasks& tasks);
/// Before load: sets the filter's constants and map sizes. Fails if nothing can match.
Result<void> configure_filters(Session& session);
/// After load: fills in the ids.
Result<void> fill_filters(Session& session);

}  // namespace coretap
