// The text of `coretap guide`.
#include "docs/guide.hpp"
#include "all_tools.hpp"
#include "docs/commands.hpp"
#include "docs/complete.hpp"

namespace coretap {
namespace {

TEST(Guide, BeginsWithWhyAndEnds) {
  WordSet names;
  for (auto& page : guide_pages()) {
    SCOPED_TRACE(page.name);
    EXPECT_TRUE(names.emplace(page.name).second);
    ASSERT_FALSE(page.parts.empty());
    ASSERT_FALSE(page.parts[0].steps.empty());
    EXPECT_EQ(page.parts[0].steps[0].command, "why 10");
    for (auto& part : page.parts)
      for (auto& step : part.steps) {
        SCOPED_TRACE(step.command);
        EXPECT_TRUE(step.question.ends_with('?')) << step.question;
        EXPECT_TRUE(step.reading.ends_with('.')) << step.reading;
        for (auto text : {step.question, step.reading, step.next, page.about, part.about})
          EXPECT_EQ(text.find("  "), text.npos) << text;
      }
  }
}

TEST(Guide, HasCommandLinesThatParseAndEnd) {
  for (auto& page : guide_pages())
    for (auto& part : page.parts)
      for (auto& step : part.steps) {
        SCOPED_TRACE(step.command);
        std::istringstream text{std::string(step.command)};
        Words words;
        for (std::string word; text >> word;) words.push_back(word);
        ASSERT_FALSE(words.empty());
        const auto name = words[0];
        words.erase(words.begin());
        if (find_command(name)) {
          EXPECT_EQ(name, "why");
          continue;
        }
        auto* entry = find_tool(name);
        ASSERT_TRUE(entry) << "no such tool";
        auto parsed = parse_command_line(build(*entry), words);
        ASSERT_TRUE(parsed) << parsed.error().what << ": " << parsed.error().why;
        auto& schedule = parsed->config.schedule;
        EXPECT_TRUE(schedule.duration > 0 || schedule.count > 0 || parsed->config.given("now") ||
                    name == "loads")
            << "it never ends";
      }
}

// A page that the text of another one names is there.
TEST(Guide, NamesPagesThatExist) {
  WordSet names;
  for (auto& page : guide_pages()) names.emplace(page.name);
  std::size_t found = 0;
  for (auto& page : guide_pages())
    for (auto& part : page.parts)
      for (auto& step : part.steps) {
        const std::string next(step.next);
        static const std::regex other("guide ([a-z]+)");
        for (std::sregex_iterator m(next.begin(), next.end(), other), end; m != end; ++m) {
          found++;
          EXPECT_TRUE(names.contains((*m)[1].str())) << next;
        }
      }
  EXPECT_GT(found, 10u);
}

TEST(Guide, PagesAreCompleted) {
  auto all = printed(complete(nullptr, {"guide", "m"}));
  EXPECT_EQ(all.substr(0, all.find('\t')), "memory");
  EXPECT_TRUE(says(printed(complete(nullptr, {"man", "gui"})), "guide\t"));
}

}  // namespace
}  // namespace coretap
