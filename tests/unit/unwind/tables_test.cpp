#include "unwind/tables.hpp"

#include "expect.hpp"
#include "symbols/test_files.hpp"
#include "unwind/kernel_tables.hpp"
#include "unwind/made_elf.hpp"

namespace coretap::unwind {
namespace {

using std::chrono::milliseconds;
using namespace test;

std::size_t bytes_of(std::uint32_t rows) { return rows * 4 + sizeof(unwind_page); }

class TablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto why = kernel_.open(1); !why.empty()) GTEST_SKIP() << why;
  }
  void open(std::size_t budget) {
    ASSERT_EQ(kernel_.open(Tables::chunks_for(budget)), "");
    tables_ = std::make_unique<Tables>(kernel_.maps(), budget);
    ASSERT_TRUE(tables_->ready());
  }
  std::shared_ptr<File> of(const std::string& path) {
    auto fd = symbols::test::open_file(path);
    auto id = symbols::identity_of(fd.get());
    EXPECT_TRUE(id) << path;
    return tables_->of_file(fd.get(), *id);
  }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::shared_ptr<File> known(const std::string& at) {
    return tables_->known(*symbols::identity_of(symbols::test::open_file(at).get()));
  }
  /// Two names, two tables.
  std::shared_ptr<File> of(const std::string& name, std::uint32_t rows) {
    return of(scratch_.write(name, file_of(rows, name, 8 * (name.front() - '`'))));
  }
  /// The kernel program's data equal the file's table.
  void expect_written(const File& file, const std::string& path) {
    const auto fd = symbols::test::open_file(path);
    const Image image(fd.get());
    ASSERT_EQ(file.state, File::ready);
    Rules rules = tables_->rules();
    auto table = make_table(image, file.elf, rules);
    ASSERT_EQ(rules.all().size(), tables_->rules().all().size());
    EXPECT_EQ(file.base, table.base);
    EXPECT_EQ(file.bytes, table.bytes());
    ASSERT_EQ(file.pages, table.pages.size());
    std::size_t same = 0;
    auto pages = kernel_.pages(file.page, file.pages);
    for (std::size_t i = 0; i < pages.size(); i++) {
      ASSERT_EQ(pages[i].rows, table.pages[i].count);
      auto rows = kernel_.rows(pages[i].chunk, pages[i].first, pages[i].rows);
      same += std::equal(rows.begin(), rows.end(), table.rows.begin() + table.pages[i].first);
    }
    EXPECT_EQ(same, pages.size());
  }
  void settle() { tables_->settle(Tables::Clock::now() + 2 * Tables::kGrace); }

  test::KernelTables kernel_;
  std::unique_ptr<Tables> tables_;
  ScratchDirectory scratch_;
};

TEST(TablesChunks, ForABudget) {
  EXPECT_EQ(Tables::chunks_for(0), 1u);
  EXPECT_EQ(Tables::chunks_for(kChunk), 1u);
  EXPECT_EQ(Tables::chunks_for(8 * kChunk), 8u);
  EXPECT_EQ(Tables::chunks_for(SIZE_MAX), 1u << 16);
}

TEST_F(TablesTest, CopiesAreKnownByTheirTables) {
  open(kChunk);
  auto content = file_of(100, "id");
  auto first = of(scratch_.write("a", content));
  EXPECT_EQ(first->state, File::ready);
  EXPECT_EQ(tables_->bytes(), bytes_of(100));
  fs::create_hard_link(path("a"), path("a.link"));
  for (auto* same : {"a", "a.link"}) EXPECT_EQ(of(path(same)), first) << same;
  EXPECT_EQ(of(scratch_.write("b", content)), first);
  EXPECT_EQ(tables_->bytes(), bytes_of(100));
  EXPECT_EQ(of(scratch_.write("c", content + "more")), first) << "stripped of something";
  auto without = scratch_.write("without", file_of(100, "", 24));  // a build-id
  EXPECT_EQ(of(without), of(without));
  // A file may have another one's build-id.
  EXPECT_NE(of(scratch_.write("d", file_of(101, "id"))), first);
  EXPECT_NE(of(scratch_.write("e", file_of(100, "id", 16))), first);
}

TEST_F(TablesTest, FilesWithoutTables) {
  open(kChunk);
  auto text = of(scratch_.write("text", "no ELF file"));
  EXPECT_EQ(text->state, File::no_cfi);
  EXPECT_EQ(of(path("text")), text) << "not read again";
  EXPECT_EQ(of(scratch_.write("bare", MadeElf().file()))->state, File::no_cfi);
  EXPECT_EQ(of(scratch_.write("empty", ""))->state, File::no_cfi);
  EXPECT_EQ(tables_->bytes(), 0u);
  EXPECT_EQ(kernel_.chunks(1), 0u);
}

TEST_F(TablesTest, NoMoreThanTheBudget) {
  open(2 * kChunk);
  auto a = of("a", 50000), b = of("b", 50000);
  auto c = of("c", 40000);
  EXPECT_EQ(c->state, File::no_memory) << "both are in use";
  EXPECT_EQ(c->lacking, bytes_of(40000));
  EXPECT_EQ(c->pages, 0u);
  EXPECT_EQ(tables_->bytes(), 2 * bytes_of(50000));
  EXPECT_FALSE(tables_->fits(c->lacking));
  expect_written(*a, path("a"));
  expect_written(*b, path("b"));
  // An unused table makes room once no walk can read it.
  a.reset();
  EXPECT_FALSE(tables_->fits(c->lacking)) << "not at once";
  EXPECT_EQ(of(path("c"))->state, File::no_memory);
  expect_written(*b, path("b"));
  settle();
  EXPECT_TRUE(tables_->fits(c->lacking));
  auto again = of(path("c"));
  EXPECT_EQ(again, c) << "who has it sees it";
  EXPECT_EQ(c->state, File::ready);
  EXPECT_EQ(c->lacking, 0u);
  expect_written(*c, path("c"));
  expect_written(*b, path("b"));
  a = of(path("a"));
  EXPECT_EQ(a->state, File::no_memory);
  EXPECT_EQ(a->lacking, bytes_of(50000));
}

TEST_F(TablesTest, TheLeastRecentlyUsedGoFirst) {
  open(kChunk);
  for (const auto* name : {"a", "b", "c", "d"}) of(name, 15000);
  EXPECT_EQ(tables_->bytes(), 4 * bytes_of(15000));
  of(path("a"));  // b is the oldest
  EXPECT_EQ(of("e", 15000)->state, File::no_memory);
  EXPECT_EQ(known(path("b"))->state, File::no_memory);
  for (const auto* name : {"a", "c", "d"}) EXPECT_EQ(of(path(name))->state, File::ready) << name;
  settle();
  EXPECT_EQ(of(path("e"))->state, File::ready);
  for (const auto* name : {"a", "c", "d", "e"}) expect_written(*of(path(name)), path(name));
}

TEST_F(TablesTest, FreedRoomIsNotUsedBeforeItsTime) {
  open(kChunk);
  auto a = of("a", 30000);
  auto before = tables_->bytes();
  tables_->drop(*a);
  auto now = Tables::Clock::now();
  EXPECT_EQ(a->state, File::no_memory);
  EXPECT_EQ(tables_->bytes(), before) << "a walk may be reading it";
  EXPECT_FALSE(tables_->settle(now + Tables::kGrace / 2));
  EXPECT_EQ(kernel_.chunks(1), 1u);
  EXPECT_TRUE(tables_->settle(now + Tables::kGrace));
  EXPECT_EQ(tables_->bytes(), 0u);
  EXPECT_EQ(kernel_.chunks(1), 0u);
  tables_->drop(*a);  // nothing to drop
  EXPECT_FALSE(tables_->settle(now + 2 * Tables::kGrace));
  EXPECT_EQ(tables_->bytes(), 0u);
}

// The vdso is the last mapping of the first process: there may be no room left.
TEST_F(TablesTest, ImagesWithoutRoom) {
  open(kChunk);
  auto a = of("a", 60000);
  auto image = file_of(10000, "");
  auto file = tables_->of_image(image);
  EXPECT_EQ(file->state, File::no_memory);
  a.reset();
  tables_->of_image(image);
  settle();
  EXPECT_EQ(tables_->of_image(image), file) << "who has it sees it";
  EXPECT_EQ(file->state, File::ready);
}

TEST_F(TablesTest, IdleFilesMakeAPlaceForAWholePageButNotInVain) {
  open(3 * kChunk);
  for (const auto* name : {"a", "b", "c"}) of(name, 40000);
  EXPECT_FALSE(tables_->fits(8 * kChunk));
  for (const auto* name : {"a", "b", "c"}) EXPECT_EQ(known(path(name))->state, File::ready);
  of("d", 40000);
  settle();
  EXPECT_EQ(of(path("d"))->state, File::ready);
}

TEST_F(TablesTest, ManySizesComingAndGoing) {
  constexpr std::uint32_t kChunks = 4;
  open(kChunks * kChunk);
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  struct Known {
    std::string path;
    std::uint32_t rows;
    std::shared_ptr<File> file;  // null: not in use
  };
  std::vector<Known> all;
  for (int i = 0; i < 40; i++) {
    auto rows = 3 + static_cast<std::uint32_t>(random() % 3 ? random() % 2000 : random() % 40000);
    auto name = "f" + std::to_string(i);
    // All rows differ, so that overwriting is detected.
    all.push_back({scratch_.write(name, file_of(rows, name, 8 + i)), rows, nullptr});
  }
  auto now = Tables::Clock::now();
  int ready = 0, refused = 0;
  for (int round = 0; round < 600; round++) {
    auto& one = all[random() % all.size()];
    if (one.file && random() % 2) {
      if (random() % 2) tables_->drop(*one.file);
      one.file.reset();
    } else {
      one.file = of(one.path);
      (one.file->state == File::ready ? ready : refused)++;
      if (one.file->state != File::ready) one.file.reset();
    }
    if (random() % 3 == 0) tables_->settle(now += 2 * Tables::kGrace);
    ASSERT_LE(tables_->bytes(), kChunks * kChunk);
    if (round % 20 == 0)
      for (auto& known : all)
        if (known.file && known.file->state == File::ready) expect_written(*known.file, known.path);
  }
  EXPECT_GT(ready, 100);
  EXPECT_GT(refused, 10);
  for (auto& one : all)
    if (auto file = known(one.path)) tables_->drop(*file);
  tables_->settle(now + std::chrono::hours(1));
  EXPECT_EQ(tables_->bytes(), 0u);
  EXPECT_EQ(kernel_.chunks(kChunks), 0u);
}

}  // namespace
}  // namespace coretap::unwind
