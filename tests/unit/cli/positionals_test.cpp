#include "all_tools.hpp"
#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"

namespace coretap {
namespace {

/// Takes words into Config::svg, each behind a blank.
Positional word(std::string_view metavar, Positional::Repeat repeat) {
  return {.metavar = metavar,
          .doc = "a word",
          .repeat = repeat,
          .apply = [](Config& c, std::string_view text) -> Result<void> {
            c.svg += ' ' + std::string(text);
            return {};
          }};
}

struct Parsed {
  std::string words, error;
};
Parsed taken(std::vector<Positional> positionals, const Words& words) {
  Tool tool{.name = "thing", .positionals = std::move(positionals)};
  auto r = parse_command_line(tool, words);
  if (r) return {r->config.svg, {}};
  EXPECT_EQ(r.error().status, kUsage);
  return {{}, r.error().what};
}

std::string words_of(std::vector<Positional> positionals) {
  return synopsis(Tool{.name = "thing", .positionals = std::move(positionals)});
}

const auto kPattern = word("PATTERN", Positional::required);
const auto kMaybe = word("MAYBE", Positional::optional);

TEST(Positionals, RequiredAndOptional) {
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a"}).words, " a");
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a", "b"}).words, " a b");
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a", "b", "c"}).error, "unexpected argument 'c'");
  EXPECT_EQ(taken({kPattern, kMaybe}, {}).error, "PATTERN is missing");
  EXPECT_EQ(taken({}, {"a"}).error, "unexpected argument 'a'");
  EXPECT_EQ(taken({}, {}).error, "");
}

TEST(Positionals, Repeated) {
  auto any = word("WORD", Positional::any_number), some = word("WORD", Positional::at_least_one);
  EXPECT_EQ(taken({any}, {}).error, "");
  EXPECT_EQ(taken({any}, {"a", "b", "c"}).words, " a b c");
  EXPECT_EQ(taken({kPattern, some}, {"a", "b", "c"}).words, " a b c");
  EXPECT_EQ(taken({kPattern, some}, {"a"}).error, "WORD is missing");
  EXPECT_EQ(words_of({kPattern, some}), "[OPTIONS] PATTERN WORD... [-- COMMAND ARGS...]");
}

TEST(Positionals, Synopsis) {
  EXPECT_EQ(words_of({}), "[OPTIONS] [-- COMMAND ARGS...]");
  EXPECT_EQ(words_of(shared::interval_count()),
            "[OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ARGS...]");
  EXPECT_EQ(words_of({kPattern, shared::duration_argument()}),
            "[OPTIONS] PATTERN [DURATION] [-- COMMAND ARGS...]");
  EXPECT_EQ(words_of({word("WORD", Positional::any_number)}),
            "[OPTIONS] [WORD...] [-- COMMAND ARGS...]");
}

TEST(Positionals, TheErrorOfOneEndsIt) {
  auto picky = word("PICKY", Positional::any_number);
  picky.apply = [](Config&, std::string_view text) -> Result<void> {
    if (text == "b") return Error{"not b", {}, {}, kUsage};
    return {};
  };
  EXPECT_EQ(taken({picky}, {"a", "b", "c"}).error, "not b");
}

TEST(Positionals, AnArgumentOrItsOption) {
  Tool tool{.name = "thing", .positionals = shared::interval_count(5)};
  auto interval = [&](const Words& words) {
    auto r = parse_command_line(tool, words);
    return r ? r->config.interval : -1;
  };
  EXPECT_EQ(interval({}), 5);
  EXPECT_EQ(interval({"2"}), 2);
  EXPECT_EQ(interval({"-i", "3"}), 3) << "an option is not overwritten by the default";
  auto refused = [](const Tool& of, const Words& words) {
    auto r = parse_command_line(of, words);
    return r ? "" : r.error().what;
  };
  EXPECT_EQ(refused(tool, {"-i", "3", "2"}), "INTERVAL '2' and --interval cannot be used together");
  EXPECT_EQ(refused(tool, {"2", "0"}), "COUNT: '0' is not a number from 1 to 18446744073709551615");
  Tool lasting{.name = "thing", .positionals = {shared::duration_argument()}};
  EXPECT_EQ(refused(lasting, {"--duration", "3", "2"}),
            "DURATION '2' and --duration cannot be used together");
}

TEST(Positionals, Threshold) {
  Tool tool{
      .name = "thing",
      .positionals = {shared::threshold("MIN_MS", 1'000'000, "only slower ones", {16, 8}, "10")}};
  auto value = [&](const Words& words) -> std::uint64_t {
    auto r = parse_command_line(tool, words);
    if (!r || r->config.edits().size() != 1) return UINT64_MAX;
    EXPECT_EQ(r->config.edits()[0].target.offset, 16u);
    return r->config.edits()[0].value;
  };
  EXPECT_EQ(value({}), 10'000'000u);
  EXPECT_EQ(value({"0"}), 0u);
  EXPECT_EQ(value({"25"}), 25'000'000u);
  EXPECT_EQ(value({"18446744073709"}), 18446744073709'000'000u);
  for (auto* bad : {"18446744073710", "-1", "x", "", "1.5", "10ms"}) {
    auto r = parse_command_line(tool, {"--", "true"});
    EXPECT_TRUE(r);
    EXPECT_EQ(taken(tool.positionals, {"-v", bad}).error,
              bad[0] == '-'
                  ? "unknown option -1"
                  : "MIN_MS: '" + std::string(bad) + "' is not a number from 0 to 18446744073709");
  }
  EXPECT_EQ(arguments(tool).at(0).doc, "only slower ones (default: 10)");
}

// What may be left out comes last, and only the last can be there several times.
TEST(Positionals, OfAllToolsAreUnambiguous) {
  for (auto& tool : all_tools()) {
    bool optional = false, repeated = false;
    for (auto& p : tool.positionals) {
      SCOPED_TRACE(std::string(tool.name) + " " + std::string(p.metavar));
      EXPECT_FALSE(repeated);
      EXPECT_FALSE(optional && p.needed());
      optional |= !p.needed();
      repeated |= p.repeats();
      EXPECT_TRUE(p.apply);
      EXPECT_FALSE(p.doc.empty() || p.doc.ends_with('.')) << p.doc;
    }
  }
}

}  // namespace
}  // namespace coretap
