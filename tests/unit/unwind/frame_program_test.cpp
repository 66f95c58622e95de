// Each instruction and expression by its bytes, in a function from kCode on.
#include "unwind/frame_program.hpp"

#include "made_elf.hpp"
#include "rules.hpp"

namespace coretap::unwind {
namespace {

using test::bytes;
using test::kFunctionStart;
using test::MadeElf;
using test::raw;
using test::rows_of;

// What the program says for a function of 256 bytes.
std::string rows_of(const std::string& program, const std::string& start = kFunctionStart) {
  MadeElf elf;
  elf.fde(elf.cie(start), test::kCode, 256, program);
  return rows_of(elf);
}
std::string rows_of(std::initializer_list<int> program) { return rows_of(bytes(program)); }

// What holds after the program, at once.
std::string rule_after(const std::string& program) {
  const auto rows = rows_of(program);
  const std::string first = "10000 ", end = ", 10100 none";
  if (rows.empty()) return "none";
  EXPECT_TRUE(rows.starts_with(first) && rows.ends_with(end)) << rows;
  return rows.substr(first.size(), rows.size() - first.size() - end.size());
}
std::string rule_after(std::initializer_list<int> program) { return rule_after(bytes(program)); }

TEST(FrameProgram, Advances) {
  EXPECT_EQ(rows_of({}), "10000 sp+8, 10100 none");
  EXPECT_EQ(rows_of({0x41, 0x0e, 16}), "10000 sp+8, 10001 sp+16, 10100 none");
  EXPECT_EQ(rows_of({0x02, 0xf0, 0x0e, 16}), "10000 sp+8, 100f0 sp+16, 10100 none");
  EXPECT_EQ(rows_of({0x03, 0xff, 0x00, 0x0e, 16}), "10000 sp+8, 100ff sp+16, 10100 none");
  EXPECT_EQ(rows_of({0x04, 2, 0, 0, 0, 0x0e, 16}), "10000 sp+8, 10002 sp+16, 10100 none");
  EXPECT_EQ(rows_of({0x1d, 3, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16}),
            "10000 sp+8, 10003 sp+16, 10100 none");
  // What follows the function's end does not count, nor does moving by nothing or to no change.
  EXPECT_EQ(rows_of({0x03, 0x00, 0x01, 0x0e, 16}), "10000 sp+8, 10100 none");
  EXPECT_EQ(rows_of({0x40, 0x0e, 16, 0x42, 0x0e, 16}), "10000 sp+16, 10100 none");
  EXPECT_EQ(rows_of(bytes({0x1d}) + raw(~0ULL) + bytes({0x0e, 16})),
            "10000 other, 10100 none");  // past the end of all addresses
}

TEST(FrameProgram, AdvancesByTheAlignmentOfCode) {
  MadeElf elf;
  elf.fde(elf.cie(kFunctionStart, "zR", bytes({0x1b}), 1, 4), test::kCode, 256,
          bytes({0x42, 0x0e, 16}));
  EXPECT_EQ(rows_of(elf), "10000 sp+8, 10008 sp+16, 10100 none");
}

TEST(FrameProgram, SetsTheLocation) {
  MadeElf elf;
  elf.fde(elf.cie(kFunctionStart, "zR", bytes({0x00})), test::kCode, 256,
          bytes({0x01}) + raw(test::kCode + 5) + bytes({0x0e, 16}) + bytes({0x01}) +
              raw(test::kCode + 4),
          raw(test::kCode) + raw(std::uint64_t{256}));
  EXPECT_EQ(rows_of(elf), "10000 sp+8, 10005 other, 10100 none");  // backwards: not understood
}

TEST(FrameProgram, DefinesTheCfa) {
  EXPECT_EQ(rule_after({0x0c, 6, 16}), "bp+16");
  EXPECT_EQ(rule_after({0x0c, 3, 0x80, 1}), "bx+128");
  EXPECT_EQ(rule_after({0x0c, 10, 0}), "r10+0");
  EXPECT_EQ(rule_after({0x0c, 13, 0}), "other");
  EXPECT_EQ(rule_after({0x0c, 13, 16, 0x0d, 7}), "sp+16");  // the offset is kept
  EXPECT_EQ(rule_after({0x0d, 6}), "bp+8");
  EXPECT_EQ(rule_after({0x0e, 0x90, 0x01}), "sp+144");
  EXPECT_EQ(rule_after({0x12, 6, 0x7e}), "bp+16");  // -2 * -8
  EXPECT_EQ(rule_after({0x12, 7, 2}), "sp-16");
  EXPECT_EQ(rule_after({0x13, 0x7d}), "sp+24");
  EXPECT_EQ(rule_after({0x0e, 0xff, 0xff, 0xff, 0xff, 0x07}), "sp+2147483647");
  EXPECT_EQ(rule_after({0x0e, 0x80, 0x80, 0x80, 0x80, 0x08}), "other");
}

TEST(FrameProgram, SavesRegisters) {
  EXPECT_EQ(rule_after({0x86, 2}), "sp+8 bp@cfa-16");
  EXPECT_EQ(rule_after({0x83, 3}), "sp+8 bx@cfa-24");
  EXPECT_EQ(rule_after({0x8c, 2, 0x8d, 3}), "sp+8");
  EXPECT_EQ(rule_after({0x05, 6, 2, 0x05, 3, 0x80, 1}), "sp+8 bp@cfa-16 bx@cfa-1024");
  EXPECT_EQ(rule_after({0x11, 6, 0x7e}), "sp+8 bp@cfa+16");
  EXPECT_EQ(rule_after({0x11, 3, 2}), "sp+8 bx@cfa-16");
  EXPECT_EQ(rule_after({0x2f, 6, 2}), "sp+8 bp@cfa+16");
  EXPECT_EQ(rule_after({0x86, 2, 0x08, 6, 0x83, 3, 0x08, 3}), "sp+8");
  EXPECT_EQ(rule_after({0x2e, 0x90, 0x01}), "sp+8");
  EXPECT_EQ(rule_after({0x00, 0x00}), "sp+8");
}

TEST(FrameProgram, RestoresWhatTheCieSays) {
  const auto start = kFunctionStart + bytes({0x86, 2, 0x83, 3});
  EXPECT_EQ(rows_of(bytes({0x86, 4, 0x41, 0xc6}), start),
            "10000 sp+8 bp@cfa-32 bx@cfa-24, 10001 sp+8 bp@cfa-16 bx@cfa-24, 10100 none");
  EXPECT_EQ(rows_of(bytes({0x83, 4, 0x41, 0x06, 3}), start),
            "10000 sp+8 bp@cfa-16 bx@cfa-32, 10001 sp+8 bp@cfa-16 bx@cfa-24, 10100 none");
  EXPECT_EQ(rows_of({0x86, 2, 0x41, 0xc6, 0xcc}), "10000 sp+8 bp@cfa-16, 10001 sp+8, 10100 none");
}

TEST(FrameProgram, RemembersTheWholeState) {
  EXPECT_EQ(rows_of({0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0a, 0x0c, 6, 16, 0x83, 3, 0x41, 0x0b, 0x41,
                     0x0b, 0x41, 0x0e, 24}),
            "10000 sp+16 bp@cfa-16, 10001 bp+16 bp@cfa-16 bx@cfa-24, 10002 sp+16 bp@cfa-16, "
            "10004 sp+24 bp@cfa-16, 10100 none");
  EXPECT_EQ(rule_after({0x0b}), "other");  // nothing to restore
  EXPECT_EQ(rule_after(std::string(32, '\x0a') + std::string(32, '\x0b')), "sp+8");
  EXPECT_EQ(rule_after(std::string(100000, '\x0a')), "other");
}

TEST(FrameProgram, OutermostFrames) {
  EXPECT_EQ(rule_after({0x07, 16}), "end");
  EXPECT_EQ(rule_after({0x07, 16, 0x86, 2, 0x0e, 64}), "end");
}

// A rule is never told that is not so.
TEST(FrameProgram, WhatRulesCannotExpress) {
  EXPECT_EQ(rule_after({0x90, 2}), "other");  // the return address elsewhere
  EXPECT_EQ(rule_after({0x08, 16}), "other");
  EXPECT_EQ(rule_after({0x09, 16, 0}), "other");  // in a register
  // vfork() keeps it in rdi while the child runs, and rbx and rbp where they are.
  EXPECT_EQ(rule_after({0x09, 16, 5, 0x0e, 0}), "vfork +0");
  EXPECT_EQ(rule_after({0x09, 16, 5, 0x09, 3, 0}), "other");
  EXPECT_EQ(rule_after({0x07, 6}), "other");     // rbp is gone
  EXPECT_EQ(rule_after({0x09, 6, 0}), "other");  // rbp is in rax
  EXPECT_EQ(rule_after({0x14, 6, 2}), "other");  // rbp is CFA - 16
  EXPECT_EQ(rule_after({0x15, 6, 0x7e}), "other");
  EXPECT_EQ(rule_after({0x16, 6, 2, 0x77, 8}), "other");
  EXPECT_EQ(rule_after({0x05, 6, 0x80, 0x80, 0x80, 0x01}), "other");  // too far for a slot
  EXPECT_EQ(rule_after({0x86, 2, 0x2d}), "other");  // not an instruction on this processor
  EXPECT_EQ(rule_after({0x0e}), "other");           // cut off
  EXPECT_EQ(rule_after({0x86}), "other");
  EXPECT_EQ(rule_after({0x03, 1}), "other");
  EXPECT_EQ(rule_after({0x0f, 4, 0x77, 8}), "other");
  EXPECT_EQ(rule_after(bytes({0x0e}) + std::string(5000, '\x80')), "other");
  EXPECT_EQ(rows_of({0x41, 0x0e, 16, 0x41, 0x3f}),
            "10000 sp+8, 10001 sp+16, 10002 other, 10100 none");
  // Few callers need rbx: only it is reported as lost.
  EXPECT_EQ(rule_after({0x07, 3}), "sp+8 bx?");
  EXPECT_EQ(rule_after({0x09, 3, 0}), "sp+8 bx?");
  EXPECT_EQ(rule_after({0x10, 3, 2, 0x76, 0x78}), "sp+8 bx?");
  EXPECT_EQ(rule_after({0x05, 3, 0x80, 0x80, 0x80, 0x01}), "sp+8 bx?");
}

TEST(FrameProgram, SlotsOfAnOddSize) {
  MadeElf elf;
  auto& frames = elf.frames;
  const auto cie = elf.cie();
  const auto align = frames.find('\x78');
  frames[align] = 0x7f;  // data come in single bytes
  frames[frames.find("\x90\x01") + 1] = 8;
  elf.fde(cie, test::kCode, 256, bytes({0x86, 20}));
  EXPECT_EQ(rows_of(elf), "10000 other, 10100 none");
}

TEST(FrameProgram, CfaByExpression) {
  EXPECT_EQ(rule_after({0x0f, 2, 0x77, 16}), "sp+16");
  EXPECT_EQ(rule_after({0x0f, 2, 0x76, 0x70}), "bp-16");
  EXPECT_EQ(rule_after({0x0f, 2, 0x7a, 0}), "r10+0");
  EXPECT_EQ(rule_after({0x0f, 3, 0x76, 0x78, 0x06}), "*(bp-8)+0");
  EXPECT_EQ(rule_after({0x0f, 3, 0x77, 8, 0x06}), "*(sp+8)+0");
  EXPECT_EQ(rule_after({0x0f, 6, 0x77, 0x98, 1, 0x06, 0x23, 8}), "*(sp+152)+8");
  EXPECT_EQ(rule_after({0x0f, 5, 0x76, 0, 0x06, 0x23, 8}), "*(bp+0)+8");
  EXPECT_EQ(rule_after({0x0f, 3, 0x7d, 0, 0x06}), "other");
  EXPECT_EQ(rule_after({0x0f, 4, 0x77, 8, 0x06, 0x06}), "other");
  EXPECT_EQ(rule_after({0x0f, 6, 0x77, 8, 0x06, 0x23, 8, 0x06}), "other");
  EXPECT_EQ(rule_after({0x0f, 3, 0x77, 8, 0x12}), "other");
  EXPECT_EQ(rule_after({0x0f, 0}), "other");
  // Its offset cannot be changed alone; a register counts from the offset before it.
  EXPECT_EQ(rule_after({0x0f, 2, 0x77, 16, 0x0e, 24}), "other");
  EXPECT_EQ(rule_after({0x0e, 56, 0x0f, 3, 0x77, 16, 0x06, 0x0d, 7}), "sp+56");
  EXPECT_EQ(rule_after({0x0f, 2, 0x77, 16, 0x0c, 7, 24}), "sp+24");
}

TEST(FrameProgram, ProcedureLinkageTable) {
  const auto plt = [](int literal) {
    return rule_after({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, literal, 0x2a, 0x33, 0x24, 0x22});
  };
  EXPECT_EQ(plt(0x3b), "plt 11");
  EXPECT_EQ(plt(0x3a), "plt 10");
  EXPECT_EQ(plt(0x39), "plt 9");
  EXPECT_EQ(plt(0x30), "other");
  EXPECT_EQ(plt(0x40), "other");
  EXPECT_EQ(rule_after({0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}),
            "other");
  EXPECT_EQ(rule_after({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2b, 0x33, 0x24, 0x22}),
            "other");
}

TEST(FrameProgram, RegistersByExpression) {
  EXPECT_EQ(rule_after({0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0}), "*(bp-8)+0 bp@bp+0");
  EXPECT_EQ(rule_after({0x10, 6, 2, 0x77, 0x78}), "sp+8 bp@cfa-16");
  EXPECT_EQ(rule_after({0x10, 3, 2, 0x77, 0x78}), "sp+8 bx@cfa-16");
  EXPECT_EQ(rule_after({0x0c, 6, 16, 0x10, 3, 2, 0x76, 0x78}), "bp+16 bx@cfa-24");
  EXPECT_EQ(rule_after({0x10, 16, 2, 0x77, 0}), "sp+8");  // the same place in other words
  EXPECT_EQ(rule_after({0x10, 6, 3, 0x76, 0, 0x06}), "other");
  EXPECT_EQ(rule_after({0x10, 6, 2, 0x76, 4}), "other");
  EXPECT_EQ(rule_after({0x10, 0, 2, 0x76, 4}), "sp+8");
}

TEST(FrameProgram, SignalFrames) {
  // __restore_rt of glibc, without the registers that do not matter.
  const auto sigreturn = bytes({0x0f, 4, 0x77, 0xa0, 1, 0x06}) +
                         bytes({0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 3, 3, 0x77, 0x80, 1}) +
                         bytes({0x10, 16, 3, 0x77, 0xa8, 1});
  const auto rule = [](const char* augmentation, const std::string& program) {
    MadeElf elf;
    elf.fde(elf.cie(kFunctionStart, augmentation), test::kCode, 256, program);
    return rows_of(elf);
  };
  EXPECT_EQ(rule("zRS", sigreturn), "10000 signal, 10100 none");
  EXPECT_EQ(rule("zR", sigreturn), "10000 other, 10100 none");
  for (const std::size_t place : {3, 10, 15, 20}) {  // the CFA's, rbp's, rbx', the return address'
    auto moved = sigreturn;
    moved[place] = static_cast<char>(moved[place] ^ 8);
    EXPECT_EQ(rule("zRS", moved), "10000 other, 10100 none") << place;
  }
  EXPECT_EQ(rule("zRS", {}), "10000 other, 10100 none");
  EXPECT_EQ(rule("zRS", bytes({0x07, 16})), "10000 end, 10100 none");
}

}  // namespace
}  // namespace coretap::unwind
