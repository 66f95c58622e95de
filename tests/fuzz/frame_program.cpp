#include "cfi/frame_program.hpp"

#include "fuzz.hpp"

using namespace coretap;
using namespace coretap::unwind;

FUZZ(frame_program, bytes) {
  fuzz::Input input(bytes);
  FrameContext context;
  context.code_align = input.number<std::uint8_t>();
  context.data_align = input.number<std::int8_t>();
  context.encoding = input.number<std::uint8_t>();
  context.signal = (input.number<std::uint8_t>() & 1) != 0;
  std::uint64_t location = 0x10000, rows = 0;
  const auto seen = [&](std::uint64_t /*at*/, const Frame& frame) {
    rows++;
    const auto rule = rule_of(frame, context.signal);
    MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP && rule.pad == 0);
  };
  const auto program = input.rest();
  const Bytes code({reinterpret_cast<const std::uint8_t*>(program.data()), program.size()}, 0x2000);
  Frame frame;
  run_frame_program(code, context, location, frame, seen);
  MUST(rows <= program.size());
  rule_of(frame, context.signal);
}
