// The limit on open files: links, perf events of each CPU, timers and symbol files each need
// one.
#pragma once

namespace coretap {

/// Raises the soft limit to the hard one. If this process is permitted to, raises both to what
/// large machines need.
void raise_descriptor_limit();
/// For a child, before exec: restores the original limit.
void restore_descriptor_limit();

}  // namespace coretap
