// A file's unwind table, in the format of the kernel program (lib/stack/unwind.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cfi/elf_code.hpp"
#include "lib/stack/unwind.h"

namespace coretap::unwind {

/// The distinct rules of all files. About six thousand suffice for a whole distribution.
class Rules {
 public:
  static constexpr std::uint16_t kNone = 0, kOther = 1;
  Rules();

  /// kOther if there is no room for another rule.
  std::uint16_t index_of(const unwind_rule& rule);
  const std::vector<unwind_rule>& all() const { return all_; }
  std::size_t refused() const { return refused_; }

 private:
  std::vector<unwind_rule> all_;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const {
      return std::hash<std::string_view>{}(bytes);
    }
  };
  std::unordered_map<std::string, std::uint16_t, Hash, std::equal_to<>> index_;  // by rule bytes
  std::size_t refused_ = 0;
};

struct Table {
  struct Page {
    std::uint32_t first, count;  ///< in `rows`
  };
  std::uint64_t base = 0;  ///< ELF address of the first page
  std::vector<Page> pages;
  std::vector<std::uint32_t> rows;

  std::size_t bytes() const { return rows.size() * 4 + pages.size() * sizeof(unwind_page); }
  /// The rule for an ELF address, by the same search as in the kernel program.
  std::uint16_t find(std::uint64_t address) const;
};

/// Empty: the file has no unwind information, or more code than the table has room for.
Table make_table(const Image& image, const ElfCode& elf, Rules& rules);

}  // namespace coretap::unwind
