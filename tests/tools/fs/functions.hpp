// Tools that have two ways to see the operations of a file system (bpf/lib/fs_call.bpf.h).
#pragma once
#include <sys/utsname.h>

#include <cstdio>
#include <string>

#include "../harness.hpp"

namespace coretap::tooltest {

/// Did programs at functions make this report?
inline bool uses_functions(const Report& report) {
  for (auto& hook : report.header["hooks"].items())
    for (auto& attached : hook["attached"].items())
      if (attached.str().starts_with("fentry/")) return true;
  return false;
}

/// Must they, for a type whose module says what types its functions have?
inline bool has_functions(const std::string& type) {
  utsname u{};
  int major = 0, minor = 0;
  if (type == "fuse" || type == "nfs" || ::uname(&u) ||
      std::sscanf(u.release, "%d.%d", &major, &minor) != 2)
    return false;
  return (major > 5 || (major == 5 && minor >= 17)) && !slurp("/sys/kernel/btf/" + type).empty();
}

}  // namespace coretap::tooltest
