// Runs the tools of `coretap serve` and the process that answers requests; starts again what ends.
#pragma once
#include <functional>
#include <string>

#include "serve/config.hpp"

namespace coretap::serve {

struct ServeOptions {
  bool once = false;     ///< print one page and end
  std::string textfile;  ///< instead of a socket
  double every = 15;     ///< seconds between pages of the text file; with `once` until the page
};

/// Until a signal asks to end; the exit status. `load` reads the configuration again on SIGHUP;
/// empty: there is no file.
int supervise(ServeConfig config, const ServeOptions& options,
              const std::function<Result<ServeConfig>()>& load);

}  // namespace coretap::serve
