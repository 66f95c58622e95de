// bpf/lib run by the kernel: the programs of programs/library.bpf.c, loaded.
#pragma once
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/programs/given.h"
#include "expect.hpp"
#include "lib/aggregate/fine.h"
#include "library.skel.h"
#include "one_cpu.hpp"

namespace coretap::test {

class Library {
 public:
  static constexpr __u32 kChunks = 128, kProcesses = 16, kRequests = 16;

  Library() {
    libbpf_set_print(nullptr);
    skeleton_.reset(library_bpf::open());
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, skeleton_->obj) bpf_program__set_autoload(
        program, std::string(bpf_program__name(program)).starts_with("run_"));
    auto& maps = skeleton_->maps;
    for (auto* map : {maps.walk_scratch, maps.stack_scratch, maps.waits_cpus, maps.ledger})
      bpf_map__set_max_entries(map, static_cast<__u32>(libbpf_num_possible_cpus()));
    bpf_map__set_max_entries(maps.unwind_rows, kChunks);
    bpf_map__set_max_entries(maps.unwind_processes, kProcesses);
    bpf_map__set_max_entries(maps.unwind_files, 4);
    bpf_map__set_max_entries(maps.requests, kRequests);
    skeleton_->rodata->requests_mask = kRequests - 1;
    skeleton_->rodata->unwind_tables = true;
    skeleton_->rodata->waits_step = 1;
    error_ = -library_bpf::load(skeleton_.get());
    if (!error_) data().depth_limit = STACK_DEPTH;
  }
  int error() const { return error_; }
  library_bpf* operator->() { return skeleton_.get(); }
  library_bpf::library_bpf__bss& data() { return *skeleton_->bss; }

  /// Returns the program's result.
  template <class... Words>
  std::uint32_t run(bpf_program* program, Words... words) {
    std::uint64_t context[] = {static_cast<std::uint64_t>(words)..., 0};
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = sizeof context);
    EXPECT_EQ(bpf_prog_test_run_opts(bpf_program__fd(program), &options), 0);
    return options.retval;
  }

 private:
  struct Destroyer {
    void operator()(library_bpf* skeleton) const { library_bpf::destroy(skeleton); }
  };
  std::unique_ptr<library_bpf, Destroyer> skeleton_;
  int error_ = 0;
};

/// One instance for all tests of a class.
template <class Tests>
class WithLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (library.error() == EPERM) GTEST_SKIP() << "needs the right to load BPF programs";
    ASSERT_EQ(library.error(), 0) << strerror(library.error());
  }
  static Library& only() {
    static Library one;
    return one;
  }
  OnOneCpu on_one_cpu;  // programs find data of the previous run in their CPU's slot
  Library& library = only();
  library_bpf::library_bpf__bss& data = library.data();
};

}  // namespace coretap::test
