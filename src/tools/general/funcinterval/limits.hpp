#pragma once
#include "coretap/result.hpp"

namespace coretap {

struct Session;

/// Checks the number of targets; adds limitations of this kernel.
Result<void> funcinterval_limits(Session& session);

}  // namespace coretap
