// Memory of a process, and records about its code, that a test makes.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/stack/runtime.h"
#include "runtimes/code_names.hpp"

namespace coretap::runtimes {

class MadeMemory {
 public:
  static constexpr std::uint64_t kPage = 4096;

  void clear() { pages_.clear(); }
  void write(std::uint64_t address, const void* from, std::size_t size) {
    for (std::size_t i = 0; i < size; i++) {
      auto& page = pages_[(address + i) / kPage];
      page.resize(kPage);
      page[(address + i) % kPage] = static_cast<const char*>(from)[i];
    }
  }
  void put(std::uint64_t address, std::uint64_t value, std::size_t size = sizeof(std::uint64_t)) {
    write(address, &value, size);
  }
  /// `otherwise`: what is in pages that nothing was written to; 0: they cannot be read.
  bool read(std::uint64_t address, std::span<char> to, char otherwise = 0) const {
    for (std::size_t i = 0; i < to.size(); i++) {
      const auto page = pages_.find((address + i) / kPage);
      if (page == pages_.end() && !otherwise) return false;
      to[i] = page == pages_.end() ? otherwise : page->second[(address + i) % kPage];
    }
    return true;
  }

 private:
  std::map<std::uint64_t, std::string> pages_;
};

inline void put_text(runtime_text& text, char* chars, std::string_view from) {
  text.kind = RUNTIME_UTF8;
  text.bytes = static_cast<__u16>(from.size());
  std::memcpy(chars, from.data(), from.size());
}

/// A code object.
struct Sent {
  std::uint64_t number = 1;
  std::string name = "work";
  std::string file = "/srv/app.py";
  std::string lines = "\x80\x10";  // one unit on the first line
  std::uint32_t line = 10;
  std::uint8_t minor = 11;
};

/// As the kernel program sends it.
inline void send(CodeNames& names, const Sent& sent, std::size_t cut = 0) {
  auto code = std::make_unique<runtime_code>();
  std::memset(code.get(), 0, sizeof *code);
  code->mark = RUNTIME_CODE;
  code->number = sent.number;
  code->minor = sent.minor;
  code->line = sent.line;
  code->line_bytes = static_cast<__u32>(sent.lines.size());
  put_text(code->file, code->file_text, sent.file);
  put_text(code->name, code->name_text, sent.name);
  std::memcpy(code->lines, sent.lines.data(), sent.lines.size());
  EXPECT_TRUE(names.take(code.get(), offsetof(runtime_code, lines) + sent.lines.size() - cut));
}

/// The frame of a place in it.
inline std::uint64_t word(std::uint64_t number, std::uint64_t place) {
  return STACK_RUNTIME | number << RUNTIME_PLACE_BITS | place;
}

}  // namespace coretap::runtimes
