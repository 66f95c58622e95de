#include "tools/syscall/traceloop/shown_calls.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/recall.hpp"
#include "coretap/fields.hpp"

namespace coretap {

namespace {

// Below the number of a text's argument.
constexpr std::uint64_t kCut = 1, kReadable = 2, kFlagBits = 2;

std::string packed_call(const Call& c) {
  auto& call = c.record.call;
  std::string numbers;
  const std::uint64_t all[] = {
      static_cast<std::uint64_t>(c.cpu + 1),   c.record.flags, call.start_ns, call.end_ns,
      static_cast<std::uint64_t>(call.result), call.tgid,      call.tid,      call.index};
  for (auto number : all) put_varint(numbers, number);
  for (auto argument : call.args) put_varint(numbers, argument);
  std::vector<std::string> parts{{}, text_in(call.comm)};
  for (std::size_t i = 0; i < c.record.texts.size(); i++) {
    auto& text = c.record.texts[i];
    if (!text) continue;
    put_varint(numbers, i << kFlagBits | (text->cut ? kCut : 0) | (text->readable ? kReadable : 0));
    parts.push_back(text->bytes);
  }
  parts[0] = numbers;
  return packed(parts);
}

std::optional<Call> call_of(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  if (parts.size() < 2) return {};
  std::string_view numbers = parts[0];
  Call c;
  auto& call = c.record.call;
  std::uint64_t cpu = 0, flags = 0, start = 0, end = 0, result = 0, tgid = 0, tid = 0, index = 0;
  for (auto* number : {&cpu, &flags, &start, &end, &result, &tgid, &tid, &index})
    if (!take_varint(numbers, *number)) return {};
  for (auto& argument : call.args) {
    std::uint64_t value = 0;
    if (!take_varint(numbers, value)) return {};
    argument = value;
  }
  if (cpu > INT_MAX || index > UINT32_MAX) return {};
  c.cpu = static_cast<int>(cpu) - 1;
  c.record.flags = static_cast<std::uint8_t>(flags);
  call.start_ns = start;
  call.end_ns = end;
  call.result = static_cast<std::int64_t>(result);
  call.tgid = static_cast<std::uint32_t>(tgid);
  call.tid = static_cast<std::uint32_t>(tid);
  call.index = static_cast<std::uint32_t>(index);
  memcpy(call.comm, parts[1].data(), std::min(parts[1].size(), sizeof call.comm - 1));
  std::uint64_t of = 0;
  for (std::size_t i = 2; i < parts.size() && take_varint(numbers, of); i++)
    if (const auto argument = of >> kFlagBits; argument < c.record.texts.size())
      c.record.texts[argument] = CallText{parts[i], (of & kCut) != 0, (of & kReadable) != 0};
  return c;
}

}  // namespace

std::string ShownCalls::packed() const {
  std::string numbers;
  for (auto number : {std::uint64_t{why.has_value()}, std::uint64_t{ended.has_value()},
                      std::uint64_t{ended ? ended->pid : 0}, now_ns, since_ns, overwritten})
    put_varint(numbers, number);
  std::vector<std::string> parts{numbers, recorder, why.value_or(""), ended ? ended->comm : ""};
  parts.reserve(parts.size() + calls.size());
  for (auto& call : calls) parts.push_back(packed_call(call));
  return coretap::packed(parts);
}

std::optional<ShownCalls> ShownCalls::of(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  constexpr std::size_t kHead = 4;
  if (parts.size() < kHead) return {};
  ShownCalls shown;
  std::string_view numbers = parts[0];
  std::uint64_t has_why = 0, has_end = 0, pid = 0;
  for (auto* number :
       {&has_why, &has_end, &pid, &shown.now_ns, &shown.since_ns, &shown.overwritten})
    if (!take_varint(numbers, *number)) return {};
  shown.recorder = parts[1];
  if (has_why) shown.why = parts[2];
  if (has_end) shown.ended = Ended{static_cast<std::uint32_t>(pid), parts[3]};
  for (std::size_t i = kHead; i < parts.size(); i++) {
    auto call = call_of(parts[i]);
    if (!call) return {};
    shown.calls.push_back(std::move(*call));
  }
  return shown;
}

}  // namespace coretap
