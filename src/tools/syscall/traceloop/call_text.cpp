#include "tools/syscall/traceloop/call_text.hpp"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/config.hpp"
#include "kernel/syscalls.hpp"
#include "text/names.hpp"
#include "text/sanitize.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kLooksLikeAddress = 1ULL << 32;
constexpr int kMostErrno = 4095;

constexpr int kLargeFile = 0100000;  // open(2) of 64-bit programs has it without being asked
constexpr std::pair<std::string_view, int> kOpenFlags[] = {
    {"O_CREAT", O_CREAT},        {"O_EXCL", O_EXCL},       {"O_NOCTTY", O_NOCTTY},
    {"O_TRUNC", O_TRUNC},        {"O_APPEND", O_APPEND},   {"O_NONBLOCK", O_NONBLOCK},
    {"O_SYNC", O_SYNC},          {"O_DSYNC", O_DSYNC},     {"O_DIRECT", O_DIRECT},
    {"O_LARGEFILE", kLargeFile}, {"O_TMPFILE", O_TMPFILE}, {"O_DIRECTORY", O_DIRECTORY},
    {"O_NOFOLLOW", O_NOFOLLOW},  {"O_NOATIME", O_NOATIME}, {"O_CLOEXEC", O_CLOEXEC},
    {"O_PATH", O_PATH},          {"O_ASYNC", O_ASYNC}};

/// As C would write it, whatever it holds.
std::string quoted(const CallText& text) {
  std::string out = "\"";
  std::string_view rest = text.bytes;
  std::string escaped;
  for (char c : rest) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  append_printable(out, escaped);
  return out + (text.cut ? "\"..." : "\"");
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string decimal(std::string_view type, std::uint64_t value) {
  if (type.starts_with("unsigned int") || one_of(type, {"u32", "uid_t", "gid_t", "qid_t", "__u32"}))
    return fmt::format("{}", static_cast<std::uint32_t>(value));
  if (one_of(type, {"int", "pid_t", "key_t", "clockid_t", "const clockid_t", "mqd_t", "s32",
                    "timer_t", "key_serial_t", "rwf_t", "__s32", "aio_context_t *"}))
    return fmt::format("{}", static_cast<std::int32_t>(value));
  if (one_of(type, {"long", "off_t", "loff_t", "ssize_t", "s64", "__s64"}))
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return value < kLooksLikeAddress ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

}  // namespace

CallRecord CallRecord::of(const std::vector<record_slot>& slots) {
  CallRecord record;
  if (slots.empty()) return record;
  record.call = slots[0].call;
  record.flags = slots[0].flags;
  for (std::size_t i = 1; i < slots.size(); i++) {
    auto& slot = slots[i];
    if (slot.arg >= CALL_ARGS) continue;
    auto& text = record.texts[slot.arg];
    if (!text) text.emplace();
    auto bytes = std::min<std::size_t>(slot.bytes, RECORD_BYTES);
    text->bytes.append(slot.text, bytes);
    text->cut = slot.flags & RECORD_CUT;
    if (text->cut && text->bytes.empty()) text->readable = false;
  }
  return record;
}

std::string open_flags(std::uint64_t flags) {
  auto rest = static_cast<int>(flags);
  constexpr std::string_view kAccess[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
  std::string text(kAccess[rest & O_ACCMODE]);
  rest &= ~O_ACCMODE;
  // O_SYNC has O_DSYNC in it, O_TMPFILE has O_DIRECTORY: what is larger comes first.
  for (auto& [name, bits] : kOpenFlags) {
    if (!bits || (rest & bits) != bits) continue;
    text += fmt::format("|{}", name);
    rest &= ~bits;
  }
  return rest ? text + fmt::format("|{:#o}", static_cast<unsigned>(rest)) : text;
}

std::string signal_name(int number) {
  if (number > 0 && number < SIGRTMIN) {
    if (auto* name = sigabbrev_np(number)) return fmt::format("SIG{}", name);
  }
  return fmt::format("signal {}", number);
}

int signal_number(std::string_view name) {
  if (auto number = parse_unsigned(name)) return *number < 65 ? static_cast<int>(*number) : 0;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int n = 1; n < SIGRTMIN; n++)
    if (auto* known = sigabbrev_np(n); known && name == known) return n;
  return 0;
}

std::string argument_text(std::string_view call, const CallArgument& argument, std::uint64_t value,
                          const std::optional<CallText>& text) {
  if (text && text->readable) return quoted(*text);
  if (argument.is_pointer()) return value ? fmt::format("{:#x}", value) : "NULL";
  if (argument.name.ends_with("fd")) {  // whatever the kernel's function takes it for
    auto fd = static_cast<std::int32_t>(value);
    return fd == AT_FDCWD ? "AT_FDCWD" : fmt::format("{}", fd);
  }
  if (argument.type == "umode_t" || argument.name == "mode")
    return value ? fmt::format("{:#o}", static_cast<std::uint32_t>(value)) : "0";
  if (argument.name == "flags" && one_of(call, {"open", "openat"})) return open_flags(value);
  if (argument.name == "sig" && value && value < 65) return signal_name(static_cast<int>(value));
  if (argument.name.ends_with("flags") && value > 9) return fmt::format("{:#x}", value);
  return decimal(argument.type, value);
}

std::string call_text(const CallRecord& record, const CallArguments* arguments) {
  auto name = syscall_name(record.call.index);
  std::string text;
  if (arguments) {
    for (std::size_t i = 0; i < std::min<std::size_t>(arguments->size(), CALL_ARGS); i++) {
      auto& a = (*arguments)[i];
      text += fmt::format("{}{}={}", i ? ", " : "", a.name,
                          argument_text(name, a, record.call.args[i], record.texts[i]));
    }
  } else {
    for (int i = 0; i < CALL_ARGS; i++)
      text += fmt::format("{}{:#x}", i ? ", " : "", record.call.args[i]);
  }
  return fmt::format("{}({})", name, text);
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
    return fmt::format("-1 {} ({})", error_name(error),
                       words ? words : "no such error is known here");
  }
  auto value = static_cast<std::uint64_t>(result);
  return value >= kLooksLikeAddress ? fmt::format("{:#x}", value) : fmt::format("{}", result);
}

}  // namespace coretap
