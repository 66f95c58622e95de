// Where entries of functions are probed, in libraries of this machine.
#include <glob.h>

#include "coretap/small_files.hpp"
#include "expect.hpp"
#include "program/function_returns.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap {
namespace {

bool as_linux_does(symbols::EntryStep::Form form) { return form != symbols::EntryStep::stepped; }

TEST(EntryPlace, IsEmulatedInMostFunctions) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the shares are those of x86-64";
#endif
  for (auto* name : {"libc.so.6", "libcrypto.so.?", "libstdc++.so.6", "libpython3.11.so.1*"}) {
    glob_t found;
    if (!glob((std::string("/usr/lib/*-linux-gnu/") + name).c_str(), 0, nullptr, &found)) {
      Fd file(open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC));
      auto all = symbols::find_functions(
          file.get(), [](const char*) { return true; }, 100'000);
      std::string shares;
      std::size_t before = 0;
      for (EntryReads reads : {EntryReads{6}, {2}, {1}, {0}, {0, false}}) {
        FileCode code(file.get(), as_linux_does);
        std::size_t emulated = 0;
        for (auto& f : all.functions)
          emulated += code.entry_place(f.offset, reads, true).form != symbols::EntryStep::stepped;
        shares += " " + std::to_string(emulated * 100 / all.functions.size());
        EXPECT_GE(emulated, before) << name;
        before = emulated;
      }
      EXPECT_GT(before * 2, all.functions.size()) << name;
      printf("%s, %zu functions: %% for 6, 2, 1, 0 arguments, 0 without the stack:%s\n", name,
             all.functions.size(), shares.c_str());
    }
    globfree(&found);
  }
}

}  // namespace
}  // namespace coretap
