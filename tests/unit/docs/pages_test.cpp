// Pages of docs/ are correct about files, names in them, and pages that they link to.
#include <cctype>

#include "expect.hpp"

namespace coretap {
namespace {

/// A page without its fenced blocks: those are commands and code, which other tests run.
std::string prose(const std::string& page) {
  std::string text;
  bool fenced = false;
  for (auto& line : lines_of(page))
    if (line.starts_with("```"))
      fenced = !fenced;
    else if (!fenced)
      text += line + '\n';
  EXPECT_FALSE(fenced) << "a block without its end";
  return text;
}

/// Text between backticks.
Words quoted(const std::string& text) {
  static const std::regex part("`([^`]*)`");
  Words all;
  for (std::sregex_iterator m(text.begin(), text.end(), part), end; m != end; ++m)
    all.push_back((*m)[1]);
  return all;
}

bool has_word(const std::string& text, const std::string& word) {
  auto part = [&](std::size_t at) {
    return at < text.size() && (isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (!(at && part(at - 1)) && !part(at + word.size())) return true;
  return false;
}

/// A path in the tree, optionally with a name in that file: "src/core/run.cpp:trace".
struct Mention {
  fs::path path;
  std::string name;
};

/// Other text between backticks, and placeholders, are not mentions.
std::optional<Mention> mention(const std::string& words, const fs::path& root) {
  auto path = words.substr(0, words.find(' '));
  auto colon = path.find(':');
  auto name = colon == path.npos ? "" : path.substr(colon + 1);
  path.resize(std::min(colon, path.size()));
  auto slash = path.find('/');
  if (slash == 0 || slash == path.npos || path.find_first_of("*$'(") != path.npos) return {};
  if (!fs::is_directory(root / path.substr(0, slash)) || path.starts_with("build")) return {};
  for (auto* placeholder : {"SUBSYSTEM", "NAME", "TOOL", "KERNEL"})
    if (path.find(placeholder) != path.npos) return {};
  return Mention{root / path, name};
}

class Pages : public testing::Test {
 protected:
  fs::path root = places::source_dir();
  std::vector<fs::path> pages = [&] {
    std::vector<fs::path> all;
    for (auto& entry : fs::directory_iterator(root / "docs"))
      if (entry.path().extension() == ".md") all.push_back(entry.path());
    return all;
  }();
};

TEST_F(Pages, NameWhatIsThere) {
  int paths = 0, names = 0;
  for (auto& page : pages) {
    SCOPED_TRACE(page.filename());
    for (auto& words : quoted(prose(places::file_text(page)))) {
      auto found = mention(words, root);
      if (!found) continue;
      paths++;
      EXPECT_TRUE(fs::exists(found->path)) << words;
      if (found->name.empty()) continue;
      names++;
      EXPECT_TRUE(has_word(places::file_text(found->path), found->name)) << words;
    }
  }
  EXPECT_GT(paths, 100);
  EXPECT_GT(names, 40);
}

TEST_F(Pages, LinkToWhatIsThere) {
  pages.push_back(root / "README.md");
  for (auto& page : pages) {
    SCOPED_TRACE(page.filename());
    auto text = prose(places::file_text(page));
    for (std::size_t at = 0; (at = text.find("](", at)) != text.npos;) {
      at += 2;
      auto link = text.substr(at, text.find_first_of(")#", at) - at);
      if (link.find("://") != link.npos) continue;
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << link;
    }
  }
}

TEST_F(Pages, AreFound) {
  auto start = places::file_text(root / "docs/README.md");
  for (auto& page : pages) {
    auto name = page.filename().string();
    if (name == "README.md") continue;
    EXPECT_TRUE(says(start, "(" + name + ")"));
  }
  EXPECT_NE(places::file_text(root / "README.md").find("(docs/README.md)"), std::string::npos);
}

TEST(PagesChecker, KnowsWhatItReads) {
  fs::path root = places::source_dir();
  EXPECT_EQ(prose("a\n```sh\n`b`\n```\n`c`\n"), "a\n`c`\n");
  EXPECT_EQ(quoted("`a b` and `c`"), (Words{"a b", "c"}));
  EXPECT_TRUE(has_word("int trace(x)", "trace"));
  EXPECT_FALSE(has_word("int retrace(x) traced", "trace"));
  auto found = mention("src/core/run.cpp:trace", root);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, root / "src/core/run.cpp");
  EXPECT_EQ(found->name, "trace");
  EXPECT_EQ(mention("scripts/golden --check", root)->path, root / "scripts/golden");
  for (auto* none : {"bpf/SUBSYSTEM/NAME.bpf.c", "shared::pid", "/proc/vmstat", "report_*.cpp"})
    EXPECT_FALSE(mention(none, root)) << none;
}

}  // namespace
}  // namespace coretap
