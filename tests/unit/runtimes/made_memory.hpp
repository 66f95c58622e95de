// Memory of a process, and records about its code, that a test makes.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lib/stack/runtime.h"

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

}  // namespace coretap::runtimes
