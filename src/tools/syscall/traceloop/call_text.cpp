#include "tools/syscall/traceloop/call_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/flags.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/syscalls.hpp"

namespace coretap {

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

std::string call_text(const CallRecord& record, const CallArguments* arguments) {
  auto name = syscall_name(record.call.index);
  std::array<std::uint64_t, CALL_ARGS> values;
  std::copy_n(record.call.args, CALL_ARGS, values.begin());
  auto used = used_arguments(name, arguments, values);
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

}  // namespace coretap
