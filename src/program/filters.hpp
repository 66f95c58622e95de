// The shared filters and the followed command, from the command line into the kernel program.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

class Config;
struct Session;

/// The pid namespace by which this process sees others; nothing if that is the first one.
std::optional<ino_t> own_pid_namespace();

/// Leaves out of --pid and --tid what is not there, with a note for each; refuses them where none
/// is left.
Result<std::vector<std::string>> find_tasks(Config& config);
/// Before load: the filter's constants and the sizes of its maps. Refuses what can match nothing.
Result<void> configure_filters(Session& session, pid_t command);
/// After load: the ids.
Result<void> fill_filters(Session& session, pid_t command);

}  // namespace coretap
