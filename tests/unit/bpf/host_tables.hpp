// The unwind tables of a process or made by hand, in memory as the kernel's maps hold them.
#pragma once
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "bpf/kernel/walk.h"
#include "symbols/proc_maps.hpp"
#include "symbols/process_files.hpp"
#include "unwind/table.hpp"

namespace coretap::unwind::test {

class HostTables {
 public:
  HostTables() {
    process.count = 0;
    process.generation = 1;
  }
  HostTables(const HostTables&) = delete;
  HostTables& operator=(const HostTables&) = delete;
  ~HostTables() { host_maps = {}; }

  Rules rules;
  std::vector<unwind_rule> more_rules;  // used in place of `rules`, if there are any
  std::vector<unwind_page> pages;
  std::vector<unwind_mapping> mappings;
  std::vector<std::unique_ptr<std::vector<__u32>>> chunks;
  unwind_process process{};

  /// Its first page.
  __u32 add(const Table& table) {
    auto first = static_cast<__u32>(pages.size());
    for (auto& page : table.pages) {
      if (chunks.empty() || used_ + page.count > UNWIND_CHUNK_ROWS) {
        chunks.push_back(std::make_unique<std::vector<__u32>>(UNWIND_CHUNK_ROWS));
        used_ = 0;
      }
      std::copy_n(table.rows.begin() + page.first, page.count, chunks.back()->begin() + used_);
      pages.push_back(
          {static_cast<__u16>(chunks.size() - 1), static_cast<__u16>(used_), page.count});
      used_ += page.count;
    }
    return first;
  }

  /// All that this process has mapped.
  void add_self() {
    Fd maps(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    struct Known {
      Table table;
      ElfCode elf;
      __u32 page = 0;
    };
    std::map<std::string, Known> known;
    for (auto& m : symbols::read_mappings(maps.get()).executable) {
      unwind_mapping to{};
      to.start = m.start;
      to.length = static_cast<__u32>((m.end - m.start) >> 12);
      to.page = UNWIND_LACK_CFI;
      auto [at, is_new] = known.try_emplace(m.path);
      auto& file = at->second;
      if (is_new && m.path == "[vdso]") {
        MemoryImage image({reinterpret_cast<const char*>(m.start), m.end - m.start});
        file.elf = read_elf_code(image);
        file.table = make_table(image, file.elf, rules);
      } else if (is_new && m.has_file()) {
        Fd fd(::open(m.path.c_str(), O_RDONLY | O_CLOEXEC));
        FileImage image(fd.get());
        file.elf = read_elf_code(image);
        file.table = make_table(image, file.elf, rules);
      }
      if (is_new) file.page = add(file.table);
      if (auto address = file.elf.address_of_offset(m.offset);
          address && !file.table.pages.empty()) {
        to.bias = m.start - *address + file.table.base;
        to.page = file.page;
        to.pages = static_cast<__u32>(file.table.pages.size());
      }
      mappings.push_back(to);
    }
  }

  /// After the last change: walks go by these.
  void install() {
    chunk_places_.clear();
    for (auto& chunk : chunks) chunk_places_.push_back(chunk ? chunk->data() : nullptr);
    all_rules_ = more_rules.empty() ? rules.all() : more_rules;
    // Copies of exactly their size.
    all_rules_.shrink_to_fit();
    pages.shrink_to_fit();
    mappings.shrink_to_fit();
    if (process.count == 0) process.count = static_cast<__u32>(mappings.size());
    host_maps = {
        .rules = all_rules_.data(),
        .rule_count = static_cast<__u32>(all_rules_.size()),
        .pages = pages.data(),
        .page_count = static_cast<__u32>(pages.size()),
        .mappings = mappings.data(),
        .mapping_count = static_cast<__u32>(mappings.size()),
        .chunks = chunk_places_.data(),
        .chunk_count = static_cast<__u32>(chunk_places_.size()),
        .process = &process,
    };
  }

 private:
  std::uint32_t used_ = 0;  // of the last chunk
  std::vector<unwind_rule> all_rules_;
  std::vector<__u32*> chunk_places_;
};

}  // namespace coretap::unwind::test
