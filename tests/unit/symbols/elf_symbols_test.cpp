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

// A small stripped file with build-id, and its debug file.
class StrippedFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!succeeds("cp /proc/" + std::to_string(::getpid()) + "/exe " + full) ||
        !succeeds("objcopy --only-keep-debug " + full + " " + debug) ||
        !succeeds("strip --strip-all -o " + stripped + " " + full))
      GTEST_SKIP() << "needs objcopy and strip";
  }
  /// The stripped file, modified.
  std::string changed(const std::string& options) const {
    EXPECT_TRUE(succeeds("objcopy " + options + " " + stripped + " " + scratch.in("changed")));
    return scratch.in("changed");
  }
  static std::shared_ptr<ElfSymbols> read(const std::string& path) {
    return ElfSymbols::read(open_file(path).get());
  }
  static void expect_known(const std::shared_ptr<ElfSymbols>& table, bool known = true) {
    ASSERT_TRUE(table);
    EXPECT_EQ(find_named(*table, "function_of_elf_test") != nullptr, known);
  }
  ScratchDirectory scratch;
  std::string full = scratch.in("full"), debug = scratch.in("full.debug"),
              stripped = scratch.in("stripped");
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

// The C library has an entry point and a dynamic linker, as programs have. Its function here is
// one that sanitisers do not define themselves.
TEST_F(StrippedFiles, ProgramsAndLibraries) {
  ASSERT_TRUE(read(full));
  EXPECT_TRUE(read(full)->is_program());
  EXPECT_TRUE(read(stripped)->is_program());
  for (const auto* function : {"gnu_get_libc_version", "lzma_code", "elf_begin"}) {
    Dl_info found;
    void* address = ::dlsym(RTLD_DEFAULT, function);
    if (address == nullptr || ::dladdr(address, &found) == 0) continue;
    const auto library = read(found.dli_fname);
    if (library) {
      EXPECT_FALSE(library->is_program()) << found.dli_fname;
    }
  }
  const std::string source = scratch.write("main.c", "int main(void) { return 0; }\n");
  for (const std::string how : {"-no-pie", "-pie", "-static-pie", "-static"}) {
    const std::string made = scratch.in("made" + how);
    if (!succeeds("cc " + how + " -o " + made + " " + source)) continue;
    EXPECT_TRUE(read(made)->is_program()) << how;
  }
  for (const std::string how : {"", "-Wl,-soname,libmade.so"}) {
    ASSERT_TRUE(
        succeeds("cc -shared -fPIC " + how + " -o " + scratch.in("made.so") + " " + source));
    EXPECT_FALSE(read(scratch.in("made.so"))->is_program()) << how;
  }
}

// Functions where a stack may end: by name, or without symbols by the ELF header.
TEST_F(StrippedFiles, EntryOfAProgram) {
  const auto table = read(full), bare = read(stripped);
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

// The C library is stripped of the names of local functions.
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

// Each table would be read again, from bytes that cost nothing in a sparse file.
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

// The frames of a stripped file suffice for offsets in it.
TEST_F(StrippedFiles, HaveCodePlaces) {
  const Fd whole = open_file(full), bare = open_file(stripped);
  const auto table = ElfSymbols::read(whole.get()), none = ElfSymbols::read(bare.get());
  ASSERT_TRUE(table && none);
  const auto* function = find_named(*table, "function_of_elf_test");
  ASSERT_NE(function, nullptr);
  FileCode code(bare.get());
  const auto at = [&](std::uint64_t address) {
    return place_at(bare.get(), *none, address,
                    [&](auto there) { return code.described_at(there); });
  };
  const auto named = place_at(whole.get(), *table, function->start);
  const auto framed = at(function->start);
  EXPECT_EQ(framed.state, CodePlace::found);
  EXPECT_EQ(framed.size, named.size);
  EXPECT_EQ(framed.offset, named.offset);
  std::size_t n = 0, same = 0;  // aliases and hand-written assembly have other sizes
  for (const auto& each : table->functions())
    if (n++; at(each.start + each.size - 1).size == each.size) same++;
  EXPECT_GT(same * 10, n * 9);
  EXPECT_EQ(at(table->code().front().address + (1ULL << 40)).state, CodePlace::nowhere);
}

TEST_F(StrippedFiles, FindsSymbolsOfStrippedFileInItsDebugFile) {
  const Fd fd = open_file(stripped);
  expect_known(ElfSymbols::read(fd.get()), false);
  bool asked = false;
  const auto table = ElfSymbols::read(fd.get(), [&](const DebugFileKey& key, const auto& accept) {
    asked = true;
    EXPECT_GE(key.build_id.size(), 16u);
    EXPECT_FALSE(accept(fd.get())) << "itself";
    EXPECT_FALSE(accept(open_file("/bin/true").get())) << "another build-id";
    EXPECT_FALSE(accept(-1));
    EXPECT_TRUE(accept(open_file(debug).get()));
  });
  ASSERT_TRUE(asked);
  expect_known(table);
}

TEST_F(StrippedFiles, ChecksTheSumOfADebuglinkWithoutBuildId) {
  const auto linked = changed("--remove-section=.note.gnu.build-id --add-gnu-debuglink=" + debug);
  expect_known(
      ElfSymbols::read(open_file(linked).get(), [&](const DebugFileKey& key, const auto& accept) {
        EXPECT_EQ(key.build_id, "");
        EXPECT_EQ(key.debuglink, "full.debug");
        EXPECT_FALSE(accept(open_file(full).get())) << "another sum";
        EXPECT_TRUE(accept(open_file(debug).get()));
      }));
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

TEST_F(StrippedFiles, ReadsMiniDebuginfo) {
  // The whole file is used as its own mini debug file, if small enough.
  ASSERT_TRUE(succeeds("strip --strip-debug " + full));
  const std::string plain = places::file_text(full);
  if (plain.size() > (60 << 20)) GTEST_SKIP() << "this test is too large";
  expect_known(
      read(changed("--add-section .gnu_debugdata=" + scratch.write("debugdata.xz", xz(plain)))));
}

TEST_F(StrippedFiles, BoundUnpacking) {
  auto packed = scratch.write("bomb.xz", xz(std::string(200 << 20, '\0')));
  EXPECT_TRUE(read(changed("--add-section .gnu_debugdata=" + packed)));
}

TEST(ElfSymbols, RefusesWhatIsNotElf) {
  ScratchDirectory scratch;
  EXPECT_FALSE(ElfSymbols::read(-1));
  EXPECT_FALSE(ElfSymbols::read(open_file("/dev/null").get()));
  for (auto* text : {"", "#!/bin/sh\n", "\177ELF"})
    EXPECT_FALSE(ElfSymbols::read(open_file(scratch.write("file", text)).get())) << text;
  EXPECT_FALSE(ElfSymbols::read(std::span<const char>{}));
}

// Section count outside the header: libelf would allocate whatever a sparse file claims.
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
