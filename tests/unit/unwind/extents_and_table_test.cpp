// Tables of made and of real files, and their allocation.
#include "coretap/fd.hpp"
#include "expect.hpp"
#include "symbols/test_files.hpp"
#include "unwind/extents.hpp"
#include "unwind/made_elf.hpp"
#include "unwind/rules.hpp"
#include "unwind/table.hpp"

namespace coretap::unwind {
namespace {

using namespace test;

constexpr std::uint64_t kPage = 1 << UNWIND_PAGE_BITS;

unwind_rule sp(int offset) {
  unwind_rule rule{};
  rule.cfa = UNWIND_SP;
  rule.offset = offset;
  return rule;
}

TEST(Rules, EachIsKeptOnce) {
  Rules rules;
  EXPECT_EQ(rules.all().size(), 2u);
  EXPECT_EQ(rules.all()[Rules::kNone].cfa, UNWIND_NONE);
  EXPECT_EQ(rules.all()[Rules::kOther].cfa, UNWIND_OTHER);
  EXPECT_EQ(rules.index_of(unwind_rule{}), Rules::kNone);
  std::vector<unwind_rule> some{sp(4711)};
  for (int i = 0; i < 100; i++) some.push_back(sp(i));
  for (auto change :
       {+[](unwind_rule& r) { r.cfa = UNWIND_BP; },
        +[](unwind_rule& r) { r.bp = UNWIND_BP_AT_CFA; }, +[](unwind_rule& r) { r.bp_slot = 1; },
        +[](unwind_rule& r) { r.bx_slot = 1; }, +[](unwind_rule& r) { r.more = 1; }})
    change(some.emplace_back(sp(4711)));
  std::vector<std::uint16_t> indexes;
  for (auto& rule : some) indexes.push_back(rules.index_of(rule));
  EXPECT_EQ(rules.all().size(), 2 + some.size());
  for (std::size_t i = 0; i < some.size(); i++) {
    EXPECT_EQ(rules.index_of(some[i]), indexes[i]);
    EXPECT_EQ(memcmp(&rules.all()[indexes[i]], &some[i], sizeof some[i]), 0);
  }
  EXPECT_EQ(rules.all().size(), 2 + some.size());
}

TEST(Rules, WhatHasNoRoomIsCountedAndStandsForUnknown) {
  Rules rules;
  for (int i = 2; i < UNWIND_RULES; i++) EXPECT_EQ(rules.index_of(sp(i)), i);
  EXPECT_EQ(rules.refused(), 0u);
  EXPECT_EQ(rules.index_of(sp(-1)), Rules::kOther);
  EXPECT_EQ(rules.index_of(sp(-2)), Rules::kOther);
  EXPECT_EQ(rules.refused(), 2u);
  EXPECT_EQ(rules.index_of(sp(77)), 77) << "what is there is still found";
  EXPECT_EQ(rules.all().size(), std::size_t{UNWIND_RULES});
}

/// Properties that the kernel program and find() rely on.
void expect_sound(const Table& table) {
  std::size_t rows = 0;
  EXPECT_EQ(table.base % kPage, 0u);
  EXPECT_LE(table.pages.size(), std::size_t{UNWIND_PAGES});
  std::uint16_t last = Rules::kNone;
  for (auto& page : table.pages) {
    ASSERT_EQ(page.first, rows) << "pages lie behind each other";
    ASSERT_GE(page.count, 1u);
    ASSERT_LE(page.count, std::uint32_t{UNWIND_CHUNK_ROWS});
    rows += page.count;
    ASSERT_LE(rows, table.rows.size());
    ASSERT_EQ(table.rows[page.first] >> 16, 0u) << "a page's first row is at its first byte";
    for (std::uint32_t i = 1; i < page.count; i++)
      ASSERT_LT(table.rows[page.first + i - 1] >> 16, table.rows[page.first + i] >> 16);
    last = static_cast<std::uint16_t>(table.rows[rows - 1]);
  }
  EXPECT_EQ(rows, table.rows.size());
  EXPECT_EQ(last, Rules::kNone) << "the end is closed";
  EXPECT_EQ(table.bytes(), rows * 4 + table.pages.size() * sizeof(unwind_page));
}

struct Made {
  test::CfiTable truth;
  Rules rules;
  Table table;
  explicit Made(const Image& image) : truth(test::read_table(image)) {
    table = make_table(image, truth.elf, rules);
  }
  explicit Made(const std::string& file) : Made(Image({file.data(), file.size()})) {}

  std::string at(std::uint64_t address) const {
    return test::text(rules.all()[table.find(address)]);
  }
  /// Checks all critical addresses.
  void expect_true() const {
    expect_sound(table);
    expect_no_row_too_many();
    auto expect_at = [&](std::uint64_t address, const unwind_rule& rule) {
      ASSERT_EQ(at(address), test::text(rule)) << std::hex << address;
    };
    unwind_rule before{};
    for (auto& [address, rule] : truth.rows) {
      expect_at(address - 1, before);
      expect_at(address, rule);
      expect_at(address + 1, truth_at(address + 1));
      before = rule;
    }
    for (std::size_t page = 0; page <= table.pages.size() + 1; page++)
      for (int by : {-1, 0, 1}) {
        auto address = table.base + page * kPage + static_cast<std::uint64_t>(by);
        expect_at(address, truth_at(address));
      }
    for (std::uint64_t address : {std::uint64_t{0}, table.base - kPage, UINT64_MAX}) {
      expect_at(address, truth_at(address));
    }
  }
  /// One row at the start of each page from the first rule to the last, and one for each change.
  void expect_no_row_too_many() const {
    ASSERT_FALSE(table.pages.empty());
    EXPECT_EQ(table.base, truth.rows.front().address & ~(kPage - 1));
    std::vector<std::uint32_t> counts((truth.rows.back().address - table.base) / kPage + 1, 1);
    for (auto& row : truth.rows)
      counts[(row.address - table.base) / kPage] += row.address % kPage != 0;
    ASSERT_EQ(table.pages.size(), counts.size());
    for (std::size_t i = 0; i < counts.size(); i++) EXPECT_EQ(table.pages[i].count, counts[i]) << i;
  }
  unwind_rule truth_at(std::uint64_t address) const {
    auto next = std::upper_bound(truth.rows.begin(), truth.rows.end(), address,
                                 [](std::uint64_t a, auto& row) { return a < row.address; });
    return next == truth.rows.begin() ? unwind_rule{} : std::prev(next)->rule;
  }
};

std::string cfa(int offset) { return bytes({0x0e, offset}); }              // DW_CFA_def_cfa_offset
std::string further(std::uint32_t by) { return bytes({0x04}) + raw(by); }  // DW_CFA_advance_loc4

TEST(MakeTable, ProgramsEndWhereTheyStart) {
  auto at = [](std::uint64_t entry, std::uint64_t address) {
    MadeElf elf;
    elf.entry = entry;
    auto cie = elf.cie();
    elf.fde(cie, kCode + 0x100, 0x40, cfa(16));
    elf.fde(cie, kCode + 0x200, 0x40, cfa(32));
    return Made(elf.file()).at(address);
  };
  for (auto [entry, address, rule] : {std::tuple{0x20, 0x1f, "none"},
                                      {0x20, 0x20, "end"},
                                      {0x20, 0xff, "end"},
                                      {0x20, 0x100, "sp+16"},
                                      {0x20, 0x140, "none"},
                                      {0x140, 0x140, "end"},  // the first byte after a function
                                      {0x150, 0x150, "end"},
                                      {0x150, 0x140, "none"},
                                      {0x110, 0x110, "sp+16"},  // described code keeps its rule
                                      {0x110, 0x140, "none"}})
    EXPECT_EQ(at(kCode + entry, kCode + address), rule) << std::hex << entry << " " << address;
  EXPECT_EQ(at(0, kCode), "none");
  EXPECT_EQ(at(0x7fffffff, kCode + 0x300), "none") << "outside of the file";
}

/// A file with functions at kCode + 0x10 and at this address, encoded in eight bytes.
std::string far_file(std::uint64_t at) {
  MadeElf elf;
  elf.finds = MadeElf::by_walk;
  auto cie = elf.cie(kFunctionStart, "zR", bytes({0}));
  for (auto start : {kCode + 0x10, at})
    elf.fde(cie, start, 0x20, "", raw(start) + raw(std::uint64_t{0x20}));
  elf.more_code_at = {at & ~0xfffull};
  return elf.file();
}

TEST(MakeTable, CodeBeyondWhatThereIsRoomFor) {
  Made last(far_file(kCode + UNWIND_PAGES * kPage - 0x100));
  EXPECT_EQ(last.table.pages.size(), std::size_t{UNWIND_PAGES});
  EXPECT_EQ(last.at(kCode + UNWIND_PAGES * kPage - 0x100), "sp+8");
  expect_sound(last.table);
  Made beyond(far_file(kCode + UNWIND_PAGES * kPage));
  EXPECT_EQ(beyond.truth.rows.size(), 4u);
  EXPECT_TRUE(beyond.table.pages.empty());
  EXPECT_EQ(beyond.at(kCode + 0x10), "none");
  // Its last row ends it, and is beyond the limit.
  Made end(far_file(kCode + UNWIND_PAGES * kPage - 0x20));
  EXPECT_TRUE(end.table.pages.empty());
}

TEST(MakeTable, RandomFunctions) {
  constexpr std::uint64_t kPages = 60;
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (int round = 0; round < 30; round++) {
    MadeElf elf;
    elf.code.resize(kPages * kPage, '\xcc');
    auto cie = elf.cie();
    std::uint64_t at = kCode + random() % (4 * kPage);
    for (int i = 0; i < 200; i++) {
      // Often at a page's edges.
      auto gap = random() % 4 ? 0 : random() % 10 ? random() % 64 : random() % (20 * kPage);
      auto size = random() % 10 ? 1 + random() % 512 : 1 + random() % (6 * kPage);
      if (random() % 8 == 0) size = kPage - (at + gap) % kPage;
      if (at + gap + size > kCode + kPages * kPage) break;
      std::string program;
      std::uint32_t left = static_cast<std::uint32_t>(size);
      for (int row = 0; row < 3 && left > 1; row++) {
        std::uint32_t by = 1 + static_cast<std::uint32_t>(random() % left);
        if (by >= left) break;
        left -= by;
        program += further(by) + cfa(8 * static_cast<int>(1 + random() % 12));
      }
      elf.fde(cie, at + gap, static_cast<std::uint32_t>(size), program);
      at += gap + size;
    }
    Made made(elf.file());
    made.expect_true();
    for (int i = 0; i < 2000; i++) {
      auto address = kCode - 100 + random() % ((kPages + 1) * kPage);
      ASSERT_EQ(made.at(address), test::text(made.truth_at(address))) << std::hex << address;
    }
  }
}

TEST(Extents, AgreeWithAListOfWhatIsTaken) {
  constexpr std::uint32_t kSize = 512;
  std::mt19937 random(20240229);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  Extents room(kSize);
  std::vector<bool> taken(kSize);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> held;
  int refused = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (below(2) == 0) {
      const std::uint32_t count = 1 + below(40);
      const auto place =
          std::search_n(taken.begin(), taken.end(), static_cast<std::ptrdiff_t>(count), false);
      const auto got = room.take(count);
      ASSERT_EQ(got.has_value(), place != taken.end()) << step;
      if (got) {
        ASSERT_EQ(*got, place - taken.begin()) << step;
        std::fill_n(place, count, true);
        held.emplace_back(*got, count);
      } else {
        ++refused;
      }
    } else {
      // Invalid ones are harmless.
      std::pair<std::uint32_t, std::uint32_t> range{below(kSize + 20), below(60)};
      if (below(10) == 0) range.first = UINT32_MAX - below(60);
      if (!held.empty() && below(8) != 0) {
        std::swap(held[below(static_cast<std::uint32_t>(held.size()))], held.back());
        range = held.back();
        held.pop_back();
      }
      room.give(range.first, range.second);
      for (std::uint64_t at = range.first;
           at < range.first + std::uint64_t{range.second} && at < kSize; ++at)
        taken[at] = false;
    }
    ASSERT_EQ(room.free(), std::count(taken.begin(), taken.end(), false)) << step;
    ASSERT_EQ(room.empty(), room.free() == kSize) << step;
  }
  EXPECT_GT(refused, 1000);  // the space was crowded
  for (auto& [first, count] : held) room.give(first, count);
  EXPECT_EQ(room.take(kSize), 0U) << "neighbours become one";
  Extents none(0);
  none.give(0, 1);
  EXPECT_EQ(none.take(1), std::nullopt);
}

}  // namespace
}  // namespace coretap::unwind
