#include "reports/own_activity.hpp"

#include <unistd.h>

#include <algorithm>

namespace coretap {

void OwnActivity::configure(const Session& s) {
  auto own = static_cast<std::uint32_t>(getpid());
  bool asked = s.config.given("include-self") || std::ranges::count(s.config.tasks.pids, own);
  own_ = asked ? 0 : own;
}

void OwnActivity::configure(const Session& s, const std::vector<Field>& fields) {
  configure(s);
  auto pid = std::ranges::find_if(
      fields, [](auto& f) { return f.key == "pid" && f.only_with != kNamedByOnly; });
  if (pid != fields.end()) pid_ = *pid;
}

}  // namespace coretap
