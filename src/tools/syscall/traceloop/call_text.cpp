#include "tools/syscall/traceloop/call_text.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/syscalls.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kLooksLikeAddress = 1ULL << 32;
constexpr int kMostErrno = 4095;

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

}  // namespace

std::uint32_t used_arguments(std::string_view call, const CallArguments* arguments,
                             std::span<const __u64, CALL_ARGS> values) {
  auto all =
      first_arguments(arguments ? std::min<std::size_t>(arguments->size(), CALL_ARGS) : CALL_ARGS);
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

std::string call_text(const CallRecord& record, const CallArguments* arguments) {
  auto name = syscall_name(record.call.index);
  std::array<std::uint64_t, CALL_ARGS> values;
  std::copy_n(record.call.args, CALL_ARGS, values.begin());
  auto used = used_arguments(name, arguments, record.call.args);
  std::string text;
  for (std::size_t i = 0; i < CALL_ARGS; i++) {
    if (!(used >> i & 1)) continue;
    if (i) text += ", ";
    if (arguments) text += (*arguments)[i].name + "=";
    if (auto& given = record.texts[i]; arguments && given && given->readable)
      text += printable(quoted(given->bytes, '"')) + (given->cut ? "..." : "");
    else if (auto words = argument_words(name, i, values))
      text += *words;
    else
      text +=
          arguments ? argument_text((*arguments)[i], values[i]) : fmt::format("{:#x}", values[i]);
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
    return fmt::format("-1 {} ({})", error_name(error), words ? words : "unknown error");
  }
  auto value = static_cast<std::uint64_t>(result);
  return value >= kLooksLikeAddress ? fmt::format("{:#x}", value) : fmt::format("{}", result);
}

}  // namespace coretap
