#include "reports/own_activity.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/recall.hpp"
#include "coretap/parse.hpp"

namespace coretap {

void OwnActivity::configure(const Session& s) {
  const auto own = static_cast<std::uint32_t>(parse_unsigned(recalled(Ask::own_process, "", [] {
                                                return std::to_string(getpid());
                                              })).value_or(0));
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
