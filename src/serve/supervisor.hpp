// Runs the tools of `coretap serve` and the process that answers requests; restarts those that end.
#pragma once
#include <functional>
#include <string>

#include "serve/config.hpp"

namespace coretap::serve {

struct ServeOptions {
  bool once = false;     ///< print one page and end
  std::string textfile;  ///< not empty: write there instead of listening
  double every = 15;     ///< seconds between writes of the text file; with `once` until the page
};

/// Runs until a signal requests the end; returns the exit status. `load` reads the configuration
/// again on SIGHUP; empty: there is no file.
int supervise(ServeConfig config, const ServeOptions& options,
              const std::function<Result<ServeConfig>()>& load);

}  // namespace coretap::serve
