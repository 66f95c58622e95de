// Rules of Go's functions: made tables, and those of programs that Go builds here.
#include "unwind/go_frames.hpp"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "symbols/test_files.hpp"
#include "unwind/made_go.hpp"
#include "unwind/rules.hpp"
#include "unwind/table.hpp"

namespace coretap::unwind {
namespace {

using namespace test;
using symbols::GoHeader;

constexpr GoHeader::Version kVersions[] = {GoHeader::go116, GoHeader::go118, GoHeader::go120};

/// The rules from a function's address on: "+0 sp+8, +4 sp+40 bp@cfa-16"
std::string rules_of(const std::string& file, std::uint64_t begin, std::uint64_t end) {
  const Image image(file);
  const auto elf = read_elf_code(image);
  Rules rules;
  const auto table = make_table(image, elf, rules);
  std::string out, last;
  for (auto at = begin; at < end; at++) {
    const auto rule = text(rules.all()[table.find(at)]);
    if (rule == last) continue;
    last = rule;
    out += fmt::format("{}{:+} {}", out.empty() ? "" : ", ", static_cast<std::int64_t>(at - begin),
                       rule);
  }
  return out;
}
std::string rules_of(const MadeGo& go) {
  return rules_of(go.file(), go.address(), go.address() + go.functions.back().code.size());
}

TEST(GoFrames, CompiledFunctions) {
  for (auto version : kVersions) {
    SCOPED_TRACE(version);
    MadeGo go{.version = version};
    // Its frame is removed in the middle, too; rows begin one byte early, not after a return.
    go.with({.name = "main.last",
             .code = bytes({0x48, 0x81, 0xec, 0,    1,    0,    0,    0x90, 0x48, 0x81, 0xc4,
                            0,    1,    0,    0,    0xc3, 0x90, 0x90, 0x48, 0x81, 0xc4, 0,
                            1,    0,    0,    0xc3, 0xe8, 0,    0,    0,    0}),
             .steps = {{7, 0}, {15, 256}, {16, 0}, {25, 256}, {31, 0}}});
    EXPECT_EQ(rules_of(go),
              "+0 sp+8, +6 sp+264 bp@cfa-16, +14 sp+8, +16 sp+264 bp@cfa-16, +24 sp+8");
    const auto first = rules_of(go.file(), go.address(1), go.address(1) + 16);
    EXPECT_EQ(first,
              version == GoHeader::go120
                  ? "+0 sp+8, +1 sp+16 bp@cfa-16, +7 sp+56 bp@cfa-16, +13 sp+16 bp@cfa-16, +15 sp+8"
                  : "+0 sp+8, +3 sp+48 bp@cfa-16, +9 sp+8");
  }
}

TEST(GoFrames, TextThatTheFileDoesNotTell) {
  for (const std::size_t before : {0, 0x40, 0x12340}) {
    MadeGo go{.before = std::string(before, '\x90'), .knows_text = false};
    go.with({.name = "main.last", .code = bytes({0x90, 0xc3}), .steps = {{2, 0}}});
    EXPECT_EQ(rules_of(go.file(), go.address(1), go.address(1) + 2), "+0 sp+8, +1 sp+16 bp@cfa-16")
        << before;
    EXPECT_EQ(rules_of(go), "+0 sp+8");
    if (before > 0) {
      EXPECT_EQ(rules_of(go.file(), kGoText + 8, kGoText + 0x20), "+0 none");
    }
  }
}

TEST(GoFrames, StacksBeginAndEnd) {
  for (auto version : kVersions) {
    SCOPED_TRACE(version);
    const std::string code = bytes({0x90, 0x90, 0xc3});
    const int assembler = version == GoHeader::go116 ? 0 : symbols::kGoAssembler;
    MadeGo go{.version = version};
    go.with({.name = "runtime.goexit",
             .code = code,
             .steps = {{3, 0}},
             .flags = assembler,
             .file = "a.s"});
    EXPECT_EQ(rules_of(go), "+0 end");
    for (auto* name : {"runtime.mstart", "runtime.rt0_go", "_rt0_amd64_linux"}) {
      go.functions.back().name = name;
      EXPECT_EQ(rules_of(go), "+0 end") << name;
    }
    go.functions.back().name = "new.top";
    EXPECT_EQ(rules_of(go), "+0 sp+8");
    go.functions.back().flags |= symbols::kGoTopFrame;
    EXPECT_EQ(rules_of(go), "+0 end");
    // Marked, too; it is called by the kernel, and the walk goes on.
    go.functions.back().name = "runtime.sigtramp";
    EXPECT_EQ(rules_of(go), "+0 sp+8");
    go.functions.back().name = "runtime.sigreturn";
    EXPECT_EQ(rules_of(go.file(), go.address() - 1, go.address() + 3), "+0 signal");
    // Without a byte between it and the function before, that byte may be an instruction.
    go.functions[9].code.resize(31, '\x90');
    go.functions[9].code += '\xc3';
    go.functions[9].steps.back().first = 32;
    EXPECT_EQ(rules_of(go.file(), go.address() - 1, go.address() + 3), "+0 other, +1 signal");
  }
}

TEST(GoFrames, AssemblerFunctions) {
  for (auto version : kVersions) {
    SCOPED_TRACE(version);
    const int assembler = version == GoHeader::go116 ? 0 : symbols::kGoAssembler;
    const int switches =
        version == GoHeader::go116 ? 0 : symbols::kGoAssembler | symbols::kGoWritesStack;
    const auto rules = [&](const std::string& code, decltype(MadeGo::Function::steps) steps,
                           int flags, const char* name = "runtime.any") {
      MadeGo go{.version = version};
      go.with(
          {.name = name, .code = code, .steps = std::move(steps), .flags = flags, .file = "x.s"});
      return rules_of(go);
    };
    // push %rbp; push %rbx; pop %rbx; pop %rbp; ret
    EXPECT_EQ(rules(bytes({0x55, 0x53, 0x5b, 0x5d, 0xc3}),
                    {{1, 0}, {2, 8}, {3, 16}, {4, 8}, {5, 0}}, assembler),
              "+0 sp+8, +1 sp+16 bp@cfa-16, +2 sp+24 bp@cfa-16 bx@cfa-24, "
              "+3 sp+16 bp@cfa-16, +4 sp+8");
    // pushf; sub $0x18,%rsp; mov %rbp,8(%rsp); mov 8(%rsp),%rbp; add $0x18,%rsp; popf; ret
    EXPECT_EQ(rules(bytes({0x9c, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 8,   0x48,
                           0x8b, 0x6c, 0x24, 8,    0x48, 0x83, 0xc4, 0x18, 0x9d, 0xc3}),
                    {{1, 0}, {5, 8}, {19, 32}, {20, 8}, {21, 0}}, assembler),
              "+0 sp+8, +1 sp+16, +5 sp+40, +10 sp+40 bp@cfa-32, +15 sp+40, +19 sp+16, +20 sp+8");
    // mov %rax,%rsp; call; mov %rcx,%rsp; ret
    const auto bare = bytes({0x90, 0x48, 0x89, 0xc4, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xcc, 0xc3});
    EXPECT_EQ(rules(bare, {{13, 0}}, switches), "+0 sp+8, +4 other, +12 sp+8");
    EXPECT_EQ(rules(bare, {{13, 0}}, switches, "runtime.mcall"), "+0 sp+8, +4 end, +12 sp+8");
    // sub $16,%rsp; mov %rbp,8(%rsp); lea 8(%rsp),%rbp; mov %rax,%rsp; and $-16,%rsp; call;
    // mov %r12,%rsp; mov 8(%rsp),%rbp; add $16,%rsp; ret; and again from the call on
    const std::string body = bytes({0xe8, 0, 0, 0, 0, 0x4c, 0x89, 0xe4, 0x48, 0x8b, 0x6c, 0x24, 8,
                                    0x48, 0x83, 0xc4, 16, 0xc3});
    const auto framed = bytes({0x48, 0x83, 0xec, 16,   0x48, 0x89, 0x6c, 0x24, 8,    0x48, 0x8d,
                               0x6c, 0x24, 8,    0x48, 0x89, 0xc4, 0x48, 0x83, 0xe4, 0xf0});
    EXPECT_EQ(rules(framed + body + body, {{4, 0}, {38, 16}, {39, 0}, {56, 16}, {57, 0}}, switches),
              "+0 sp+8, +4 sp+24, +9 sp+24 bp@cfa-16, +17 bp+16 bp@cfa-16, +34 other, +38 sp+8, "
              "+39 bp+16 bp@cfa-16, +52 other, +56 sp+8");
    // Another value in rbp.
    const auto clobbers = framed + bytes({0x48, 0x8b, 0x28}) + body;
    EXPECT_EQ(rules(clobbers, {{4, 0}, {41, 16}, {42, 0}}, switches),
              "+0 sp+8, +4 sp+24, +9 sp+24 bp@cfa-16, +17 bp+16 bp@cfa-16, +24 other, +41 sp+8");
  }
}

TEST(GoFrames, FunctionsOfC) {
  MadeGo go;
  go.with({.name = "c", .code = bytes({0x90, 0xc3}), .has_steps = false});
  EXPECT_EQ(rules_of(go), "+0 none");
  // Sections that are damaged, or of another version, have no rows.
  auto file = go.file();
  const auto at = file.find(raw(std::uint32_t{0xfffffff1}));
  for (const auto& [offset, value] : {std::pair{0, 0xf2}, {6, 0}, {7, 4}, {15, 1}, {39, 1}}) {
    auto damaged = file;
    damaged[at + static_cast<std::size_t>(offset)] = static_cast<char>(value);
    EXPECT_EQ(rules_of(damaged, go.address(1), go.address(1) + 1), "+0 none") << offset;
  }
}

// ---- programs that Go builds here ----

struct GoProgram {
  ScratchDirectory scratch;
  bool build(const std::string& flags, const std::string& to) {
    scratch.write("main.go", R"(package main
import ("fmt"; "os"; "sort"; "strings"; "time")
func main() {
	words := strings.Fields(strings.Join(os.Args, " "))
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	fmt.Println(words, time.Now())
}
)");
    return succeeds(fmt::format("cd {0} && HOME={0} GO111MODULE=off go build {1} -o {2} main.go",
                                scratch.path(), flags, to));
  }
};

Table table_of(const std::string& path, Rules& rules) {
  const auto file = symbols::test::open_file(path);
  const Image image(file.get());
  return make_table(image, read_elf_code(image), rules);
}

// Go's linker writes .debug_frame, which readelf interprets.
TEST(GoFrames, AsDebugInformationHasThem) {
  if (!has_command("go") || !has_command("readelf")) GTEST_SKIP() << "needs go and readelf";
  GoProgram program;
  if (!program.build("-ldflags=-compressdwarf=false", "full") ||
      !program.build("-ldflags='-s -w'", "stripped"))
    GTEST_SKIP() << "go builds no program";
  Rules rules;
  const auto table = table_of(program.scratch.in("full"), rules);
  const auto stripped = table_of(program.scratch.in("stripped"), rules);
  ASSERT_GT(table.rows.size(), 5000u);
  EXPECT_EQ(table.rows, stripped.rows);
  std::istringstream text(
      output_of("readelf --debug-dump=frames-interp " + program.scratch.in("full")));
  std::uint64_t equal = 0, other = 0, ends = 0, marked = 0;
  std::string differences;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string address, cfa;
    if (!(words >> address >> cfa) || address.size() != 16 || !cfa.starts_with("rsp+")) continue;
    const auto at = std::stoull(address, nullptr, 16);
    if (at == 0) continue;  // of the CIE
    const auto rule = rules.all()[table.find(at)];
    const auto ours = test::text(rule);
    if (rule.cfa == UNWIND_SP && rule.offset == std::stoi(cfa.substr(4))) {
      equal++;
    } else if (rule.cfa == UNWIND_END || rule.cfa == UNWIND_SIGNAL) {
      ends++;
    } else if (rule.cfa == UNWIND_OTHER || rule.cfa == UNWIND_BP) {
      marked++;
    } else if (++other < 5) {
      differences += line + ": " + ours + "\n";
    }
  }
  EXPECT_GT(equal, 5000u);
  EXPECT_EQ(other, 0u) << differences;
  EXPECT_LE(ends, 20u);
  EXPECT_LE(marked, 60u);
}

TEST(GoFrames, PositionIndependentAndWithC) {
  if (!has_command("go") || !has_command("nm")) GTEST_SKIP() << "needs go and nm";
  GoProgram program;
  int built = 0;
  for (std::string flags : {"-buildmode=pie", "-ldflags=-linkmode=external",
                            "-buildmode=pie -ldflags=-linkmode=external"}) {
    SCOPED_TRACE(flags);
    if (!program.build(flags, "program")) continue;
    built++;
    Rules rules;
    const auto table = table_of(program.scratch.in("program"), rules);
    std::istringstream symbols(output_of("nm " + program.scratch.in("program")));
    std::uint64_t functions = 0;
    for (std::string line; std::getline(symbols, line);) {
      std::istringstream words(line);
      std::string address, kind, name;
      if (!(words >> address >> kind >> name)) continue;
      const auto rule = [&](std::uint64_t by) {
        return test::text(rules.all()[table.find(std::stoull(address, nullptr, 16) + by)]);
      };
      const bool compiled = name == "main.main", ends = name.starts_with("runtime.goexit.");
      functions += compiled || ends;
      EXPECT_TRUE(!compiled || rule(0) == "sp+8") << rule(0);
      EXPECT_TRUE(!ends || rule(1) == "end") << rule(1);
    }
    EXPECT_EQ(functions, 2u);
  }
  if (built == 0) GTEST_SKIP() << "go builds no program";
}

}  // namespace
}  // namespace coretap::unwind
