#include "tools/general/funcinterval/limits.hpp"

#include <fmt/format.h>

#include "general/funcinterval.h"
#include "program/session.hpp"

namespace coretap {

Result<void> funcinterval_limits(Session& s) {
  const auto targets = s.plan.targets.names.size();
  if (s.config.given("per-thread") && targets > FUNCINTERVAL_TARGETS)
    return Error{fmt::format("--per-thread with {} targets", targets),
                 fmt::format("each thread has room for {}", FUNCINTERVAL_TARGETS),
                 "name fewer, or leave out --per-thread", kUsage};
  if (!s.kernel.has_exchange() && !s.config.given("per-thread") && !s.config.given("per-cpu"))
    s.plan.limits.emplace_back(
        "this kernel has no atomic exchange: when two CPUs call at the same moment, both may count "
        "the time since the same call");
  return {};
}

}  // namespace coretap
