// Each instruction and expression as bytes, in a function from kCode on.
#include "cfi/frame_program.hpp"

#include "made_elf.hpp"
#include "rules.hpp"

namespace coretap::unwind {
namespace {

using namespace test;

// The rows of the program for a function of 256 bytes.
std::string rows_of(const std::string& program, const std::string& start = kFunctionStart) {
  MadeElf elf;
  elf.fde(elf.cie(start), kCode, 256, program);
  return rows_of(elf);
}
std::string rows_of(std::initializer_list<int> program) { return rows_of(bytes(program)); }

// The rule at the end of the program, without advances.
std::string rule_after(const std::string& program) {
  const auto rows = rows_of(program);
  const std::string first = "10000 ", end = ", 10100 none";
  if (rows.empty()) return "none";
  EXPECT_TRUE(rows.starts_with(first) && rows.ends_with(end)) << rows;
  return rows.substr(first.size(), rows.size() - first.size() - end.size());
}
/// "0e 10: sp+16": the program's bytes and the result of `said`.
void expect_each_program(std::string (*said)(const std::string&),
                         std::initializer_list<std::string> cases) {
  for (auto& text : cases) {
    std::istringstream words(text);
    std::string program;
    for (std::string word; words >> word && program.size() * 3 < text.find(':');)
      program += static_cast<char>(std::stoi(word, nullptr, 16));
    EXPECT_EQ(said(program), text.substr(text.find(": ") + 2)) << text;
  }
}
void expect_rules(std::initializer_list<std::string> cases) {
  expect_each_program(rule_after, cases);
}

TEST(FrameProgram, Advances) {
  EXPECT_EQ(rows_of({}), "10000 sp+8, 10100 none");
  expect_each_program(
      [](const std::string& program) { return rows_of(program); },
      {"41 0e 10: 10000 sp+8, 10001 sp+16, 10100 none",
       "02 f0 0e 10: 10000 sp+8, 100f0 sp+16, 10100 none",
       "03 ff 00 0e 10: 10000 sp+8, 100ff sp+16, 10100 none",
       "04 02 00 00 00 0e 10: 10000 sp+8, 10002 sp+16, 10100 none",
       "1d 03 00 00 00 00 00 00 00 0e 10: 10000 sp+8, 10003 sp+16, 10100 none",
       // Ignored: rows after the function's end, advances by nothing or without a change.
       "03 00 01 0e 10: 10000 sp+8, 10100 none", "40 0e 10 42 0e 10: 10000 sp+16, 10100 none",
       // Past the end of all addresses.
       "1d ff ff ff ff ff ff ff ff 0e 10: 10000 other, 10100 none"});
}

TEST(FrameProgram, AdvancesByTheAlignmentOfCode) {
  MadeElf elf;
  elf.fde(elf.cie(kFunctionStart, "zR", bytes({0x1b}), 1, 4), kCode, 256, bytes({0x42, 0x0e, 16}));
  EXPECT_EQ(rows_of(elf), "10000 sp+8, 10008 sp+16, 10100 none");
}

TEST(FrameProgram, SetsTheLocation) {
  MadeElf elf;
  elf.fde(elf.cie(kFunctionStart, "zR", bytes({0x00})), kCode, 256,
          bytes({0x01}) + raw(kCode + 5) + bytes({0x0e, 16}) + bytes({0x01}) + raw(kCode + 4),
          raw(kCode) + raw(std::uint64_t{256}));
  EXPECT_EQ(rows_of(elf), "10000 sp+8, 10005 other, 10100 none");  // backwards: not supported
}

TEST(FrameProgram, DefinesTheCfa) {
  expect_rules({"0c 06 10: bp+16", "0c 03 80 01: bx+128", "0c 0a 00: r10+0", "0c 0d 00: other",
                "0c 0d 10 0d 07: sp+16",                               // the offset is kept
                "0d 06: bp+8", "0e 90 01: sp+144", "12 06 7e: bp+16",  // -2 * -8
                "12 07 02: sp-16", "13 7d: sp+24", "0e ff ff ff ff 07: sp+2147483647",
                "0e 80 80 80 80 08: other"});
}

TEST(FrameProgram, SavesRegisters) {
  expect_rules({"86 02: sp+8 bp@cfa-16", "83 03: sp+8 bx@cfa-24", "8c 02 8d 03: sp+8",
                "05 06 02 05 03 80 01: sp+8 bp@cfa-16 bx@cfa-1024", "11 06 7e: sp+8 bp@cfa+16",
                "11 03 02: sp+8 bx@cfa-16", "2f 06 02: sp+8 bp@cfa+16",
                "86 02 08 06 83 03 08 03: sp+8", "2e 90 01: sp+8", "00 00: sp+8"});
}

TEST(FrameProgram, RemembersStates) {
  EXPECT_EQ(rule_after(bytes({0x0b})), "other");  // nothing to restore
  EXPECT_EQ(rule_after(std::string(32, '\x0a') + std::string(32, '\x0b')), "sp+8");
  EXPECT_EQ(rule_after(std::string(100000, '\x0a')), "other");
}

TEST(FrameProgram, OutermostFrames) { expect_rules({"07 10: end", "07 10 86 02 0e 40: end"}); }

// Programs that rules cannot express give "other", never a wrong rule.
TEST(FrameProgram, WhatRulesCannotExpress) {
  expect_rules({
      "90 02: other",                     // the return address at another offset
      "08 10: other", "09 10 00: other",  // in a register
  });
  // vfork() keeps it in rdi while the child runs, and rbx and rbp unchanged.
  expect_rules({"09 10 05 0e 00: vfork +0", "09 10 05 09 03 00: other"});
  EXPECT_EQ(rule_after(bytes({0x07, 6})), "other");  // rbp is lost
  expect_rules({
      "09 06 00: other",                                                       // rbp is in rax
      "14 06 02: other",                                                       // rbp is CFA - 16
      "15 06 7e: other", "16 06 02 77 08: other", "05 06 80 80 80 01: other",  // too far for a slot
      "86 02 2d: other",  // not an instruction on this processor
  });
  EXPECT_EQ(rule_after(bytes({0x0e})), "other");  // truncated
  expect_rules({"86: other", "03 01: other", "0f 04 77 08: other"});
  EXPECT_EQ(rule_after(bytes({0x0e}) + std::string(5000, '\x80')), "other");
  EXPECT_EQ(rows_of({0x41, 0x0e, 16, 0x41, 0x3f}),
            "10000 sp+8, 10001 sp+16, 10002 other, 10100 none");
  // Few callers need rbx: it is only marked as lost.
  expect_rules({"07 03: sp+8 bx?", "09 03 00: sp+8 bx?", "10 03 02 76 78: sp+8 bx?",
                "05 03 80 80 80 01: sp+8 bx?"});
}

TEST(FrameProgram, SlotsOfAnOddSize) {
  MadeElf elf;
  auto& frames = elf.frames;
  const auto cie = elf.cie();
  const auto align = frames.find('\x78');
  frames[align] = 0x7f;  // data in single bytes
  frames[frames.find("\x90\x01") + 1] = 8;
  elf.fde(cie, kCode, 256, bytes({0x86, 20}));
  EXPECT_EQ(rows_of(elf), "10000 other, 10100 none");
}

TEST(FrameProgram, CfaByExpression) {
  expect_rules({"0f 02 77 10: sp+16", "0f 02 76 70: bp-16", "0f 02 7a 00: r10+0",
                "0f 03 76 78 06: *(bp-8)+0", "0f 03 77 08 06: *(sp+8)+0",
                "0f 06 77 98 01 06 23 08: *(sp+152)+8", "0f 05 76 00 06 23 08: *(bp+0)+8",
                "0f 03 7d 00 06: other", "0f 04 77 08 06 06: other",
                "0f 06 77 08 06 23 08 06: other", "0f 03 77 08 12: other", "0f 00: other"});
  // Its offset cannot be changed alone; a register uses the offset before it.
  expect_rules({"0f 02 77 10 0e 18: other", "0e 38 0f 03 77 10 06 0d 07: sp+56",
                "0f 02 77 10 0c 07 18: sp+24"});
}

TEST(FrameProgram, ProcedureLinkageTable) {
  expect_rules({"0f 0b 77 08 80 00 3f 1a 3b 2a 33 24 22: plt 11",
                "0f 0b 77 08 80 00 3f 1a 3a 2a 33 24 22: plt 10",
                "0f 0b 77 08 80 00 3f 1a 39 2a 33 24 22: plt 9",
                "0f 0b 77 08 80 00 3f 1a 30 2a 33 24 22: other",
                "0f 0b 77 08 80 00 3f 1a 40 2a 33 24 22: other",
                "0f 0b 77 10 80 00 3f 1a 3b 2a 33 24 22: other",
                "0f 0b 77 08 80 00 3f 1a 3b 2b 33 24 22: other"});
}

TEST(FrameProgram, RegistersByExpression) {
  expect_rules({"0f 03 76 78 06 10 06 02 76 00: *(bp-8)+0 bp@bp+0",
                "10 06 02 77 78: sp+8 bp@cfa-16", "10 03 02 77 78: sp+8 bx@cfa-16",
                "0c 06 10 10 03 02 76 78: bp+16 bx@cfa-24",
                "10 10 02 77 00: sp+8",  // the same offset in another form
                "10 06 03 76 00 06: other", "10 06 02 76 04: other", "10 00 02 76 04: sp+8"});
}

TEST(FrameProgram, SignalFrames) {
  // __restore_rt of glibc, without irrelevant registers.
  const auto sigreturn = bytes({0x0f, 4, 0x77, 0xa0, 1, 0x06}) +
                         bytes({0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 3, 3, 0x77, 0x80, 1}) +
                         bytes({0x10, 16, 3, 0x77, 0xa8, 1});
  const auto rule = [](const char* augmentation, const std::string& program) {
    MadeElf elf;
    elf.fde(elf.cie(kFunctionStart, augmentation), kCode, 256, program);
    return rows_of(elf);
  };
  EXPECT_EQ(rule("zRS", sigreturn), "10000 signal, 10100 none");
  EXPECT_EQ(rule("zR", sigreturn), "10000 other, 10100 none");
  for (const std::size_t place : {3, 10, 15, 20}) {  // those of CFA, rbp, rbx, return address
    auto moved = sigreturn;
    moved[place] = static_cast<char>(moved[place] ^ 8);
    EXPECT_EQ(rule("zRS", moved), "10000 other, 10100 none") << place;
  }
  EXPECT_EQ(rule("zRS", {}), "10000 other, 10100 none");
  EXPECT_EQ(rule("zRS", bytes({0x07, 16})), "10000 end, 10100 none");
}

// --- arm64: x29 is the frame pointer, x30 the return address, x31 sp ---

/// The rule after the program, from a start with CFA sp+0.
std::string arm64_rule(const std::string& program) {
  MadeElf elf;
  elf.machine = EM_AARCH64;
  const auto cie = elf.cie(bytes({0x0c, 31, 0}), "zR", bytes({0x1b}), 1, 4, 30);
  elf.fde(cie, kCode, 256, program);
  auto rows = rows_of(elf);
  const std::string first = "10000 ";
  const auto end = rows.find(", ");
  EXPECT_TRUE(rows.starts_with(first) && end != rows.npos) << rows;
  return rows.substr(first.size(), end - first.size());
}

TEST(FrameProgramOfArm64, Rules) {
  expect_each_program(
      arm64_rule,
      {"00: sp+0",      // a leaf: the return address is in x30
       "0e 30: sp+48",  // it has pushed something, but not x30
       "0e 30 9d 06 9e 05: sp+48 bp@cfa-48 ra@cfa-40", "0e 30 9e 06: sp+48 ra@cfa-48",
       "0e 30 9d 06 9e 05 0c 1d 30: bp+48 bp@cfa-48 ra@cfa-40",
       "2d 0e 10 9d 02 9e 01: sp+16 bp@cfa-16 ra@cfa-8",  // signed
       "0e 30 9d 06 9e 05 de dd 0e 00: sp+0",             // restored
       "07 1e: end",
       // Other registers, and expressions with them.
       "0c 13 10: other", "09 1e 13: other", "0f 03 8f 08 06: other",
       "10 1e 02 8f 08: sp+16 ra@cfa-8", "0e 20 9d 04 10 1e 02 8f 28: sp+48 bp@cfa-48 ra@cfa-8",
       "0f 02 8f 10: sp+16"});
}

}  // namespace
}  // namespace coretap::unwind
