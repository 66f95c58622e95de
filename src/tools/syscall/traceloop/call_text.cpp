#include "tools/syscall/traceloop/call_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/flags.hpp"
#include "coretap/sanitize.hpp"

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

std::string CallNames::packed() const {
  std::vector<std::string> all{name, abi};
  if (arguments) {
    std::vector<std::string> parts;
    for (auto& argument : *arguments) parts.insert(parts.end(), {argument.type, argument.name});
    all.push_back(coretap::packed(parts));
  }
  return coretap::packed(all);
}

CallNames CallNames::of(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  CallNames names;
  if (parts.size() < 2) return names;
  names.name = printable(parts[0]);
  names.abi = printable(parts[1]);
  if (parts.size() < 3) return names;
  names.arguments.emplace();
  const auto all = unpacked(parts[2]);
  for (std::size_t i = 0; i + 1 < all.size() && i < 2 * CALL_ARGS; i += 2)
    names.arguments->push_back({printable(all[i]), printable(all[i + 1])});
  return names;
}

std::string call_text(const CallRecord& record, const CallNames& names) {
  auto* arguments = names.arguments ? &*names.arguments : nullptr;
  std::array<std::uint64_t, CALL_ARGS> values;
  std::copy_n(record.call.args, CALL_ARGS, values.begin());
  auto used = used_arguments(names.name, arguments, values);
  std::string text;
  for (std::size_t i = 0; i < CALL_ARGS; i++) {
    if (!(used >> i & 1)) continue;
    if (i) text += ", ";
    if (arguments) text += (*arguments)[i].name + "=";
    if (auto& given = record.texts[i]; arguments && given && given->readable)
      text += printable(quoted(given->bytes, '"')) + (given->cut ? "..." : "");
    else if (auto words = argument_words(names.name, i, values))
      text += *words;
    else
      text +=
          arguments ? argument_text((*arguments)[i], values[i]) : fmt::format("{:#x}", values[i]);
  }
  return fmt::format("{}({})", names.name, text);
}

}  // namespace coretap
