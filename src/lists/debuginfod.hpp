// Debug files from the servers in DEBUGINFOD_URLS. The program debuginfod-find (of elfutils) asks
// them: its library would bring a TLS library into a process that may be root's.
#pragma once
#include <string>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// An error if there are no servers.
Result<void> check_debuginfod();

/// The debug file of the program at `path`, which has this build id. The caller has to check that
/// it is the right file. SIGINT and SIGTERM end the download, and then this process.
Result<Fd> ask_debuginfod(const std::string& path, const std::string& build_id);

}  // namespace coretap
