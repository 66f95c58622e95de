#include "cfi/elf_code.hpp"

#include <elf.h>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "made_elf.hpp"

namespace coretap::unwind {
namespace {

using namespace test;

ElfCode code_of(const std::string& file) { return read_elf_code(Image(file)); }

TEST(ElfCode, SegmentsAndEntry) {
  MadeElf made;
  made.entry = kCode + 8;
  made.fde(made.cie(), kCode, 16, {});
  const auto file = made.file();
  const auto elf = code_of(file);
  ASSERT_EQ(elf.state, ElfCode::usable);
  EXPECT_EQ(elf.size, file.size());
  EXPECT_EQ(elf.entry, kCode + 8);
  EXPECT_EQ(elf.frame_header, kHeader);
  ASSERT_EQ(elf.segments.size(), 3u);
  const auto& code = elf.segments[2];
  EXPECT_TRUE(code.executable);
  EXPECT_FALSE(elf.segments[0].executable);
  EXPECT_EQ(elf.address_of_offset(code.offset + 5), kCode + 5);
  EXPECT_EQ(elf.offset_of_address(kCode + 5), code.offset + 5);
  EXPECT_EQ(elf.offset_of_address(kCode + made.code.size()), std::nullopt);
  EXPECT_EQ(elf.offset_of_address(kCode - 1), std::nullopt);
  EXPECT_EQ(elf.address_of_offset(0), std::nullopt);
}

TEST(ElfCode, ExecutableSegmentsFirst) {
  ElfCode elf;
  elf.segments = {{.offset = 0, .address = 0x1000, .size = 0x100, .executable = false},
                  {.offset = 0x80, .address = 0x5080, .size = 0x100, .executable = true}};
  EXPECT_EQ(elf.address_of_offset(0x90), 0x5090u);
  EXPECT_EQ(elf.address_of_offset(0x10), 0x1010u);
}

// As laid out by lld: the page in which code starts is mapped twice.
TEST(ElfCode, MappingsBeginWherePagesDo) {
  ElfCode elf;
  elf.segments = {{.offset = 0, .address = 0, .size = 0x79c, .executable = false},
                  {.offset = 0x7a0, .address = 0x17a0, .size = 0x1390, .executable = true},
                  {.offset = 0x1b30, .address = 0x3b30, .size = 0x1e8, .executable = false},
                  {.offset = 0x1d18, .address = 0x5d18, .size = 0x800, .executable = true}};
  EXPECT_EQ(elf.address_of_mapping(0, 0x2000), 0x1000u);
  EXPECT_EQ(elf.address_of_mapping(0x1000, 0x1000), 0x2000u);  // a piece
  EXPECT_EQ(elf.address_of_mapping(0x1000, 0x2000), 0x2000u);  // more of the first
  EXPECT_EQ(elf.address_of_mapping(0x2000, 0x1000), 0x6000u);
  EXPECT_EQ(elf.address_of_mapping(0x3000, 0x1000), std::nullopt);
  elf.segments.resize(1);
  EXPECT_EQ(elf.address_of_mapping(0, 0x1000), 0u);
}

TEST(ElfCode, OtherFiles) {
  MadeElf made;
  const auto with = [file = made.file()](std::size_t at, int byte) {
    auto changed = file;
    changed[at] = static_cast<char>(byte);
    return code_of(changed).state;
  };
  EXPECT_EQ(with(0, 0x7f), ElfCode::usable);
  EXPECT_EQ(with(0, 0), ElfCode::no_elf);
  EXPECT_EQ(with(EI_CLASS, ELFCLASS32), ElfCode::foreign);
  EXPECT_EQ(with(EI_DATA, ELFDATA2MSB), ElfCode::foreign);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_machine), EM_AARCH64), ElfCode::foreign);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_REL), ElfCode::no_elf);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_EXEC), ElfCode::usable);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_phentsize), 32), ElfCode::no_elf);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_phnum) + 1, 0xff), ElfCode::no_elf);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff), ElfCode::no_elf);
  for (auto* none : {"", "\177ELF"}) EXPECT_EQ(code_of(none).state, ElfCode::no_elf) << none;
}

}  // namespace
}  // namespace coretap::unwind
