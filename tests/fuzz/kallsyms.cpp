#include <unordered_set>

#include "coretap/symbols.hpp"
#include "fuzz.hpp"
#include "symbols/process_files.hpp"

using namespace coretap;

FUZZ(kallsyms, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto code = interrupt_code(file.path());
  MUST(code.softirq_end == 0 || code.softirq_begin < code.softirq_end);

  KernelSymbols kernel(file.path());
  const bool loaded{kernel.load()};
  MUST(!loaded || kernel.size() > 0);
  MUST(kernel.size() <= bytes.size() / 4);
  symbols::LineReader lines(file.fd(), 64, 1 << 16);
  for (std::string_view line; lines.next(line);) {
    std::uint64_t address = 0;
    if (!symbols::take_hex(line, address)) continue;
    for (auto at : {address - 1, address, address + 1}) {
      const auto symbol = kernel.find(at);
      MUST(loaded || !symbol.known());
      MUST(symbol.known() || symbol.offset == 0);
      MUST(symbol.offset <= 16 << 20 && symbol.offset <= at);
      if (symbol.known()) MUST(kernel.find(at - symbol.offset).offset == 0);
    }
  }
}
