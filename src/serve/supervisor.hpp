// Runs the tools of `coretap serve` and the process that answers requests; starts again what ends.
#pragma once
#include <functional>
#include <string>

#include "serve/config.hpp"

namespace coretap::serve {

struct ServeOptions {
  std::string file;      ///< read again on SIGHUP; empty: no file
  bool once = false;     ///< print one page and end
  std::string textfile;  ///< instead of a socket
  double every = 15;     ///< seconds between pages of the text file; with `once` until the page
};

/// Until a signal asks to end; the exit status.
int supervise(ServeConfig config, const ServeOptions& options,
              const std::function<Result<ServeConfig>()>& load);

}  // namespace coretap::serve
