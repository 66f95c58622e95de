// Where file systems keep the identity of a file (bpf/lib/paths/file_identity.bpf.h).
#pragma once

namespace coretap {

struct Session;

/// Sets the offsets as constants, if the programs have them and the types are there: those of
/// modules have been since 5.11.
void set_file_identity(Session& session);

}  // namespace coretap
