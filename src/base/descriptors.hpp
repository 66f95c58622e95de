// The limit of open files: links, perf events of each CPU, timers and files of symbols each take
// one.
#pragma once

namespace coretap {

/// Raises the soft limit to the hard one, and both to what traced machines need where this process
/// may do so.
void raise_descriptor_limit();
/// For a child, before exec: as it was before.
void restore_descriptor_limit();

}  // namespace coretap
