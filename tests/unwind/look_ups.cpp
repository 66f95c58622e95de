// unwind_look_ups MAPPINGS TIMES: measures the kernel program's search for the file at an address,
// in an address space with at least this many mappings. Prints JSON; ns are the kernel's run time
// of the program, minus that of the program without a search.
#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "unit/unwind/kernel_tables.hpp"

using namespace coretap;

namespace {

constexpr std::size_t kPage = 4096;

std::vector<std::uint64_t> map_pages(std::size_t mappings) {
  std::vector<std::uint64_t> at;
  Fd file(memfd_create("look-ups", MFD_CLOEXEC));
  if (ftruncate(file.get(), static_cast<off_t>(mappings * kPage))) return at;
  auto* all = static_cast<char*>(
      mmap(nullptr, 2 * mappings * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (all == MAP_FAILED) return at;
  // Every second page; the pages between are mappings, too.
  for (std::size_t i = 0; i < mappings / 2; i++) {
    void* to = all + 2 * i * kPage;
    if (mmap(to, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.get(),
             static_cast<off_t>(i * kPage)) == MAP_FAILED)
      break;
    at.push_back(reinterpret_cast<std::uint64_t>(to));
  }
  return at;
}

/// Run time in ns for each of these addresses, in turns.
double run(const unwind::test::KernelTables& kernel, const std::vector<std::uint64_t>& at,
           long times) {
  auto counted = [&] {
    bpf_prog_info info{};
    __u32 size = sizeof info;
    bpf_obj_get_info_by_fd(kernel.program(), &info, &size);
    return std::pair(info.run_time_ns, info.run_cnt);
  };
  auto before = counted();
  for (long i = 0; i < times; i++) {
    auto address = at[static_cast<std::size_t>(i) * 7919 % at.size()];
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &address, .ctx_size_in = sizeof address);
    if (bpf_prog_test_run_opts(kernel.program(), &options) || options.retval != (address != 0))
      return -1;
  }
  auto after = counted();
  return static_cast<double>(after.first - before.first) /
         static_cast<double>(std::max<__u64>(1, after.second - before.second));
}

}  // namespace

int main(int argc, char** argv) {
  auto mappings = argc > 2 ? static_cast<std::size_t>(atol(argv[1])) : 0;
  auto times = argc > 2 ? atol(argv[2]) : 0;
  if (mappings < 2 || times < 1) {
    fputs("usage: unwind_look_ups MAPPINGS TIMES\n", stderr);
    return 2;
  }
  unwind::test::KernelTables kernel;
  if (auto why = kernel.open(1, true); !why.empty()) {
    fprintf(stderr, "%s\n", why.c_str());
    return 77;
  }
  auto at = map_pages(mappings);
  Fd stats(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (at.empty() || !stats) return 1;
  auto idle = run(kernel, {0}, times), all = run(kernel, at, times);
  if (idle < 0 || all < 0) return 1;
  printf("{\"ns\":%.1f}\n", all - idle);
  return 0;
}
