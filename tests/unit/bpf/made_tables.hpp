// Hand-made unwind tables, written into the maps of the test programs.
#pragma once
#include "bpf/library.hpp"
#include "coretap/fd.hpp"
#include "unwind/kernel_maps.hpp"
#include "unwind/table.hpp"

namespace coretap::unwind::test {

/// Removes entries of earlier tests.
inline void clear(bpf_map* map) {
  char key[64];
  while (bpf_map_get_next_key(bpf_map__fd(map), nullptr, key) == 0)
    bpf_map_delete_elem(bpf_map__fd(map), key);
}

class MadeTables {
 public:
  static constexpr __u32 kMade = 4;  // chunks

  std::vector<unwind_rule> rules;
  std::vector<unwind_page> pages;
  std::vector<unwind_mapping> mappings;
  unwind_process process{.generation = 1};
  bool listed = true;  // the process is known

  explicit MadeTables(coretap::test::Library& library) : maps_(library->maps) {
    for (auto* map : {maps_.unwind_processes, maps_.unwind_files, maps_.stack_known_mms})
      clear(map);
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
    for (__u32 i = 0; i < kMade; i++) {
      chunks_[i].reset(
          bpf_map_create(BPF_MAP_TYPE_ARRAY, nullptr, 4, UNWIND_CHUNK_ROWS * 4, 1, &options));
      int fd = chunks_[i].get();
      EXPECT_EQ(bpf_map_update_elem(bpf_map__fd(maps_.unwind_rows), &i, &fd, BPF_ANY), 0);
    }
  }
  void write_rows(__u32 chunk, __u32 first, const __u32* rows, std::size_t count) {
    EXPECT_TRUE(write_map(chunks_[chunk].get(), first * 4, rows, count * 4));
  }
  void drop_chunk(__u32 chunk) { bpf_map_delete_elem(bpf_map__fd(maps_.unwind_rows), &chunk); }
  /// Returns its first page.
  __u32 add(const Table& table) {
    auto first = static_cast<__u32>(pages.size());
    for (auto& page : table.pages) {
      if (used_ + page.count > UNWIND_CHUNK_ROWS) {
        chunk_++;
        used_ = 0;
      }
      write_rows(chunk_, used_, &table.rows[page.first], page.count);
      pages.push_back({static_cast<__u16>(chunk_), static_cast<__u16>(used_), page.count});
      used_ += page.count;
    }
    return first;
  }
  void forget() {
    chunk_ = used_ = 0;
    pages.clear();
    mappings.clear();
  }
  /// To be called after the last change, before walks.
  void install() {
    if (process.count == 0) process.count = static_cast<__u32>(mappings.size());
    write(maps_.unwind_rules, rules);
    write(maps_.unwind_pages, pages);
    write(maps_.unwind_mappings, mappings);
    const __u64 program = GIVEN_PROGRAM;
    if (listed)
      bpf_map_update_elem(bpf_map__fd(maps_.unwind_processes), &program, &process, BPF_ANY);
    else
      bpf_map_delete_elem(bpf_map__fd(maps_.unwind_processes), &program);
  }
  /// The mappings, as changed by walks.
  const std::vector<unwind_mapping>& read() {
    EXPECT_TRUE(read_map(bpf_map__fd(maps_.unwind_mappings), 0, mappings.data(),
                         mappings.size() * sizeof(unwind_mapping)));
    return mappings;
  }

 private:
  template <class T>
  static void write(bpf_map* map, const std::vector<T>& all) {
    EXPECT_TRUE(all.empty() || write_map(bpf_map__fd(map), 0, all.data(), all.size() * sizeof(T)));
  }
  decltype(library_bpf::maps)& maps_;
  Fd chunks_[kMade];
  __u32 chunk_ = 0, used_ = 0;
};

}  // namespace coretap::unwind::test
