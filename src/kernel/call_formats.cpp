#include "coretap/call_formats.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/parse.hpp"
#include "coretap/syscalls.hpp"
#include "coretap/tracepoint_format.hpp"
#include "kernel/kernel.hpp"
#include "lib/core/shared.h"

namespace coretap {

namespace {

constexpr std::uint64_t kLooksLikeAddress = 1ULL << 32;
constexpr int kMostErrno = 4095;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string decimal(std::string_view type, std::uint64_t value) {
  if (type.starts_with("unsigned int") ||
      is_one_of(type, {"u32", "uid_t", "gid_t", "qid_t", "__u32"}))
    return fmt::format("{}", static_cast<std::uint32_t>(value));
  if (is_one_of(type, {"int", "pid_t", "key_t", "clockid_t", "const clockid_t", "mqd_t", "s32",
                       "timer_t", "key_serial_t", "rwf_t", "__s32", "aio_context_t *"}))
    return fmt::format("{}", static_cast<std::int32_t>(value));
  if (is_one_of(type, {"long", "off_t", "loff_t", "ssize_t", "s64", "__s64"}))
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return value < kLooksLikeAddress ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

/// The format files are those of 64-bit calls.
std::string type_in_32_bits(std::string type) {
  if (is_one_of(type, {"long", "off_t", "ssize_t"})) return "int";
  if (is_one_of(type, {"unsigned long", "size_t"})) return "unsigned int";
  return type;
}

constexpr std::uint32_t first_arguments(std::size_t count) { return (1U << count) - 1; }

/// By operation, from FUTEX_WAIT to FUTEX_LOCK_PI2. Source: do_futex() in kernel/futex/syscalls.c.
constexpr std::uint8_t kUsedByFutex[] = {0b001111, 0b000111, 0b000111, 0b011111, 0b111111,
                                         0b111111, 0b001011, 0b000011, 0b000011, 0b101111,
                                         0b100111, 0b011111, 0b111111, 0b001011};

bool reads_argument_of_fcntl(int command) {
  for (int without : {F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS})
    if (command == without) return false;
  return true;
}

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
    if (space == field.declaration.npos || all.size() == kCallArguments) return;
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
    auto arguments = parse_call_format(*format);
    if (call.compat)
      for (auto& argument : arguments) argument.type = type_in_32_bits(argument.type);
    known_[static_cast<std::uint32_t>(call.number) + (call.compat ? CALLS_COMPAT : 0)] =
        std::move(arguments);
  }
  return all;
}

const CallArguments* CallFormats::find(std::uint32_t index) const {
  auto found = known_.find(index);
  return found == known_.end() ? nullptr : &found->second;
}

std::uint32_t used_arguments(std::string_view call, const CallArguments* arguments,
                             std::span<const std::uint64_t, kCallArguments> values) {
  auto all = first_arguments(arguments ? std::min<std::size_t>(arguments->size(), kCallArguments)
                                       : kCallArguments);
  if (call == "openat") return all & first_arguments(open_reads_mode(values[2]) ? 4 : 3);
  if (call == "open") return all & first_arguments(open_reads_mode(values[1]) ? 3 : 2);
  if (call == "fcntl" || call == "fcntl64")
    return all & first_arguments(reads_argument_of_fcntl(static_cast<int>(values[1])) ? 3 : 2);
  if (call == "mremap")
    return all & first_arguments(values[3] & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? 5 : 4);
  auto operation = values[1] & FUTEX_CMD_MASK;
  if ((call == "futex" || call == "futex_time64") && operation < std::size(kUsedByFutex))
    return all & kUsedByFutex[operation];
  return all;
}

std::string argument_text(const CallArgument& argument, std::uint64_t value) {
  if (argument.is_pointer()) return value ? fmt::format("{:#x}", value) : "NULL";
  if (argument.name.ends_with("fd")) {  // even if the kernel's type is unsigned
    auto fd = static_cast<std::int32_t>(value);
    return fd == AT_FDCWD ? "AT_FDCWD" : fmt::format("{}", fd);
  }
  if (argument.type == "umode_t" || argument.name == "mode")
    return value ? fmt::format("{:#o}", static_cast<std::uint32_t>(value)) : "0";
  if (argument.name == "sig" && value && value < 65) return signal_name(static_cast<int>(value));
  if (argument.name.ends_with("flags") && value > 9) return fmt::format("{:#x}", value);
  return decimal(argument.type, value);
}

int result_error(std::int64_t result) {
  return result < 0 && result >= -kMostErrno ? static_cast<int>(-result) : 0;
}

std::string result_text(std::int64_t result) {
  auto error = result_error(result);
  if (auto name = restart_name(error); !name.empty())
    return fmt::format("? {} (to be restarted, unless a handler ends it)", name);
  if (error) {
    auto* words = strerrordesc_np(error);
    return fmt::format("-1 {} ({})", error_name(error), words ? words : "unknown error");
  }
  auto value = static_cast<std::uint64_t>(result);
  return value >= kLooksLikeAddress ? fmt::format("{:#x}", value) : fmt::format("{}", result);
}

}  // namespace coretap
