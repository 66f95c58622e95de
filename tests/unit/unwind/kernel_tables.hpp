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

#include "coretap/config.hpp"
#include "coretap/tool.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "unwind/kernel_maps.hpp"
#include "unwind/processes.hpp"
#include "unwind/tables.hpp"

namespace coretap::unwind::test {

inline constexpr std::size_t kChunk = UNWIND_CHUNK_ROWS * 4;

class KernelTables {
 public:
  /// Why there are none, or nothing. `asks`: with the program that reads a file's identity.
  std::string open(std::uint32_t chunks, bool asks = false) {
    const auto* entry = find_tool("profile");
    if (!entry) return "no tool has unwind tables";
    tool_ = build(*entry);
    session_ = std::make_unique<Session>(tool_, config_);
    const auto bytes = tool_.object.bytes();
    libbpf_set_print(nullptr);
    session_->object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
    auto* object = session_->object.get();
    if (!object) return std::string("cannot open a kernel program: ") + strerror(errno);
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
      bool load = asks && std::string(bpf_program__name(program)) == "unwind_ask_key";
      if (load) bpf_program__set_type(program, BPF_PROG_TYPE_RAW_TRACEPOINT);
      bpf_program__set_autoload(program, load);
    }
    bpf_map* each = nullptr;
    bpf_object__for_each_map(each, object) bpf_map__set_autocreate(
        each, asks || std::string(bpf_map__name(each)).starts_with("unwind_"));
    if (asks && !set_variable(*session_, "unwind_tables", 1)) return "no constant unwind_tables";
    bpf_map__set_max_entries(map("unwind_rows"), chunks);
    bpf_map__set_max_entries(processes(), 1024);
    bpf_map__set_max_entries(map("unwind_files"), 64);
    bpf_map__set_max_entries(map("walk_scratch"), static_cast<__u32>(libbpf_num_possible_cpus()));
    if (int error = bpf_object__load(object))
      return std::string("cannot make the kernel's maps: ") + strerror(-error);
    return {};
  }
  bpf_map* map(const char* name) const { return session_->map_named(name); }
  int program() const {
    return bpf_program__fd(
        bpf_object__find_program_by_name(session_->object.get(), "unwind_ask_key"));
  }
  int fd(const char* name) const { return bpf_map__fd(map(name)); }
  bpf_map* processes() const { return map("unwind_processes"); }
  Tables::Maps maps() const { return {fd("unwind_rules"), fd("unwind_pages"), fd("unwind_rows")}; }

  std::vector<unwind_page> pages(std::uint32_t first, std::uint32_t count) const {
    std::vector<unwind_page> all(count);
    EXPECT_TRUE(read_map(fd("unwind_pages"), first * sizeof(unwind_page), all.data(),
                         count * sizeof(unwind_page)));
    return all;
  }
  /// Counts existing chunks among the first ones.
  std::size_t chunks(std::uint32_t most) const {
    std::size_t there = 0;
    for (std::uint32_t i = 0, id = 0; i < most; i++)
      there += bpf_map_lookup_elem(fd("unwind_rows"), &i, &id) == 0;
    return there;
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
  Tool tool_;
  Config config_;
  std::unique_ptr<Session> session_;
};

}  // namespace coretap::unwind::test
