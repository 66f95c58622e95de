#include "cfi/runtime_code.hpp"

#include <optional>

#include "fuzz.hpp"

using namespace coretap;
using namespace coretap::unwind;

FUZZ(runtime_code, bytes) {
  constexpr std::uint64_t kAddress = 0x401000;
  std::optional<std::uint64_t> last;
  std::uint8_t rule_last = UNWIND_NONE;
  read_runtime_code({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, kAddress,
                    [&](std::uint64_t address, const unwind_rule& rule) {
                      MUST(!last || *last <= address);
                      MUST(address >= kAddress && address <= kAddress + bytes.size());
                      MUST(rule.cfa <= UNWIND_OTHER && rule.bp <= UNWIND_BP_AT_BP);
                      last = address;
                      rule_last = rule.cfa;
                    });
  MUST(rule_last == UNWIND_NONE);
}
