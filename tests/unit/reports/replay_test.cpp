// Properties of every report, for any counts of kernel programs: lines are as documented, nothing
// is lost between source and output, and intervals add up.
#include "replay.hpp"

#include "../../fuzz/fuzz.hpp"
#include "cli/parser.hpp"
#include "expect.hpp"
#include "text/json_kinds.hpp"

namespace coretap::replay {
namespace {

constexpr std::uint32_t kSeeds = 6;

/// Calls back for each report of each tool, with some of its options.
template <class Visit>
void each(OutputFormat format, Visit visit) {
  for (auto& of : all_reports()) {
    // Each of these reads the names of kernel functions.
    const auto seeds = of.tool.report->kernel_symbols() ? 2 : kSeeds;
    for (std::uint32_t seed = 1; seed <= seeds; seed++) {
      SCOPED_TRACE(::testing::Message() << of.tool.name << " --" << of.when << ", seed " << seed);
      Config config;
      config.format = format;
      Chance chance(seed);
      give_some(config, of, chance);
      visit(of, config, seed);
    }
  }
}

bool is(std::string_view type, const rapidjson::Value& v) {
  if (v.IsNull()) return type.ends_with(" or null");
  if (type.starts_with("string")) return v.IsString();
  if (type.starts_with("boolean")) return v.IsBool();
  if (type.starts_with("integer")) return v.IsUint64() || v.IsInt64();
  if (type.starts_with("number")) return v.IsNumber();
  if (type.starts_with("object")) return v.IsObject();
  if (!type.starts_with("array of ") || !v.IsArray()) return false;
  type.remove_prefix(sizeof "array of " - 1);
  for (auto& element : v.GetArray())
    if (!is(type.substr(0, type.find('s', 3)), element)) return false;
  return true;
}

void expect_documented(const std::string& line, const std::vector<JsonKind>& kinds,
                       const Config& config) {
  auto written = parsed_json(line);
  ASSERT_TRUE(written.IsObject()) << line;
  ASSERT_TRUE(written.HasMember("type") && written["type"].IsString()) << line;
  auto kind = std::find_if(kinds.begin(), kinds.end(),
                           [&](auto& k) { return k.type == written["type"].GetString(); });
  ASSERT_NE(kind, kinds.end()) << "an unknown type: " << line;
  auto member = written.MemberBegin();
  for (auto& key : kind->keys) {
    if (key.name == "tool") {
      ++member;
      continue;
    }
    if (!config.holds(key.when)) continue;
    if (key.name == "time" && key.type == "string") {
      static const std::regex kTime(
          "[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}[+-][0-9]{2}:[0-9]{2}");
      ASSERT_TRUE(std::regex_match(member->value.GetString(), kTime)) << line;
    }
    ASSERT_NE(member, written.MemberEnd()) << key.name << " is not written: " << line;
    ASSERT_STREQ(member->name.GetString(), key.name.c_str()) << line;
    EXPECT_TRUE(is(key.type, member->value)) << key.name << " is no " << key.type << ": " << line;
    ASSERT_TRUE(key.negative || !member->value.IsInt64() || member->value.GetInt64() >= 0)
        << key.name << " is negative: " << line;
    if (key.type == "array of objects" && member->value.IsArray())
      for (auto& element : member->value.GetArray()) {
        EXPECT_EQ(element.MemberCount(), key.members.size()) << line;
        for (auto& inner : key.members) EXPECT_TRUE(element.HasMember(inner.name.c_str())) << line;
      }
    ++member;
  }
  ASSERT_EQ(member, written.MemberEnd()) << member->name.GetString() << " is not documented";
}

/// The output of each report, except special kinds, which need more than a source.
template <class Visit>
void each_output(OutputFormat format, Visit visit) {
  each(format, [&](auto& of, auto& config, auto seed) {
    const WordSet kinds{"event", "aggregate", "stacks", "snapshot"};
    if (!kinds.contains(std::string(of.tool.report->name()))) return;
    const Replayed replayed(of.tool, config, seed, 2);
    visit(of, config, replayed.lines);
  });
}

TEST(Replay, JsonIsAsDocumented) {
  std::size_t count = 0;
  each_output(OutputFormat::json, [&](auto& of, auto& config, auto& lines) {
    auto tool = of.tool;
    tool.other_reports.clear();
    auto kinds = json_kinds(tool);
    for (auto& line : lines) expect_documented(line, kinds, config);
    count += lines.size();
  });
  EXPECT_GT(count, 3000u);
}

std::size_t columns(const std::string& line) {
  bool quoted = false;
  std::size_t count = 1;
  for (char c : line) {
    quoted ^= c == '"';
    count += c == ',' && !quoted;
  }
  return count;
}

TEST(Replay, CsvHasTheColumnsOfItsHeader) {
  each_output(OutputFormat::csv, [&](auto& of, auto& config, auto& lines) {
    ASSERT_FALSE(lines.empty());
    std::string documented;
    auto keys = of.tool.report->csv();
    // Their number depends on the machine.
    const bool series = keys.back().name.ends_with("_N");
    if (series) keys.pop_back();
    for (auto& key : keys)
      if (config.holds(key.when)) documented += (documented.empty() ? "" : ",") + key.name;
    EXPECT_EQ(series ? lines[0].substr(0, documented.size()) : lines[0], documented);
    for (auto& line : lines) {
      ASSERT_EQ(columns(line), columns(lines[0])) << line;
      ASSERT_TRUE(fuzz::is_plain(line)) << line;
    }
  });
}

TEST(Replay, TextIsHarmless) {
  each_output(OutputFormat::text, [&](auto&, auto&, auto& lines) {
    for (auto& line : lines) ASSERT_TRUE(fuzz::is_plain(line)) << line;
  });
}

TEST(Replay, TitlesAreAsListed) {
  std::string all;
  for (auto& line : lines_of(places::data_text("titles.txt")))
    if (!line.starts_with('#')) all += line + ';';
  EXPECT_GT(std::ranges::count(all, ';'), 80);
  for (std::string_view rest = all; !rest.empty();) {
    const std::string line(take_until(rest, ';'));
    SCOPED_TRACE(line);
    const auto bar = line.find(" |");
    const bool first = line[bar + 2] == ' ';
    auto words = words_of(line.substr(0, bar));
    auto tool = build(*find_tool(words.at(0)));
    words.erase(words.begin());
    auto parsed = parse_command_line(tool, words);
    ASSERT_TRUE(parsed) << parsed.error().what;
    tool.report = chosen_report(tool, parsed->config);
    const Replayed replayed(tool, parsed->config, 1, first ? 1 : 9);
    ASSERT_FALSE(replayed.lines.empty());
    std::vector<Words> shown;
    for (auto& l : replayed.lines) shown.push_back(words_of(l));
    if (first) shown.resize(1);
    EXPECT_GT(std::ranges::count(shown, words_of(line.substr(bar + 3))), 0) << replayed.text;
  }
}

TEST(Replay, EveryRecordIsShownOrCountedInEachFormat) {
  each(OutputFormat::json, [&](auto& of, auto& config, auto seed) {
    if (of.tool.report->name() != "event") return;
    Config csv = config, limited = config;
    csv.format = OutputFormat::csv;
    limited.events.most = 3;
    const Replayed all(of.tool, config, seed), some(of.tool, limited, seed);
    EXPECT_EQ(Replayed(of.tool, csv, seed).lines.size(), all.lines.size() + 1);
    for (auto* replayed : {&all, &some}) {
      EXPECT_EQ(replayed->session.ledger.shown, replayed->lines.size());
      EXPECT_EQ(replayed->session.ledger.seen(), Replayed::kRecords);
    }
    EXPECT_EQ(some.lines.size(), std::min<std::size_t>(3, all.lines.size()));
  });
}

/// Counters by key, of all reports together.
std::map<std::string, std::map<std::string, std::uint64_t>> sums_of(const OfTool& of,
                                                                    const Replayed& replayed) {
  std::map<std::string, std::map<std::string, std::uint64_t>> sums;
  for (auto& text : replayed.lines) {
    auto line = parsed_json(text);
    std::string key;
    std::map<std::string, std::uint64_t> counters;
    for (auto& f : of.tool.report->fields()) {
      auto found = line.FindMember(std::string(f.key).c_str());
      if (found == line.MemberEnd()) continue;
      auto& value = found->value;
      // Differences that are limited to 0 in each interval.
      if (of.tool.name == "cachetop" && (f.key == "hits" || f.key == "read_ahead")) continue;
      if (is_key(f))
        key += value.IsString()   ? value.GetString()
               : value.IsUint64() ? std::to_string(value.GetUint64())
                                  : "?";
      else if (f.role == Role::counter && value.IsUint64())
        counters[std::string(f.key)] = value.GetUint64();
    }
    for (auto& [name, count] : counters) sums[key][name] += count;
  }
  return sums;
}

/// After this many readings, the source equals one that was read only then.
class InOne : public MadeSource {
 public:
  InOne(std::uint32_t seed, int readings) : MadeSource(seed, 0, 0), readings_(readings) {}
  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    auto inner = MadeSource::counters(std::move(shape));
    return std::unique_ptr<CounterSource>(std::make_unique<Last>(std::move(*inner), readings_));
  }

 private:
  struct Last : CounterSource {
    Last(std::unique_ptr<CounterSource> of, int times) : inner(std::move(of)), readings(times) {}
    Reading read(std::uint64_t now, Reading& largest) override {
      for (int i = 1; i < readings; i++) inner->read(now, largest);
      return inner->read(now, largest);
    }
    std::unique_ptr<CounterSource> inner;
    int readings;
  };
  int readings_;
};

TEST(Replay, IntervalsAddUp) {
  std::size_t compared = 0;
  each(OutputFormat::json, [&](auto& of, auto& config, auto seed) {
    if (of.tool.report->name() != "aggregate" || !of.tool.report->adds_up()) return;
    Config all = config;
    all.rows.top = 1'000'000;
    const Replayed some(of.tool, all, seed, 4);
    const Replayed one(of.tool, all, std::make_unique<InOne>(seed, 4), 1);
    EXPECT_EQ(sums_of(of, some), sums_of(of, one));
    EXPECT_EQ(some.session.ledger.seen(), one.session.ledger.seen());
    compared += some.lines.size();
  });
  EXPECT_GT(compared, 1000u);
}

TEST(Replay, EveryStackIsShown) {
  each(OutputFormat::json, [&](auto& of, auto& config, auto seed) {
    if (of.tool.report->name() != "stacks") return;
    const Replayed replayed(of.tool, config, seed);
    std::uint64_t count = 0;
    for (auto& text : replayed.lines) {
      auto line = parsed_json(text);
      ASSERT_TRUE(line.IsObject() && line.HasMember("count")) << text;
      count += line["count"].GetUint64();
    }
    EXPECT_GT(count, 0u);
    EXPECT_EQ(count, replayed.counted);
    EXPECT_EQ(replayed.session.ledger.shown, replayed.counted);
    EXPECT_GT(replayed.session.ledger.count[LEDGER_STACK_FAILED], 0u);
  });
}

}  // namespace
}  // namespace coretap::replay
