// unwind_tables TIMES FILE...: builds the unwind table of each ELF file, as the tools do, and
// prints the results as JSON: a line for each, then their sum. The time is the shortest of TIMES.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "symbols/process_files.hpp"
#include "unwind/table.hpp"

using namespace coretap;

namespace {

struct Made {
  unwind::Table table;
  double ms = 0;
};

Made make(int fd, int times, unwind::Rules& rules) {
  Made made;
  for (int i = 0; i < times; i++) {
    auto start = std::chrono::steady_clock::now();
    unwind::Image image(fd);
    auto elf = unwind::read_elf_code(image);
    made.table = unwind::make_table(image, elf, rules);
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    made.ms = i ? std::min(made.ms, took.count()) : took.count();
    if (made.table.rows.empty()) break;
  }
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  int times = argc > 2 ? atoi(argv[1]) : 0;
  if (times < 1) {
    fputs("usage: unwind_tables TIMES FILE...\n", stderr);
    return 2;
  }
  unwind::Rules rules;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // device, inode
  std::size_t files = 0, rows = 0, bytes = 0;
  double ms = 0;
  for (int i = 2; i < argc; i++) {
    Fd fd(open(argv[i], O_RDONLY | O_CLOEXEC));
    auto id = symbols::identity_of(fd.get());
    if (!id || !seen.emplace(id->device, id->inode).second) continue;  // a link to it
    auto made = make(fd.get(), times, rules);
    if (made.table.rows.empty()) continue;
    printf("{\"file\":%d,\"rows\":%zu,\"pages\":%zu,\"bytes\":%zu,\"ms\":%.3f}\n", i - 2,
           made.table.rows.size(), made.table.pages.size(), made.table.bytes(), made.ms);
    files++;
    rows += made.table.rows.size();
    bytes += made.table.bytes();
    ms += made.ms;
  }
  printf("{\"files\":%zu,\"rows\":%zu,\"bytes\":%zu,\"rules\":%zu,\"refused\":%zu,\"ms\":%.1f}\n",
         files, rows, bytes, rules.all().size(), rules.refused(), ms);
  return 0;
}
