// Where the instructions of a function begin, as objdump has it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../harness.hpp"

namespace coretap::tooltest {

/// Addresses, from the function's first instruction on.
inline std::vector<std::uint64_t> instructions_of(const std::string& file,
                                                  const std::string& function) {
  auto listed = run({"/usr/bin/objdump", "-d", "--disassemble=" + function, file});
  if (listed.status != 0) throw Skip("no objdump here: CI's machines have it");
  std::vector<std::uint64_t> all;
  for (auto& line : lines(listed.out)) {
    auto colon = line.find(":\t");
    // A long instruction goes on in a line of bytes alone.
    if (colon != line.npos && line.find('\t', colon + 2) != line.npos)
      all.push_back(std::stoull(line, nullptr, 16));
  }
  return all;
}

/// "FILE:FUNCTION+0x1c": the last instruction, which each call reaches where there are no branches.
inline std::string last_place_of(const std::string& file, const std::string& function) {
  auto all = instructions_of(file, function);
  if (all.empty()) throw Skip("objdump does not find " + function);
  char offset[32];
  snprintf(offset, sizeof offset, "+%#llx",
           static_cast<unsigned long long>(all.back() - all.front()));
  return file + ":" + function + offset;
}

}  // namespace coretap::tooltest
