#include "base/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace coretap {

namespace {

constexpr rlim_t kEnough = 65536;  // several per CPU (1,000 CPUs), and tables of thousands of files

std::optional<rlimit> before;

}  // namespace

bool lacks_descriptors(int error) { return error == EMFILE || error == ENFILE; }

Error system_error(std::string what, int error, int status) {
  Error result{std::move(what), strerror(error), {}, status};
  if (!lacks_descriptors(error)) return result;
  result.hint = error == EMFILE ? "raise the limit of open files (ulimit -n)"
                                : "raise the machine's limit of open files (sysctl fs.file-max)";
  result.status = kFailed;
  return result;
}

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
