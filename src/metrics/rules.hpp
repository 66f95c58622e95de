// Alert rules of Prometheus about coretap itself: `coretap serve --print rules`. What the metrics
// mean for a host is its owner's to say.
#pragma once
#include <string>

namespace coretap::metrics {

/// A file of rules as Prometheus and those that read its rules take it, in YAML.
std::string rules();

}  // namespace coretap::metrics
