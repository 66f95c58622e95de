// The kernel's maps of unwind tables, as a tool declares them.
#pragma once
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coretap/tool.hpp"
#include "unwind/kernel_maps.hpp"
#include "unwind/processes.hpp"
#include "unwind/tables.hpp"

namespace coretap::unwind::test {

class KernelTables {
 public:
  /// Why there are none, or nothing.
  std::string open(std::uint32_t chunks) {
    const auto* entry = find_tool("profile");
    if (!entry) return "no tool has unwind tables";
    const auto bytes = build(*entry).object.bytes();
    libbpf_set_print(nullptr);
    object_.reset(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
    if (!object_) return std::string("cannot open a kernel program: ") + strerror(errno);
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object_.get()) bpf_program__set_autoload(program, false);
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_.get())
        bpf_map__set_autocreate(map, std::string(bpf_map__name(map)).starts_with("unwind_"));
    bpf_map__set_max_entries(this->map("unwind_rows"), chunks);
    bpf_map__set_max_entries(processes(), 1024);
    if (int error = bpf_object__load(object_.get()))
      return std::string("cannot make the kernel's maps: ") + strerror(-error);
    return {};
  }
  bpf_map* map(const char* name) const { return bpf_object__find_map_by_name(object_.get(), name); }
  int fd(const char* name) const { return bpf_map__fd(map(name)); }
  bpf_map* processes() const { return map("unwind_processes"); }
  Tables::Maps maps() const { return {fd("unwind_rules"), fd("unwind_pages"), fd("unwind_rows")}; }

  std::vector<unwind_page> pages(std::uint32_t first, std::uint32_t count) const {
    std::vector<unwind_page> all(count);
    EXPECT_TRUE(read_map(fd("unwind_pages"), first * sizeof(unwind_page), all.data(),
                         count * sizeof(unwind_page)));
    return all;
  }
  bool has_chunk(std::uint32_t chunk) const {
    std::uint32_t id = 0;
    return bpf_map_lookup_elem(fd("unwind_rows"), &chunk, &id) == 0;
  }
  std::vector<std::uint32_t> rows(std::uint32_t chunk, std::uint32_t first,
                                  std::uint32_t count) const {
    std::uint32_t id = 0;
    std::vector<std::uint32_t> all(count);
    EXPECT_EQ(bpf_map_lookup_elem(fd("unwind_rows"), &chunk, &id), 0);
    Fd inner(bpf_map_get_fd_by_id(id));
    EXPECT_TRUE(read_map(inner.get(), std::size_t{first} * 4, all.data(), std::size_t{count} * 4));
    return all;
  }
  std::vector<unwind_mapping> mappings(std::uint32_t first, std::uint32_t count) const {
    std::vector<unwind_mapping> all(count);
    EXPECT_TRUE(read_map(fd("unwind_mappings"), first * sizeof(unwind_mapping), all.data(),
                         count * sizeof(unwind_mapping)));
    return all;
  }
  std::optional<unwind_process> process(std::uint64_t program) const {
    unwind_process entry{};
    if (bpf_map_lookup_elem(bpf_map__fd(processes()), &program, &entry)) return {};
    return entry;
  }

 private:
  struct Closer {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  std::unique_ptr<bpf_object, Closer> object_;
};

}  // namespace coretap::unwind::test
