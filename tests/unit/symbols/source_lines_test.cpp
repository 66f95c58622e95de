// Functions, files and lines of addresses, against llvm-addr2line and eu-addr2line.
#include "symbols/source_lines.hpp"

#include <algorithm>
#include <random>

#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/go_lines.hpp"
#include "test_files.hpp"

namespace coretap::symbols {
namespace {

using namespace test;

constexpr std::string_view kCxx = R"cxx(
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
namespace {
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
template <int N> struct Box : Shape {
  double w = N; double area() const override { return w * w + N; }
};
template <class T> inline T twice(T x) { return x + x; }
static inline int thrice(int x) { return twice(x) + x; }
__attribute__((noinline)) int deep(int x) {
  auto inner = [&](int y) { struct Local { int z; int get() { return thrice(z); } } l{y}; return l.get() + x; };
  return std::count_if(&x, &x + 1, [&](int v) { return inner(v) > 3; });
}
}
int main(int argc, char** argv) {
  std::map<std::string, std::vector<int>> all;
  for (int i = 0; i < argc; i++) all[argv[i]].push_back(deep(i));
  std::regex pattern("([a-z]+)([0-9]*)");
std::smatch found;
std::string text = argv[0];
if (std::regex_search(text, found, pattern)) std::puts(found[0].str().c_str());
std::function<int(int)> f = [&](int n) { return n + int(all.size()); };
Shape* s = argc > 1 ? static_cast<Shape*>(new Box<3>) : new Box<4>;
std::printf("%d %f\n", f(deep(argc)), s->area());
delete s;
}
)cxx";

struct Answer {
  std::vector<SourceFrame> frames;
  std::string text() const {
    std::string all;
    for (auto& f : frames) all += fmt::format("{} at {}:{}; ", f.function, f.file, f.line);
    return all;
  }
};

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::string normal(const std::string& path) {
  return path == "??" ? "" : fs::path(path).lexically_normal().string();
}

/// Output of addr2line -a -f -i of any kind, by address.
std::map<std::uint64_t, Answer> answers(const std::string& output) {
  std::map<std::uint64_t, Answer> all;
  Answer* current = nullptr;
  std::string function;
  for (auto& line : lines_of(output)) {
    if (line.starts_with("0x")) {
      current = &all[std::stoull(line, nullptr, 16)];
      function.clear();
      continue;
    }
    if (!current) continue;
    if (function.empty()) {
      function = line.substr(0, line.find(" inlined at "));  // eu-addr2line
      continue;
    }
    auto place = line.substr(0, line.find(" (discriminator"));
    SourceFrame frame{.function = function == "??" ? "" : function};
    // PATH:LINE or PATH:LINE:COLUMN
    for (int i = 0; i < 2; i++) {
      const auto colon = place.rfind(':');
      if (colon == place.npos) break;
      const auto number = place.substr(colon + 1);
      if (!is_digits(number) && number != "?") break;
      frame.line = is_digits(number) ? static_cast<std::uint32_t>(std::stoul(number)) : 0;
      place.resize(colon);
    }
    frame.file = normal(place);
    current->frames.push_back(frame);
    function.clear();
  }
  return all;
}

bool same_places(const std::vector<SourceFrame>& ours, const std::vector<SourceFrame>& theirs) {
  return std::ranges::equal(
      ours, theirs, [](auto& a, auto& b) { return normal(a.file) == b.file && a.line == b.line; });
}

/// eu-addr2line has the linker's names as debug information has them. A name that only the symbol
/// table has is no difference.
bool same_as_elfutils(const std::vector<SourceFrame>& ours, const Answer& theirs) {
  if (ours.empty()) return theirs.frames.size() == 1 && theirs.frames[0].file.empty();
  return same_places(ours, theirs.frames) &&
         std::ranges::equal(ours, theirs.frames, [](auto& a, auto& b) {
           return a.function == b.function || a.function.empty();
         });
}
/// llvm-addr2line prefers the symbol table's names, except for inlined functions.
bool same_as_llvm(const std::vector<SourceFrame>& ours, const Answer& theirs) {
  if (ours.empty()) return theirs.frames.size() == 1 && theirs.frames[0].line == 0;
  return same_places(ours, theirs.frames) &&
         std::ranges::equal(ours, theirs.frames, [](auto& a, auto& b) {
           return a.function == b.function || !a.inlined;
         });
}

std::vector<std::uint64_t> addresses_of(int fd, std::size_t count) {
  const auto elf = open_elf(fd);
  std::vector<std::uint64_t> all;
  find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
    if (name != ".text") return false;
    std::minstd_rand random(7);
    std::uniform_int_distribution<std::uint64_t> at(0, header.sh_size - 1);
    for (std::size_t i = 0; i < count; i++) all.push_back(header.sh_addr + at(random));
    return true;
  });
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string hexadecimal_lines(const std::vector<std::uint64_t>& addresses) {
  std::string all;
  for (auto address : addresses) all += fmt::format("{:#x}\n", address);
  return all;
}

struct Counted {
  std::size_t all = 0, known = 0, inlined = 0, different = 0, asked_elfutils = 0, as_elfutils = 0;
  std::string differences = {};
};

/// llvm-addr2line is asked about all addresses, eu-addr2line, which takes 10 ms for each, about
/// some. elfutils 0.188 has wrong calls where scopes overlap, and calls for the code between
/// functions.
Counted compare(const std::string& file) {
  constexpr std::size_t kEach = 100;
  ScratchDirectory scratch;
  const auto fd = open_file(file);
  const auto addresses = addresses_of(fd.get(), 10'000);
  std::vector<std::uint64_t> some;
  for (std::size_t i = 0; i < addresses.size(); i += kEach) some.push_back(addresses[i]);
  const auto ask = [&](const std::string& command, const std::vector<std::uint64_t>& about) {
    const auto list = scratch.write("addresses", hexadecimal_lines(about));
    return answers(output_of(fmt::format("{} -a -f -i -e {} < {}", command, file, list)));
  };
  auto elfutils = ask("eu-addr2line -A", some), llvm = ask("llvm-addr2line", addresses);
  const std::string roots[] = {"/usr/lib/debug"};
  const auto debug = find_debug_file(fd.get(), file, roots);
  Counted n{.all = addresses.size(), .asked_elfutils = some.size()};
  if (!debug.fd) return n;
  const auto places = SourceLines(debug.fd.get()).find(addresses);
  for (std::size_t i = 0; i < addresses.size(); i++) {
    auto& frames = places[i].frames;
    n.known += !frames.empty();
    n.inlined += frames.size() > 1;
    if (i % kEach == 0) n.as_elfutils += same_as_elfutils(frames, elfutils[addresses[i]]);
    if (same_as_llvm(frames, llvm[addresses[i]]) || n.different++ >= 10) continue;
    n.differences += fmt::format("{:#x}\n  here {}\n  llvm-addr2line {}\n", addresses[i],
                                 Answer{frames}.text(), llvm[addresses[i]].text());
  }
  return n;
}

bool has_truth() { return has_command("eu-addr2line") && has_command("llvm-addr2line"); }

class CompiledLines : public testing::TestWithParam<std::string> {};

TEST_P(CompiledLines, AsAddr2lineHasThem) {
  if (!has_truth()) GTEST_SKIP() << "needs eu-addr2line and llvm-addr2line";
  ScratchDirectory scratch;
  scratch.write("program.cpp", kCxx);
  if (!succeeds(fmt::format("cd {} && {} program.cpp -w -o program", scratch.path(), GetParam())))
    GTEST_SKIP() << "no compiler with " << GetParam();
  const auto n = compare(scratch.in("program"));
  EXPECT_GT(n.all, 5'000u);
  EXPECT_GT(n.known, n.all * 9 / 10);
  // elfutils 0.188 knows no units without .debug_aranges, which clang does not make, and no
  // functions that were inlined from other units.
  const bool comparable = GetParam().starts_with("g++") && !GetParam().ends_with("-flto");
  EXPECT_GE(n.as_elfutils, comparable ? n.asked_elfutils * 9 / 10 : 0);
  EXPECT_GE(n.inlined, GetParam().find("-O0") == std::string::npos ? n.all / 5 : 0);
  EXPECT_LE(n.different, n.all / 1000) << n.differences;
}

// Also tried: DWARF 2, 64-bit DWARF, link-time optimisation.
INSTANTIATE_TEST_SUITE_P(Of, CompiledLines,
                         testing::Values("g++ -O2 -gdwarf-4",
                                         "g++ -O2 -gdwarf-5 -gz -ffunction-sections",
                                         "clang++ -O2 -gdwarf-5"));

TEST(SourceLines, OfTheCLibrary) {
  const auto libc = path_of_libc();
  if (libc.empty() || !has_truth()) GTEST_SKIP() << "needs a C library and addr2line";
  const auto n = compare(libc);
  if (n.known == 0) GTEST_SKIP() << "no debug file of " << libc;
  EXPECT_GT(n.known, n.all * 9 / 10);
  EXPECT_GE(n.as_elfutils, n.asked_elfutils * 9 / 10);
  EXPECT_LE(n.different, n.all / 1000) << n.differences;
}

class DebugFiles : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("small.c",
                   "__attribute__((noinline)) int f(int x) { return x * 3; }\n"
                   "int main(int n, char**) { return f(n); }\n");
    if (!build("-O1 -g")) GTEST_SKIP() << "needs g++ and objcopy";
  }
  bool build(const std::string& flags) {
    return succeeds(
        fmt::format("cd {} && g++ -x c++ -w -Wl,--build-id {} small.c -o small && "
                    "objcopy --only-keep-debug small small.dbg && "
                    "strip -o stripped small",
                    scratch_.path(), flags));
  }
  std::vector<SourcePlace> lines_of_main(const std::string& file, const std::string& root,
                                         std::string* where = nullptr) {
    const auto full = open_file(scratch_.in("small"));
    const auto place = ElfSymbols::read(full.get());
    std::vector<std::uint64_t> addresses;
    for (auto& f : place->functions())
      if (std::string_view(place->name(f)) == "main") addresses.push_back(f.start);
    const auto fd = open_file(scratch_.in(file));
    const std::string roots[] = {root};
    auto debug = find_debug_file(fd.get(), scratch_.in(file), roots);
    if (where) *where = debug.path;
    return debug.fd ? SourceLines(debug.fd.get()).find(addresses) : std::vector<SourcePlace>();
  }
  std::string by_build_id() {
    return build_id_path(scratch_.in("root"), build_id(open_file(scratch_.in("small")).get()));
  }
  ScratchDirectory scratch_;
};

TEST_F(DebugFiles, AreFoundByBuildIdOrLink) {
  std::string where;
  EXPECT_TRUE(lines_of_main("stripped", scratch_.in("root")).empty());
  const auto path = by_build_id();
  fs::create_directories(fs::path(path).parent_path());
  fs::copy_file(scratch_.in("small.dbg"), path);
  auto places = lines_of_main("stripped", scratch_.in("root"), &where);
  ASSERT_EQ(places.size(), 1u);
  ASSERT_EQ(places[0].frames.size(), 1u) << places[0].why;
  EXPECT_EQ(places[0].frames[0].function, "main");
  EXPECT_EQ(places[0].frames[0].line, 2u);
  EXPECT_EQ(where, path);

  ASSERT_TRUE(succeeds(
      fmt::format("cd {} && objcopy --add-gnu-debuglink=small.dbg stripped", scratch_.path())));
  EXPECT_EQ(lines_of_main("stripped", "/nonexistent", &where).size(), 1u);
  EXPECT_EQ(where, scratch_.in("small.dbg"));
}

TEST_F(DebugFiles, OfAnotherBuildAreNotUsed) {
  const auto path = by_build_id();
  fs::create_directories(fs::path(path).parent_path());
  fs::copy_file(scratch_.in("stripped"), scratch_.in("kept"));
  ASSERT_TRUE(build("-O0 -g"));
  fs::copy_file(scratch_.in("small.dbg"), path);
  EXPECT_TRUE(lines_of_main("kept", scratch_.in("root")).empty());
}

TEST_F(DebugFiles, WithoutFunctionsSayWhy) {
  ASSERT_TRUE(build("-O1 -g -gsplit-dwarf"));
  auto places = lines_of_main("small", "/nonexistent");
  ASSERT_EQ(places.size(), 1u);
  ASSERT_EQ(places[0].frames.size(), 1u);
  EXPECT_EQ(places[0].frames[0].line, 2u);
  EXPECT_TRUE(says(places[0].why, ".dwo")) << places[0].why;

  if (!has_command("dwz")) return;
  ASSERT_TRUE(build("-O1 -g"));
  ASSERT_TRUE(succeeds(
      fmt::format("cd {0} && cp small a && cp small b && dwz -m {0}/common a b", scratch_.path())));
  places = lines_of_main("a", "/nonexistent");
  ASSERT_EQ(places.size(), 1u);
  ASSERT_EQ(places[0].frames.size(), 1u);
  EXPECT_EQ(places[0].frames[0].line, 2u);
}

TEST(SourceLines, EndInTime) {
  const auto self = open_file("/proc/self/exe");
  const std::uint64_t addresses[] = {0x1000};
  SourceLines lines(self.get());
  const auto places = lines.find(addresses, std::chrono::milliseconds(0));
  ASSERT_EQ(places.size(), 1u);
  EXPECT_FALSE(places[0].why.empty());
}

TEST(GoLines, AsGoHasThem) {
  if (!has_command("go")) GTEST_SKIP() << "needs go";
  ScratchDirectory scratch;
  scratch.write("main.go", R"(package main
import ("fmt"; "os"; "sort"; "strings")
type shape interface { area() float64 }
type box struct { w float64 }
func (b box) area() float64 { return twice(b.w) * b.w }
func twice(x float64) float64 { return x + x }
func main() {
	words := strings.Fields(strings.Join(os.Args, " "))
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	var s shape = box{float64(len(words))}
	fmt.Println(words, s.area())
}
)");
  const auto build = [&](const std::string& flags, const std::string& to) {
    return succeeds(fmt::format("cd {0} && HOME={0} GOFLAGS=-mod=mod go build {1} -o {2} main.go",
                                scratch.path(), flags, to));
  };
  if (!build("", "full") || !build("-ldflags '-s -w'", "stripped"))
    GTEST_SKIP() << "go builds no program";
  const auto full = open_file(scratch.in("full")), stripped = open_file(scratch.in("stripped"));
  ASSERT_EQ(SourceLines(stripped.get()).why_not(), "the file has no debug information");
  const auto addresses = addresses_of(stripped.get(), 10'000);
  ASSERT_GT(addresses.size(), 9'000u);
  const auto places = go_lines(stripped.get(), addresses);
  ASSERT_EQ(places.size(), addresses.size());
  // It prints a function and FILE:LINE, without inlined functions.
  const auto list = scratch.write("addresses", hexadecimal_lines(addresses));
  const auto truth =
      lines_of(output_of(fmt::format("go tool addr2line {} < {}", scratch.in("full"), list)));
  ASSERT_EQ(truth.size(), addresses.size() * 2);
  const auto inlined = answers(
      output_of(fmt::format("llvm-addr2line -a -f -i -e {} < {}", scratch.in("full"), list)));
  std::size_t different = 0, with_inlined = 0, other_depth = 0;
  std::string differences;
  for (std::size_t i = 0; i < addresses.size(); i++) {
    auto& frames = places[i].frames;
    const auto ours = frames.empty() ? "?\n?:0"
                                     : fmt::format("{}\n{}:{}", frames.back().function,
                                                   frames.front().file, frames.front().line);
    // Some generated code has no line.
    auto theirs = truth[2 * i] + "\n" + truth[2 * i + 1];
    if (theirs.ends_with(":-1")) theirs.replace(theirs.size() - 2, 2, "0");
    if (ours != theirs && ++different <= 5)
      differences += fmt::format("{:#x}: {} here, {} there\n", addresses[i], ours, theirs);
    with_inlined += frames.size() > 1;
    if (auto at = inlined.find(addresses[i]); at != inlined.end() && frames.size() > 1)
      other_depth += at->second.frames.size() != frames.size();
  }
  EXPECT_LE(different, addresses.size() / 1000) << differences;
  EXPECT_GT(with_inlined, addresses.size() / 50);
  EXPECT_LE(other_depth, with_inlined / 50);
}

}  // namespace
}  // namespace coretap::symbols
