// The limit on open files: links, perf events of each CPU, timers and symbol files each need
// one.
#pragma once
#include <string>

#include "coretap/result.hpp"

namespace coretap {

/// True for errors of limits on open files.
bool lacks_descriptors(int error);

/// A call has failed with this errno. Where a limit on open files is the reason, the hint says so,
/// and the status is kFailed: it is not that the kernel lacks something.
Error system_error(std::string what, int error, int status = kFailed);

/// Raises the soft limit to the hard one. If this process is permitted to, raises both to what
/// large machines need.
void raise_descriptor_limit();
/// For a child, before exec: restores the original limit.
void restore_descriptor_limit();

}  // namespace coretap
