#include "cfi/runtime_code.hpp"

#include "coretap/fd.hpp"
#include "made_elf.hpp"
#include "rules.hpp"

namespace coretap::unwind {
namespace {

using namespace test;

// Frames at both ends of a gap of 0x300 bytes; without `after` the gap extends to the end.
std::string gap_rows(const std::string& code, bool after = true) {
  MadeElf elf;
  elf.code = std::string(0x100, '\xcc') + code + std::string(0x300 - code.size(), '\xcc');
  const auto cie = elf.cie();
  elf.fde(cie, kCode, 0x100, bytes({0x0e, 24}));
  if (after) elf.fde(cie, kCode + 0x400 - 0x10, 0x10, bytes({0x0e, 32}));
  auto rows = test::rows_of(elf);
  for (const std::string frame : {"10000 sp+24, ", ", 103f0 sp+32, 10400 none"})
    if (const auto at = rows.find(frame); at != std::string::npos) rows.erase(at, frame.size());
  return rows;
}

const std::string kInit =
    bytes({0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, 1,    2,    3,    4,   0x48,
           0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3});
const std::string kFini =
    bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3});

TEST(RuntimeCode, InitAndFini) {
  EXPECT_EQ(gap_rows(std::string(4, '\x90') + kInit, false),
            "10100 none, 10104 sp+8, 10108 sp+16, 1011a sp+8, 1011b none");
  EXPECT_EQ(gap_rows(kFini, false), "10100 sp+8, 10108 sp+16, 1010c sp+8, 1010d none");
  // Adjacent, as some linkers place them.
  EXPECT_EQ(gap_rows(kInit + '\x90' + kFini, false),
            "10100 sp+8, 10104 sp+16, 10116 sp+8, 10117 none, 10118 sp+8, 10120 sp+16, "
            "10124 sp+8, 10125 none");
}

// By hand, from the layout of crtbeginS.o: a lea, a compare, a jump to the ret after the padding.
const std::string kDeregister =
    bytes({0x48, 0x8d, 0x3d, 1, 2, 3, 4, 0x48, 0x8d, 0x05, 1, 2, 3, 4, 0x48, 0x39, 0xf8}) +
    bytes({0x74, 0x0e, 0x48, 0x8b, 0x05, 1, 2, 3, 4, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xe0}) +
    bytes({0xc3});
const std::string kDtors =
    bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x80, 0x3d, 1, 2, 3, 4, 0, 0x75, 0x11, 0x55, 0x48, 0x89, 0xe5}) +
    bytes({0xe8, 1, 2, 3, 4, 0xc6, 0x05, 1, 2, 3, 4, 1, 0x5d, 0xc3, 0xc3});

TEST(RuntimeCode, Crtstuff) {
  EXPECT_EQ(kDeregister.size(), 0x22u);
  EXPECT_EQ(gap_rows(kDeregister + bytes({0x66, 0x90}) + kDtors),
            "10100 sp+8, 10122 none, 10124 sp+8, 10132 sp+16 bp@cfa-16, 10142 sp+8, 10144 none");
}

TEST(RuntimeCode, WholeFunctionsOnly) {
  const std::string nothing = "10100 none";
  EXPECT_EQ(gap_rows({}), nothing);
  auto cut = kDeregister;
  cut.pop_back();  // no ret to jump to
  EXPECT_EQ(gap_rows(cut + bytes({0xcc})), nothing);
  auto unknown = kDeregister;
  unknown.replace(19, 3, bytes({0x0f, 0x05, 0x90}));  // a system call
  EXPECT_EQ(gap_rows(unknown), nothing);
  auto backward = kDeregister;
  backward[18] = '\xf0';
  EXPECT_EQ(gap_rows(backward), nothing);
  // The stack pointer must be restored at the end of the function.
  auto unbalanced = kInit;
  unbalanced.replace(18, 4, bytes({0x48, 0x85, 0xc0, 0x90}));
  EXPECT_EQ(gap_rows(unbalanced), nothing);
  // Both paths to one address must have the same depth.
  for (const int by : {4, 6}) {  // after the push; within an instruction
    auto crossing = kDtors;
    crossing[12] = static_cast<char>(by);
    EXPECT_EQ(gap_rows(kDeregister + bytes({0x66, 0x90}) + crossing), "10100 sp+8, 10122 none");
  }
}

// If much code has no frames, only its ends and the addresses in the dynamic section are checked.
TEST(RuntimeCode, OfMuchCode) {
  MadeElf elf;
  elf.code = std::string(0x40000, '\xcc');
  elf.code.replace(0, kInit.size(), kInit);
  elf.code.replace(0x18000, kInit.size(), kInit);
  elf.code.replace(0x20000, kFini.size(), kFini);
  elf.code.replace(0x3fff0, kFini.size(), kFini);
  elf.fde(elf.cie(), kCode + 0x5000, 0x10, {});
  const std::string ends =
      "10000 sp+8, 10004 sp+16, 10016 sp+8, 10017 none, 15000 sp+8, 15010 none, "
      "4fff0 sp+8, 4fff8 sp+16, 4fffc sp+8, 4fffd none";
  EXPECT_EQ(test::rows_of(elf), ends);
  elf.dynamic = {{DT_INIT, {kCode + 0x18000}}, {DT_FINI, {kCode + 0x20000}}};
  const auto table = test::read_table(elf.file());
  EXPECT_EQ(test::text(table.at(kCode + 0x18000)), "sp+8");
  EXPECT_EQ(test::text(table.at(kCode + 0x18004)), "sp+16");
  EXPECT_EQ(test::text(table.at(kCode + 0x18017)), "none");
  EXPECT_EQ(test::text(table.at(kCode + 0x20008)), "sp+16");
  elf.dynamic = {{DT_NULL, {0}}, {DT_INIT, {kCode + 0x18000}}};
  EXPECT_EQ(test::rows_of(elf), ends);
}

const std::string kPltHead =
    bytes({0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0});
const std::string kPltEntry = bytes({0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 2, 3, 4, 0xe9, 1, 2, 3, 4});

TEST(RuntimeCode, LinkageTables) {
  EXPECT_EQ(gap_rows(kPltHead + kPltEntry + kPltEntry + kPltEntry.substr(0, 11), false),
            "10100 sp+16, 10106 sp+24, 10110 plt 11, 10130 none");
  EXPECT_EQ(gap_rows(kPltHead, false), "10100 none");
  EXPECT_EQ(gap_rows(kPltEntry + kPltEntry, false), "10100 none");
  // The rule depends on the low bits of addresses.
  EXPECT_EQ(gap_rows("1234" + kPltHead + kPltEntry, false), "10100 none");
  const auto jump = bytes({0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90});
  EXPECT_EQ(gap_rows(jump + jump + jump, false), "10100 sp+8, 10118 none");
  EXPECT_EQ(gap_rows(jump, false), "10100 none");
}

// The first and the last code of this program, as its linker placed it.
extern "C" void _init();
extern "C" void _fini();
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" char __ehdr_start;

TEST(RuntimeCode, OfThisProgram) {
  const Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto table = test::read_table(Image(fd.get()));
  ASSERT_TRUE(table.readable);
  const auto address = [](void (*function)()) {
    return reinterpret_cast<std::uint64_t>(function) -
           reinterpret_cast<std::uint64_t>(&__ehdr_start);
  };
  const auto size = [](void (*function)()) {
    const auto* code = reinterpret_cast<const unsigned char*>(function);
    constexpr unsigned char kEnd[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};  // add $8,%rsp; ret
    std::uint64_t bytes = 0;
    while (bytes < 64 && memcmp(code + bytes, kEnd, sizeof kEnd) != 0) ++bytes;
    return bytes + sizeof kEnd - 1;
  };
  for (auto* function : {&_init, &_fini}) {
    const auto start = address(function), end = start + size(function);
    EXPECT_EQ(test::text(table.at(start)), "sp+8");
    EXPECT_EQ(test::text(table.at(end - 1)), "sp+16");
    EXPECT_EQ(test::text(table.at(end)), "sp+8");
    EXPECT_EQ(test::text(table.at(end + 1)), "none");
  }
}

// --- arm64 ---

/// Of a file that has no CFI, like the vdso.
std::string arm64_rows(std::initializer_list<std::uint32_t> code, std::uint64_t entry = 0) {
  MadeElf elf;
  elf.machine = EM_AARCH64;
  elf.finds = MadeElf::by_section;
  elf.code_at = 0x1000;
  elf.entry = entry;
  elf.code = {};
  for (auto word : code) elf.code += raw(word);
  return rows_of(elf);
}

constexpr std::uint32_t kPushFrame = 0xa9bf7bfd;  // stp x29, x30, [sp, #-16]!
constexpr std::uint32_t kPopFrame = 0xa8c17bfd;   // ldp x29, x30, [sp], #16
constexpr std::uint32_t kNop = 0xd503201f, kReturn = 0xd65f03c0;

TEST(RuntimeCodeOfArm64, WhereTheLinkRegisterIs) {
  EXPECT_EQ(arm64_rows({kNop, kReturn}), "1000 sp+0, 1008 none");
  EXPECT_EQ(arm64_rows({kNop, kPushFrame, kNop, kPopFrame, kNop}),
            "1000 sp+0, 1008 sp+16 bp@cfa-16 ra@cfa-8, 1010 sp+0, 1014 none");
  // Code behind a return was jumped to.
  EXPECT_EQ(arm64_rows({kPushFrame, kPopFrame, kReturn, kNop, kNop}),
            "1000 sp+0, 1004 sp+16 bp@cfa-16 ra@cfa-8, 1008 sp+0, 100c sp+16 bp@cfa-16 ra@cfa-8, "
            "1010 sp+0, 1014 none");
  // stp x16, x30, [sp, #-16]!, ..., br x17: the first entry of a PLT, and one that jumps.
  EXPECT_EQ(arm64_rows({0xa9bf7bf0, kNop, kNop, kNop, 0xd61f0220, kNop, kNop, kNop, kNop, kNop,
                        kNop, 0xd61f0220}),
            "1000 sp+0, 1004 sp+16 ra@cfa-8, 1020 sp+0, 1030 none");
}

TEST(RuntimeCodeOfArm64, FunctionsThatAreCalled) {
  // bl 0x1010
  EXPECT_EQ(arm64_rows({kPushFrame, 0x94000003, kNop, kNop, kNop, kReturn}),
            "1000 sp+0, 1004 sp+16 bp@cfa-16 ra@cfa-8, 1010 sp+0, 1018 none");
}

TEST(RuntimeCodeOfArm64, UnknownChangesOfTheStack) {
  for (std::uint32_t change : {0xd10083ffU,   // sub sp, sp, #32
                               0x910083ffU,   // add sp, sp, #32
                               0xcb2063ffU,   // sub sp, sp, x0
                               0xf81f0ffeU,   // str x30, [sp, #-16]!
                               0xf84107feU,   // ldr x30, [sp], #16
                               0xa9bf53f3U,   // stp x19, x20, [sp, #-16]!
                               0x6dbf27e8U})  // stp d8, d9, [sp, #-16]!
    EXPECT_EQ(arm64_rows({change, kNop}), "1000 sp+0, 1004 none") << std::hex << change;
  for (std::uint32_t none : {0xf10083ffU,   // cmp sp, #32
                             0xf90007feU,   // str x30, [sp, #8]
                             0xa90153f3U,   // stp x19, x20, [sp, #16]
                             0x910083fdU})  // add x29, sp, #32
    EXPECT_EQ(arm64_rows({none, kNop}), "1000 sp+0, 1008 none") << std::hex << none;
}

TEST(RuntimeCodeOfArm64, ReturnsFromSignalHandlers) {
  EXPECT_EQ(arm64_rows({kReturn, kNop, 0xd2801168, 0xd4000001, kNop}),
            "1000 sp+0, 1004 signal, 1010 sp+0, 1014 none");
  EXPECT_EQ(arm64_rows({0xd2801168, 0xd4000001}), "1000 signal, 1008 none");
}

TEST(RuntimeCodeOfArm64, VdsoHasNoCfi) {
  EXPECT_EQ(arm64_rows({kReturn, kNop, 0xd2801168, 0xd4000001}),
            "1000 sp+0, 1004 signal, 1010 none");
  // Other files need some.
  EXPECT_EQ(arm64_rows({kReturn, kNop, 0xd2801168, 0xd4000001}, 0x1000), "");
}

}  // namespace
}  // namespace coretap::unwind
