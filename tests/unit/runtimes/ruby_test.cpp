#include "runtimes/ruby.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "made_memory.hpp"
#include "runtimes/code_names.hpp"
#include "runtimes/runtimes.hpp"

namespace coretap::runtimes {
namespace {

using namespace std::string_literals;

constexpr std::uint64_t kAddress = 0x210790;

// As gcc compiles rb_current_receiver(): in 3.1's library, in 3.3's, in a program.
const std::string kBegin = "\xf3\x0f\x1e\xfa\x48\x83\xec\x08"s,
                  kAsk = "\x48\x85\xc0\x74\x12\x48\x8b\x40\x10\x48\x85\xc0"s,
                  kGeneral =
                      "\x66\x48\x8d\x3d\x00\x10\x00\x00\x66\x66\x48\xe8\x4c\x50\xe2\xff"
                      "\x48\x8b\x00"s,
                  kLocal =
                      "\x48\x8d\x3d\x00\x20\x00\x00\xe8\xec\xf2\xdc\xff"
                      "\x48\x8b\x80\x10\x00\x00\x00"s,
                  kProgram = "\x64\x48\x8b\x04\x25\xf8\xff\xff\xff"s,
                  kRelaxed = "\x48\xc7\xc0\xe8\xff\xff\xff\x64\x48\x8b\x00"s;

TEST(Ruby, ItsVariableIsInItsCode) {
  const auto general = ruby_variable_in(kBegin + kGeneral + kAsk, kAddress);
  ASSERT_TRUE(general);
  EXPECT_EQ(general->index, kAddress + kBegin.size() + 8 + 0x1000);
  EXPECT_EQ(general->offset, 0);
  const auto local = ruby_variable_in(kBegin + kLocal + kAsk, kAddress);
  ASSERT_TRUE(local);
  EXPECT_EQ(local->index, kAddress + kBegin.size() + 7 + 0x2000);
  EXPECT_EQ(local->offset, 16);
  for (const auto& [code, offset] : {std::pair{kProgram, -8}, {kRelaxed, -24}}) {
    const auto own = ruby_variable_in(code + kAsk, kAddress);
    ASSERT_TRUE(own);
    EXPECT_FALSE(own->index);
    EXPECT_EQ(own->offset, offset);
  }
}

TEST(Ruby, OtherCodeHasNoVariable) {
  for (const auto& code :
       {""s, kAsk, kGeneral, kBegin + kLocal, kProgram + "\x48\x8b\x40\x18"s,
        kLocal.substr(0, 12) + kAsk, std::string(256, '\x48'), std::string(256, '\x64')})
    EXPECT_FALSE(ruby_variable_in(code, kAddress)) << code.size();
}

TEST(Ruby, NamesAreInItsCode) {
  // cmp [last], edi; jb; mov rdi, [names].
  const auto compare = "\x55\x39\x3d\x00\x01\x00\x00\x72\x5f"s;
  const auto at = [&](std::int32_t distance) {
    std::string move = "\x48\x8b\x3d"s;
    return move.append(reinterpret_cast<const char*>(&distance), sizeof distance);
  };
  // 16 bytes behind the number: 9 more bytes of code are between the two.
  const auto names = kAddress + 7 + 0x100 + 16;
  EXPECT_EQ(ruby_names_in(compare + at(0x100 + 16 - 9), kAddress), names);
  EXPECT_EQ(ruby_names_in(compare + at(0x100 + 8 - 9), kAddress), 0u);
  EXPECT_EQ(ruby_names_in(at(0x100 + 16 - 9), kAddress), 0u);
  EXPECT_EQ(ruby_names_in(compare, kAddress), 0u);
  EXPECT_EQ(ruby_names_in(std::string(200, '\x39'), kAddress), 0u);
}

TEST(Ruby, ProgramsWithoutIt) {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ruby_in(fd.get(), 0));
}

/// A line begins at each of these places: { place, line }.
using Lines = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The process's table of places (succ_index_table_create(), iseq.c in Ruby's sources): for each
/// place, how many lines have begun.
std::string table_of(const Lines& lines, std::uint32_t places) {
  const auto begun = [&](std::uint32_t place) {
    std::uint64_t count = 0;
    for (auto& [begin, line] : lines) count += begin <= place;
    return count;
  };
  std::array<std::uint64_t, RUBY_FIRST_BYTES / 8> first{};
  for (std::uint32_t at = 0; at < RUBY_FIRST_PLACES && at < places; at++)
    first[at / 9] |= begun(at) << at % 9 * 7;
  std::string table(reinterpret_cast<const char*>(first.data()), sizeof first);
  for (std::uint32_t at = RUBY_FIRST_PLACES; at < places; at += RUBY_BLOCK_PLACES) {
    std::array<std::uint64_t, RUBY_BLOCK_BYTES / 8> block{};
    block[0] = begun(at - 1);
    for (unsigned word = 0; word < 8; word++) {
      if (word) block[1] |= (begun(at + word * 64 - 1) - block[0]) << (word - 1) * 9;
      for (unsigned bit = 0; bit < 64; bit++)
        for (auto& [begin, line] : lines)
          if (begin == at + word * 64 + bit) block[2 + word] |= 1ULL << bit;
    }
    table.append(reinterpret_cast<const char*>(block.data()), sizeof block);
  }
  return table;
}

std::string entries_of(const Lines& lines) {
  std::string entries;
  for (auto& [begin, line] : lines) {
    const std::array<std::uint32_t, RUBY_ENTRY / 4> entry{line, begin, 0x10};
    entries.append(reinterpret_cast<const char*>(entry.data()), sizeof entry);
  }
  return entries;
}

struct LinesMade {
  Lines lines;
  std::uint32_t places;
  ruby_lines head;
  std::string table, entries;

  LinesMade(const Lines& of, std::uint32_t count)
      : lines(of), places(count), table(table_of(of, count)), entries(entries_of(of)) {
    head = {.at = 0x5000,
            .entries_at = 0x100000,
            .positions = 0,
            .entries = of.size() | 0xabcdULL << 32,  // behind the number is padding
            .table_at = 0x200000,
            .places = count,
            .pad = 0};
  }
  std::string sent() const {
    std::string text(reinterpret_cast<const char*>(&head), sizeof head);
    text += table;
    text.resize(sizeof head + RUBY_TABLE);
    return text + entries;
  }
  std::string only_head() const { return sent().substr(0, sizeof head); }
  void put(MadeMemory& memory) const {
    memory.write(head.at, &head.entries_at, 32);
    memory.write(head.entries_at, entries.data(), entries.size());
    memory.write(head.table_at, table.data(), table.size());
  }
  void expect_lines(const std::string& table_read) const {
    for (std::uint32_t place = 0; place < places; place++) {
      std::uint32_t line = 0;
      for (auto& [begin, number] : lines)
        if (begin <= place) line = number;
      EXPECT_EQ(ruby_line(table_read, place).value_or(0), line) << place << " of " << places;
    }
    EXPECT_FALSE(ruby_line(table_read, places));
    EXPECT_FALSE(ruby_line(table_read, ~0U));
  }
};

Lines every(std::uint32_t step, std::uint32_t places) {
  Lines lines;
  for (std::uint32_t at = 0; at < places; at += step) lines.emplace_back(at, 1000 - at / step);
  return lines;
}

constexpr std::size_t kMost = 1 << 20;

TEST(Ruby, LinesThatWereSent) {
  for (std::uint32_t places : {1U, 9U, 53U, 54U, 55U, 200U, 566U, 567U, 1100U, 1590U})
    for (std::uint32_t step : {1U, 5U, 63U, 64U, 600U}) {
      const LinesMade made(every(step, places), places);
      if (made.sent().size() > RUNTIME_LINES) continue;
      made.expect_lines(ruby_lines_of(made.sent(), 7, {}, kMost));
    }
}

TEST(Ruby, LongTablesAreReadFromTheProcess) {
  const LinesMade made(every(3, 6000), 6000);
  MadeMemory memory;
  made.put(memory);
  std::size_t reads = 0;
  const ReadMemory read = [&](pid_t pid, std::uint64_t address, std::span<char> to) {
    EXPECT_EQ(pid, 7);
    reads++;
    return memory.read(address, to);
  };
  made.expect_lines(ruby_lines_of(made.only_head(), 7, read, kMost));
  EXPECT_EQ(reads, 3u);
  EXPECT_TRUE(ruby_lines_of(made.only_head(), 7, read, 20'000).empty());  // too long
  EXPECT_TRUE(ruby_lines_of(made.only_head(), 7, {}, kMost).empty());
  EXPECT_TRUE(ruby_lines_of(made.only_head(), 0, read, kMost).empty());  // outside the namespace
  memory.put(made.head.at + 8, 1);  // it is other code's by now
  EXPECT_TRUE(ruby_lines_of(made.only_head(), 7, read, kMost).empty());
}

TEST(Ruby, WrongTablesHaveNoLines) {
  EXPECT_TRUE(ruby_lines_of({}, 7, {}, kMost).empty());
  EXPECT_TRUE(ruby_lines_of("short", 7, {}, kMost).empty());
  EXPECT_FALSE(ruby_line({}, 0));
  EXPECT_FALSE(ruby_line("abc", 0));
  LinesMade made(every(5, 300), 300);
  auto table = ruby_lines_of(made.sent(), 7, {}, kMost);
  for (std::size_t size = 0; size < table.size(); size++)
    (void)ruby_line(table.substr(0, size), 299);  // AddressSanitizer sees reads beyond it
  EXPECT_FALSE(ruby_line(table.substr(0, 100), 299));
  // More entries than it has; none before the place.
  std::fill(table.begin() + 4, table.begin() + 4 + RUBY_FIRST_BYTES, '\x7f');
  EXPECT_FALSE(ruby_line(table, 3));
  std::fill(table.begin() + 4, table.begin() + 4 + RUBY_FIRST_BYTES, '\0');
  EXPECT_FALSE(ruby_line(table, 3));
}

TEST(Ruby, NamesOfCodeAndMethods) {
  CodeNames names;
  const auto sent = [&](std::uint64_t number, std::string_view name, std::string_view file,
                        const std::string& lines) {
    const auto n = number << RUNTIME_KIND_BITS | RUNTIME_RUBY;
    send(names, {n, std::string(name), std::string(file), lines, 40, 0});
    return word(n, 0);
  };
  const LinesMade made({{0, 41}, {10, 44}}, 30);
  const auto code = sent(1, "block in work", "/srv/app.rb", made.sent());
  auto frame = names.find(code | 12);
  EXPECT_EQ(frame.function, "block in work");
  EXPECT_EQ(frame.file, "/srv/app.rb");
  EXPECT_EQ(frame.line, 44u);
  EXPECT_EQ(names.find(code | 9).line, 41u);
  EXPECT_EQ(names.find(code | 30).line, 40u);  // not in the code: its first line
  sent(1, "block in work", "/srv/app.rb", made.sent());
  EXPECT_EQ(names.find(code).function, "block in work");
  sent(1, "other", "/srv/app.rb", made.sent());  // two have this number
  EXPECT_TRUE(names.find(code).function.empty());
  EXPECT_EQ(names.find(sent(2, "each", "", "")).function, "each");
  EXPECT_EQ(
      names.find(STACK_RUNTIME | RUNTIME_RUBY << RUNTIME_MARK_BITS | RUNTIME_MARK_VERSION).function,
      "[ruby: unknown version]");
  EXPECT_EQ(kind_of(code), RUNTIME_RUBY);
  EXPECT_TRUE(has_loop(RUNTIME_RUBY));
}

}  // namespace
}  // namespace coretap::runtimes
