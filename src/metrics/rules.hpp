// Prometheus alert rules about coretap itself: `coretap serve --print rules`. Alerts about the
// host's metrics are left to its owner.
#pragma once
#include <string>

namespace coretap::metrics {

/// A rule file in YAML for Prometheus and compatible programs.
std::string rules();

}  // namespace coretap::metrics
