#include "runtimes/v8.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "made_memory.hpp"
#include "runtimes/code_names.hpp"
#include "runtimes/runtimes.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {
namespace {

/// The machine's node or its library; empty: none.
std::string v8_file() {
  std::error_code error;
  std::vector<std::string> paths = {std::filesystem::canonical("/usr/bin/node", error).string()};
  for (std::filesystem::directory_iterator at("/usr/lib/x86_64-linux-gnu", error), end; at != end;
       at.increment(error))
    if (at->path().filename().string().starts_with("libnode.so.")) paths.push_back(at->path());
  for (auto& path : paths) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    constexpr std::array kName = {kV8Mark};
    if (fd && symbols::find_exported(fd.get(), kName)[0].address) return path;
  }
  return {};
}

TEST(V8, AProgramWithoutItHasNone) {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(v8_in(fd.get()));
  EXPECT_FALSE(runtime_in(fd.get(), 0));
  Fd text(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(v8_in(text.get()));
}

TEST(V8, TheMachinesOwnIsKnown) {
  const auto path = v8_file();
  if (path.empty()) GTEST_SKIP() << "no node here";
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto file = runtime_in(fd.get(), 0x1000);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind, RUNTIME_V8);
  EXPECT_TRUE(file->v8.known);
  EXPECT_EQ(file->v8.fp_function, 16);
}

/// A copy of the machine's node that says it is of another version, or has other constants.
TEST(V8, AVersionThatIsNotKnownIsMarked) {
  const auto path = v8_file();
  if (path.empty()) GTEST_SKIP() << "no node here";
  const ScratchDirectory scratch;
  const auto copy = scratch.in("node");
  std::filesystem::copy_file(path, copy);
  Fd changed(::open(copy.c_str(), O_RDWR | O_CLOEXEC));
  constexpr std::array<std::string_view, 3> kNames = {
      "_ZN2v88internal7Version6major_E", "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
      "v8dbg_SmiShiftSize"};
  const auto found = symbols::find_exported(changed.get(), kNames);
  for (std::size_t i = 0; i < kNames.size(); i++) {
    ASSERT_TRUE(found[i].offset) << kNames[i];
    const auto at = static_cast<off_t>(*found[i].offset);
    std::int32_t before = 0;
    ASSERT_EQ(::pread(changed.get(), &before, sizeof before, at), 4);
    for (std::int32_t value : {0, -1, 99, INT32_MAX}) {
      if (i == 1 && (value == 0 || value == 99)) continue;  // might be
      ASSERT_EQ(::pwrite(changed.get(), &value, sizeof value, at), 4);
      const auto file = v8_in(changed.get());
      ASSERT_TRUE(file);
      EXPECT_FALSE(file->v8.known) << kNames[i] << " " << value;
    }
    ASSERT_EQ(::pwrite(changed.get(), &before, sizeof before, at), 4);
  }
  EXPECT_TRUE(v8_in(changed.get())->v8.known);
}

TEST(V8, TheRuntimeOfAFrame) {
  auto word = [](std::uint64_t number, std::uint64_t place) {
    return STACK_RUNTIME | number << RUNTIME_PLACE_BITS | place;
  };
  EXPECT_EQ(kind_of(word(0x7f2, 5)), RUNTIME_V8);
  EXPECT_EQ(kind_of(word(0x7f1, 5) | STACK_EXACT), RUNTIME_PYTHON);
  EXPECT_EQ(kind_of(word(0x7f7, 5)), RUNTIME_NONE);
  EXPECT_EQ(kind_of(word(0, RUNTIME_V8 << RUNTIME_MARK_BITS | RUNTIME_MARK_FRAME)), RUNTIME_V8);
  EXPECT_EQ(kind_of(word(0, RUNTIME_PLACE_MASK)), RUNTIME_NONE);
}

/// Memory of a process in which a script is at 0x1000, and its source at 0x2000.
struct Memory {
  std::string source;
  std::uint64_t object = 0x2001, id = 7;
  int reads = 0, moves_at = -1;  // the script is no longer there from this read on

  bool read(pid_t pid, std::uint64_t address, std::span<char> to) {
    if (pid != 42) return false;
    if (reads++ == moves_at) object = 0x3001;
    auto copy = [&](const void* from, std::size_t size) {
      if (size < to.size()) return false;
      std::memcpy(to.data(), from, to.size());
      return true;
    };
    if (address == 0x1008) return copy(&object, sizeof object);
    if (address == 0x1040) return copy(&id, sizeof id);
    if (address < 0x2010 || address - 0x2010 > source.size()) return false;
    return copy(source.data() + (address - 0x2010), source.size() - (address - 0x2010));
  }
  runtime_source at(std::uint32_t start, std::uint32_t width = 1) const {
    runtime_source s{};
    s.script = 0x1000;
    s.object = 0x2001;
    s.id = 7;
    s.chars = 0x2010;
    s.length = static_cast<std::uint32_t>(source.size() / width);
    s.start = start;
    s.width = width;
    s.object_at = 8;
    s.id_at = 0x40;
    return s;
  }
  SourceLines lines() {
    return SourceLines([this](pid_t pid, std::uint64_t address, std::span<char> to) {
      return read(pid, address, to);
    });
  }
};

TEST(SourceLines, OfWhatWasSent) {
  Memory memory{.source = "a\nb\r\nc\rd"};
  SourceLines lines(nullptr);
  auto line = [&](std::uint32_t start) {
    return lines.line_of(0, memory.at(start), memory.source.substr(0, start));
  };
  EXPECT_EQ(line(0), 1u);
  EXPECT_EQ(line(1), 1u);
  EXPECT_EQ(line(2), 2u);
  EXPECT_EQ(line(5), 3u);
  EXPECT_EQ(line(7), 3u);  // the \r may belong to a \n
  EXPECT_EQ(line(8), 4u);
  auto further = memory.at(2);
  further.first_line = 10;
  EXPECT_EQ(lines.line_of(0, further, "a\n"), 12u);
  EXPECT_EQ(lines.line_of(0, memory.at(2), "a"), 0u) << "not all of it";
}

TEST(SourceLines, OfTheProcess) {
  Memory memory;
  for (int i = 0; i < 30'000; i++) memory.source += "line\n";
  auto lines = memory.lines();
  EXPECT_EQ(lines.line_of(42, memory.at(5 * 20'000 + 2), {}), 20'001u);
  const int reads = memory.reads;
  EXPECT_EQ(lines.line_of(42, memory.at(4), {}), 1u);
  EXPECT_EQ(lines.line_of(42, memory.at(5), {}), 2u);
  EXPECT_EQ(memory.reads, reads) << "read once";
  EXPECT_EQ(lines.line_of(43, memory.at(5), {}), 0u);
  EXPECT_EQ(lines.line_of(0, memory.at(5), {}), 0u);
}

TEST(SourceLines, WideCharactersAndOtherEndsOfLines) {
  const std::u16string wide = u"x\u2028y\u2029\u0a0a\u0d00z\n日";
  Memory memory{.source = std::string(reinterpret_cast<const char*>(wide.data()), wide.size() * 2)};
  auto lines = memory.lines();
  EXPECT_EQ(lines.line_of(42, memory.at(1, 2), {}), 1u);
  EXPECT_EQ(lines.line_of(42, memory.at(2, 2), {}), 2u);
  EXPECT_EQ(lines.line_of(42, memory.at(6, 2), {}), 3u);
  EXPECT_EQ(lines.line_of(42, memory.at(8, 2), {}), 4u);
}

TEST(SourceLines, SourcesThatAreMoved) {
  Memory memory{.source = "a\nb\nc\n"};
  for (int at : {0, 1, 2, 3, 4}) {
    memory.object = 0x2001;
    memory.reads = 0;
    memory.moves_at = at;
    auto lines = memory.lines();
    EXPECT_EQ(lines.line_of(42, memory.at(4), {}), at < 4 ? 0u : 3u) << at;
  }
}

TEST(SourceLines, RecordsMayLie) {
  Memory memory{.source = "a\nb"};
  auto lines = memory.lines();
  for (std::uint32_t width : {0U, 3U, 4U, UINT32_MAX})
    EXPECT_EQ(lines.line_of(42, memory.at(2, width ? width : 1), {}) != 0, width == 0);
  auto source = memory.at(2);
  source.length = UINT32_MAX;
  EXPECT_EQ(memory.lines().line_of(42, source, {}), 0u);
  source = memory.at(UINT32_MAX);
  EXPECT_EQ(lines.line_of(42, source, {}), 0u);
  source = memory.at(0);
  source.first_line = UINT32_MAX;
  EXPECT_EQ(lines.line_of(42, source, {}), 0u);
}

TEST(CodeNames, FunctionsOfJavaScript) {
  CodeNames names;
  runtime_code code{};
  code.mark = RUNTIME_CODE;
  code.number = 8 + RUNTIME_V8;
  put_text(code.file, code.file_text, "/app.js");
  code.source.length = 20;
  code.source.start = 4;
  code.source.width = 1;
  code.line_bytes = 4;
  std::memcpy(code.lines, "a\nb\n", 4);
  const auto word = STACK_RUNTIME | code.number << RUNTIME_PLACE_BITS;
  EXPECT_TRUE(names.take(&code, offsetof(runtime_code, lines) + 4));
  auto frame = names.find(word);
  EXPECT_EQ(frame.function, "<anonymous>");
  EXPECT_EQ(frame.file, "/app.js");
  EXPECT_EQ(frame.line, 3u);
  EXPECT_TRUE(frame.shown);
  // Sent again without its source: the line stays.
  code.line_bytes = 0;
  EXPECT_TRUE(names.take(&code, offsetof(runtime_code, lines)));
  EXPECT_EQ(names.find(word).line, 3u);
}

}  // namespace
}  // namespace coretap::runtimes
