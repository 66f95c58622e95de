#include "tools/syscall/traceloop/call_formats.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/syscalls.hpp"
#include "coretap/tracepoint_format.hpp"
#include "kernel/kernel.hpp"
#include "syscall/traceloop.h"

namespace coretap {

namespace {

/// Calls whose tracepoint is named after the kernel function instead of the call; the second half
/// are calls of the table for 32-bit programs.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"stat", "newstat"},
    {"lstat", "newlstat"},
    {"fstat", "newfstat"},
    {"uname", "newuname"},
    {"sendfile", "sendfile64"},
    {"umount2", "umount"},
    {"stat64", "newstat"},
    {"lstat64", "newlstat"},
    {"fstat64", "newfstat"},
    {"fstatat64", "newfstatat"},
    {"mmap2", "mmap_pgoff"},
    {"_newselect", "select"},
    {"_llseek", "llseek"},
    {"ugetrlimit", "getrlimit"},
    {"getuid32", "getuid"},
    {"getgid32", "getgid"},
    {"geteuid32", "geteuid"},
    {"getegid32", "getegid"},
    {"chown32", "chown"},
    {"lchown32", "lchown"},
    {"fchown32", "fchown"},
    {"futex_time64", "futex"},
    {"clock_gettime64", "clock_gettime"},
    {"fcntl64", "fcntl"},
    {"statfs64", "statfs"},
};

}  // namespace

bool CallArgument::is_text() const {
  if (type != "char *" && type != "const char *") return false;
  constexpr std::string_view kBuffers[] = {"buf",     "ubuf",  "u_msg_ptr", "optval",
                                           "shmaddr", "list",  "_payload",  "vec",
                                           "addr",    "value", "buffer",    "rmtp"};
  return std::find(std::begin(kBuffers), std::end(kBuffers), name) == std::end(kBuffers);
}

CallArguments parse_call_format(std::string_view format) {
  CallArguments all;
  each_tracepoint_field(format, [&](const TracepointField& field) {
    auto space = field.declaration.rfind(' ');
    if (space == field.declaration.npos || all.size() == CALL_ARGS) return;
    auto name = field.declaration.substr(space + 1);
    // The call number; newer kernels also add fields for the contents of strings.
    if (name.starts_with("common_") || name.starts_with("__")) return;
    all.push_back({std::string(field.declaration.substr(0, space)), std::string(name)});
  });
  return all;
}

Result<void> CallFormats::read() {
  if (auto directory = tracefs(); !directory) return directory.error();
  Result<void> all;
  for (auto& call : all_syscalls()) {
    std::string_view name = call.name;
    for (auto& [ours, theirs] : kOtherNames)
      if (name == ours) name = theirs;
    auto format = tracepoint_file("syscalls", fmt::format("sys_enter_{}", name), "format");
    if (!format) {
      if (all && format.error().status == kFailed) all = format.error();
      continue;
    }
    known_[static_cast<std::uint32_t>(call.number) + (call.compat ? CALLS_COMPAT : 0)] =
        parse_call_format(*format);
  }
  return all;
}

const CallArguments* CallFormats::find(std::uint32_t index) const {
  auto found = known_.find(index);
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace coretap
