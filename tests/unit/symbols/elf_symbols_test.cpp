#include "symbols/elf_symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <lzma.h>

#include "expect.hpp"
#include "program/function_returns.hpp"
#include "symbols/code_place.hpp"
#include "test_files.hpp"

__attribute__((noinline, used)) static int function_of_elf_test(int n) { return n + 3; }

namespace coretap::symbols {
namespace {

using namespace test;

const ElfSymbols::Function* find_named(const ElfSymbols& table, std::string_view part) {
  for (const auto& function : table.functions())
    if (std::string_view(table.name(function)).find(part) != std::string_view::npos)
      return &function;
  return nullptr;
}

// A small stripped file with build-id, its debug file beside it.
struct Stripped {
  ScratchDirectory scratch;
  std::string full = scratch.path() + "/full";
  std::string debug = scratch.path() + "/full.debug";
  std::string stripped = scratch.path() + "/stripped";
  bool made = run("cp /proc/" + std::to_string(::getpid()) + "/exe " + full) &&
              run("objcopy --only-keep-debug " + full + " " + debug) &&
              run("strip --strip-all -o " + stripped + " " + full);
};

TEST(ElfSymbols, ReadsItself) {
  ASSERT_EQ(function_of_elf_test(1), 4);
  const auto table = ElfSymbols::read(open_file("/proc/self/exe").get());
  ASSERT_TRUE(table);
  EXPECT_GT(table->functions().size(), 10u);
  const auto* function = find_named(*table, "function_of_elf_test");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(table->find(function->start + function->size - 1), function);
  for (const auto& each : table->functions())
    ASSERT_NE(table->find(each.start + each.size), &each) << table->name(each);
}

// Where a stack may end: by name, or where the symbols are gone by the ELF header.
TEST(ElfSymbols, EntryOfAProgram) {
  Stripped files;
  if (!files.made) GTEST_SKIP() << "needs objcopy and strip";
  const auto table = ElfSymbols::read(open_file(files.full).get());
  const auto bare = ElfSymbols::read(open_file(files.stripped).get());
  ASSERT_TRUE(table && bare);
  const ElfSymbols::Function* start = nullptr;
  for (const auto& function : table->functions())
    if (std::string_view(table->name(function)) == "_start") start = &function;
  ASSERT_NE(start, nullptr);
  const auto* other = find_named(*table, "function_of_elf_test");
  for (const auto* file : {table.get(), bare.get()}) {
    EXPECT_TRUE(file->is_entry(start->start + 8));
    EXPECT_FALSE(file->is_entry(other->start));
  }
}

// The C library has lost the names of its own local functions.
TEST(ElfSymbols, EntriesOfTheCLibrary) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&::qsort), &library), 0);
  auto table = ElfSymbols::read(open_file(library.dli_fname).get());
  if (!table || !find_named(*table, "__libc_start_main")) GTEST_SKIP() << "no glibc";
  std::uint64_t call_main = 0, sort = 0;
  for (const auto& function : table->functions()) {
    const std::string_view name = table->name(function);
    if (name.starts_with("__libc_start_main")) call_main = function.start - 32;
    if (name == "qsort") sort = function.start;
  }
  ASSERT_NE(call_main, 0u);
  ASSERT_NE(sort, 0u);
  EXPECT_TRUE(table->is_entry(call_main));
  EXPECT_FALSE(table->is_entry(sort)) << "calls back into programs, but somebody has called it";
}

// Each would be read again, of bytes that cost nothing in a sparse file.
TEST(ElfSymbols, OfTablesOfOneKindTheFirstCounts) {
  auto file = places::file_text("/proc/self/exe");
  Elf64_Ehdr header;
  ASSERT_GE(file.size(), sizeof header);
  ::memcpy(&header, file.data(), sizeof header);
  bool made = false;
  for (unsigned i = 0; i < header.e_shnum && !made; i++) {
    char* at = file.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    ::memcpy(&section, at, sizeof section);
    if (section.sh_type == SHT_SYMTAB) break;
    if (section.sh_type != SHT_DYNSYM) continue;
    section.sh_type = SHT_SYMTAB;
    ::memcpy(at, &section, sizeof section);
    made = true;
  }
  ASSERT_TRUE(made) << "needs .dynsym before .symtab";
  const auto table = ElfSymbols::read(file);
  ASSERT_TRUE(table);
  EXPECT_EQ(find_named(*table, "function_of_elf_test"), nullptr);
}

// What its frames leave of a stripped file is enough for a place in it.
TEST(CodePlace, OfStrippedFiles) {
  Stripped files;
  if (!files.made) GTEST_SKIP() << "needs objcopy and strip";
  const Fd full = open_file(files.full), bare = open_file(files.stripped);
  const auto table = ElfSymbols::read(full.get()), none = ElfSymbols::read(bare.get());
  ASSERT_TRUE(table && none);
  const auto* function = find_named(*table, "function_of_elf_test");
  ASSERT_NE(function, nullptr);
  FileCode code(bare.get());
  const auto at = [&](std::uint64_t address) {
    return place_at(bare.get(), *none, address,
                    [&](auto there) { return code.described_at(there); });
  };
  const auto named = place_at(full.get(), *table, function->start);
  const auto framed = at(function->start);
  EXPECT_EQ(framed.state, CodePlace::found);
  EXPECT_EQ(framed.size, named.size);
  EXPECT_EQ(framed.offset, named.offset);
  std::size_t n = 0, same = 0;  // aliases and what assemblers write have other sizes
  for (const auto& each : table->functions())
    if (n++; at(each.start + each.size - 1).size == each.size) same++;
  EXPECT_GT(same * 10, n * 9);
  EXPECT_EQ(at(table->code().front().address + (1ULL << 40)).state, CodePlace::nowhere);
}

TEST(ElfSymbols, FindsSymbolsOfStrippedFileInItsDebugFile) {
  Stripped files;
  if (!files.made) GTEST_SKIP() << "needs objcopy and strip";
  const Fd fd = open_file(files.stripped);
  const auto bare = ElfSymbols::read(fd.get());
  ASSERT_TRUE(bare);
  EXPECT_EQ(find_named(*bare, "function_of_elf_test"), nullptr);
  bool asked = false;
  const auto table = ElfSymbols::read(fd.get(), [&](const DebugFileKey& key, const auto& accept) {
    asked = true;
    EXPECT_GE(key.build_id.size(), 16u);
    EXPECT_FALSE(accept(fd.get())) << "itself";
    EXPECT_FALSE(accept(open_file("/bin/true").get())) << "another build-id";
    EXPECT_FALSE(accept(-1));
    EXPECT_TRUE(accept(open_file(files.debug).get()));
  });
  ASSERT_TRUE(asked);
  ASSERT_TRUE(table);
  EXPECT_NE(find_named(*table, "function_of_elf_test"), nullptr);
}

TEST(ElfSymbols, ChecksTheSumOfADebuglinkWithoutBuildId) {
  Stripped files;
  const std::string linked = files.scratch.path() + "/linked";
  if (!files.made || !run("objcopy --remove-section=.note.gnu.build-id --add-gnu-debuglink=" +
                          files.debug + " " + files.stripped + " " + linked))
    GTEST_SKIP() << "needs objcopy and strip";
  const auto table =
      ElfSymbols::read(open_file(linked).get(), [&](const DebugFileKey& key, const auto& accept) {
        EXPECT_EQ(key.build_id, "");
        EXPECT_EQ(key.debuglink, "full.debug");
        EXPECT_FALSE(accept(open_file(files.full).get())) << "another sum";
        EXPECT_TRUE(accept(open_file(files.debug).get()));
      });
  ASSERT_TRUE(table);
  EXPECT_NE(find_named(*table, "function_of_elf_test"), nullptr);
}

std::string xz(const std::string& plain) {
  std::string packed(lzma_stream_buffer_bound(plain.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                0, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const std::uint8_t*>(plain.data()),
                plain.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

TEST(ElfSymbols, ReadsMiniDebuginfo) {
  Stripped files;
  if (!files.made || !run("strip --strip-debug " + files.full))
    GTEST_SKIP() << "needs objcopy and strip";
  // The whole file serves as its own mini debug file, if small enough.
  const std::string plain = places::file_text(files.full);
  if (plain.size() > (60 << 20)) GTEST_SKIP() << "this test is too large";
  const std::string packed = files.scratch.write("debugdata.xz", xz(plain));
  const std::string mini = files.scratch.path() + "/mini";
  ASSERT_TRUE(
      run("objcopy --add-section .gnu_debugdata=" + packed + " " + files.stripped + " " + mini));
  const auto table = ElfSymbols::read(open_file(mini).get());
  ASSERT_TRUE(table);
  EXPECT_NE(find_named(*table, "function_of_elf_test"), nullptr);
}

TEST(ElfSymbols, BoundsUnpacking) {
  Stripped files;
  if (!files.made) GTEST_SKIP() << "needs objcopy and strip";
  const std::string packed = files.scratch.write("bomb.xz", xz(std::string(200 << 20, '\0')));
  const std::string bomb = files.scratch.path() + "/bomb";
  ASSERT_TRUE(
      run("objcopy --add-section .gnu_debugdata=" + packed + " " + files.stripped + " " + bomb));
  EXPECT_TRUE(ElfSymbols::read(open_file(bomb).get()));
}

TEST(ElfSymbols, RefusesWhatIsNotElf) {
  ScratchDirectory scratch;
  EXPECT_FALSE(ElfSymbols::read(-1));
  EXPECT_FALSE(ElfSymbols::read(open_file("/dev/null").get()));
  for (auto* text : {"", "#!/bin/sh\n", "\177ELF"})
    EXPECT_FALSE(ElfSymbols::read(open_file(scratch.write("file", text)).get())) << text;
  EXPECT_FALSE(ElfSymbols::read(std::span<const char>{}));
}

// Sections without number in the header: libelf would allocate for what a sparse file can claim.
TEST(ElfSymbols, RefusesExtendedCounts) {
  for (auto change :
       {+[](Elf64_Ehdr& h) { h.e_shnum = 0; }, +[](Elf64_Ehdr& h) { h.e_phnum = PN_XNUM; }}) {
    std::string image = places::file_text("/bin/true");
    EXPECT_TRUE(ElfSymbols::read(image));
    change(*reinterpret_cast<Elf64_Ehdr*>(image.data()));
    EXPECT_FALSE(ElfSymbols::read(image));
  }
}

}  // namespace
}  // namespace coretap::symbols
