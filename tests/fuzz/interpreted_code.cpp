// Code objects of interpreters, as the kernel program sends them: texts and tables of lines come
// from the traced process.
#include <algorithm>
#include <cstring>
#include <memory>

#include "fuzz.hpp"
#include "runtimes/code_names.hpp"
#include "runtimes/line_table.hpp"

using namespace coretap;
using namespace coretap::runtimes;

/// A code object's record without its mark; the last bytes are its table of lines.
FUZZ(interpreted_code, bytes) {
  auto record = std::make_unique<runtime_code>();
  std::memset(record.get(), 0, sizeof *record);
  constexpr std::size_t kMark = sizeof record->mark;
  const auto size = std::min(bytes.size(), sizeof *record - kMark);
  std::copy_n(bytes.data(), size, reinterpret_cast<std::uint8_t*>(record.get()) + kMark);
  record->mark = RUNTIME_CODE;
  CodeNames names;
  MUST(names.take(record.get(), kMark + size));
  MUST(names.bytes() <= CodeNames::kMostBytes);
  const auto number = record->number & ((1ULL << RUNTIME_NUMBER_BITS) - 1);
  for (std::uint64_t place : {0U, 1U, 7U, 100U, 5000U, (1U << RUNTIME_PLACE_BITS) - 1}) {
    const auto frame = names.find(STACK_RUNTIME | number << RUNTIME_PLACE_BITS | place);
    // A character of a byte has two bytes in UTF-8, and a mark may follow. The name of a Java
    // class, which comes in place of a file, precedes a function's.
    constexpr std::size_t kName = 2 * RUNTIME_NAME + 3, kFile = 2 * RUNTIME_FILE_NAME + 3;
    MUST(frame.function.size() <= kFile + kName + 1);
    MUST(frame.file.size() <= kFile);
    MUST(frame.line < 100'000'000);
  }
  for (unsigned minor = 9; minor <= 15; minor++) {
    MUST(!line_at(minor, {}, 5, 1) || minor == 9);
    (void)line_at(minor, bytes, 1, static_cast<std::uint32_t>(bytes.size() * 3));
    (void)has_lines(minor, bytes);
  }
}
