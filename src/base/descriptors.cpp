#include "base/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

namespace coretap {

namespace {

constexpr rlim_t kEnough = 65536;  // several per CPU (1,000 CPUs), and tables of thousands of files

std::optional<rlimit> before;

}  // namespace

void raise_descriptor_limit() {
  rlimit now{};
  if (before || getrlimit(RLIMIT_NOFILE, &now)) return;
  before = now;
  const auto most = std::max(now.rlim_max, kEnough);
  rlimit wanted{most, most};
  if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) return;
  wanted = {now.rlim_max, now.rlim_max};
  setrlimit(RLIMIT_NOFILE, &wanted);
}

void restore_descriptor_limit() {
  if (before) setrlimit(RLIMIT_NOFILE, &*before);
}

}  // namespace coretap
