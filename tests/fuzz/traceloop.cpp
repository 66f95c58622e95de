// Parsers of traceloop.
#include "syscall/traceloop.h"
#include "coretap/call_formats.hpp"
#include "coretap/syscalls.hpp"
#include "fuzz.hpp"
#include "tools/syscall/traceloop/call_text.hpp"
#include "tools/syscall/traceloop/recorder.hpp"

using namespace coretap;

FUZZ(call_format, bytes) {
  const auto arguments = parse_call_format(bytes);
  MUST(arguments.size() <= CALL_ARGS);
  for (auto& a : arguments) {
    MUST(a.name.find_first_of(" ;\n") == a.name.npos && a.type.find_first_of(";\n") == a.type.npos);
    MUST(bytes.find(a.type + " " + a.name) != bytes.npos);
    MUST(!a.is_text() || a.is_pointer());
  }
}

/// A recorder's memory as it may be read during writes, then a format file.
FUZZ(call_text, bytes) {
  fuzz::Input input(bytes);
  constexpr std::uint32_t kSlots = 8;
  record_head head{};
  head.next = input.number<std::uint8_t>();
  head.calls = input.number<std::uint8_t>();
  std::vector<record_slot> slots(kSlots);
  for (auto& slot : slots) {
    slot = input.number<record_slot>();
    slot.seq &= 0xff;  // small, so that numbers match
  }
  auto arguments = parse_call_format(input.rest());  // the kernel's
  std::erase_if(arguments, [](auto& a) { return !fuzz::is_plain(a.type + a.name); });
  RecordSegment segment(slots.data(), kSlots, &head);
  std::size_t calls = 0;
  segment.read([&](const std::vector<record_slot>& record) {
    calls++;
    const auto call = CallRecord::of(record);
    const auto name = syscall_name(call.call.index);
    MUST(fuzz::is_plain(call_text(call, {name, ""})));
    MUST(fuzz::is_plain(call_text(call, {name, "", arguments})));
    MUST(fuzz::is_plain(result_text(call.call.result)));
    MUST(fuzz::is_plain(syscall_name(call.call.index)));
  });
  MUST(calls <= kSlots);
}
