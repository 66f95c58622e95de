// Command lines: accepted and rejected ones.
#include <iomanip>

#include "all_tools.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "docs/commands.hpp"

namespace coretap {
namespace {

/// The tool by any of its names, or a command.
Result<Invocation> parse(std::string_view name, const Words& words) {
  if (auto* command = find_command(name)) {
    Invocation invocation;
    auto rest = take_options(invocation, command_of(name), options_of(*command), words, {});
    return rest ? Result<Invocation>(invocation) : rest.error();
  }
  auto call = called(name);
  if (!call.tool) return Error{"no tool " + std::string(name)};
  return parse_command_line(build(call), words);
}

Config accepted(std::string_view tool, const Words& words) {
  auto result = parse(tool, words);
  EXPECT_TRUE(result) << tool << ": " << (result ? "" : result.error().what);
  return result ? result->config : Config();
}

/// The error message with its hint, as the user sees it.
std::string refused(std::string_view tool, const Words& words) {
  auto result = parse(tool, words);
  EXPECT_FALSE(result) << tool << " took it: " << testing::PrintToString(words);
  if (result) return {};
  EXPECT_EQ(result.error().status, kUsage) << result.error().what;
  return result.error().what + " | " + result.error().hint;
}

/// Expects that `option` of the tool with each of these values is rejected.
void refuses_each(std::string_view tool, const Words& option, const Words& values,
                  std::string_view part) {
  for (auto& value : values) {
    auto words = option;
    words.push_back(value);
    EXPECT_TRUE(says(refused(tool, words), part)) << tool << " " << value;
  }
}

/// The parsed command line, in words.
WordSet described(const Config& c) {
  WordSet all;
  auto add = [&](std::string_view name, const auto& value) {
    all.insert(fmt::format("{}={}", name, value));
  };
  auto list = [&](std::string_view name, const auto& of) {
    all.insert(fmt::format("{}={}", name, fmt::join(of, ",")));
  };
  for (auto& [name, value] : c.given_options()) {
    all.insert(name);
    add(name, value);
  }
  add("options", c.given_options().size());
  add("filters", int{c.filters_tasks()});
  constexpr std::string_view kFormats[] = {"text", "json", "csv"};
  add("format", kFormats[static_cast<int>(c.format)]);
  Words edits;
  for (auto& e : c.edits()) edits.push_back(fmt::format("{}:{}", e.value, e.target.size));
  list("edits", edits);
  for (auto& [name, ids] : {std::pair{"pids", &c.tasks.pids},
                            {"tids", &c.tasks.tids},
                            {"uids", &c.tasks.uids},
                            {"not_pids", &c.tasks.not_pids},
                            {"local", &c.flows.local_ports},
                            {"remote", &c.flows.remote_ports}})
    list(name, *ids);
  for (auto& [name, words] : {std::pair{"comms", &c.tasks.comms},
                              {"not_comms", &c.tasks.not_comms},
                              {"names", &c.tasks.names},
                              {"command", &c.command}})
    list(name, *words);
  for (auto& [name, text] :
       {std::pair{"cgroup", &c.tasks.cgroup}, {"svg", &c.files.svg}, {"heatmap", &c.files.heatmap}})
    add(name, *text);
  for (auto& [name, n] : {std::pair{"count", c.schedule.count},
                          {"period", c.sampling.period},
                          {"hz", c.sampling.hz},
                          {"max_keys", c.rows.max_keys},
                          {"max_rate", c.events.per_second},
                          {"rotate_bytes", c.files.rotate_bytes},
                          {"rotate_keep", c.files.rotate_keep},
                          {"ring_bytes", c.events.ring_bytes},
                          {"stack_depth", c.stacks.depth},
                          {"ip", c.flows.ip}})
    add(name, n);
  for (auto& note : c.notes) add("note", note);
  add("interval", c.schedule.interval);
  add("duration", c.schedule.duration);
  return all;
}

struct Listed {
  std::string line, tool, mark, rest;  ///< from peers.txt
  Words words;
};
/// Splits like a shell, with single quotes.
Words split(const std::string& text) {
  Words all;
  std::istringstream in(text);
  for (std::string word; in >> std::quoted(word, '\'');) all.push_back(word);
  return all;
}
std::vector<Listed> listed(const std::string& file) {
  std::vector<Listed> all;
  for (auto& line : lines_of(places::data_text(file))) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream parts(line);
    std::string tool;
    parts >> tool;
    parts.ignore(2, '|');
    for (std::string part, more; std::getline(parts, part, '|');) {
      // A bar between quotes belongs to a word.
      while (std::ranges::count(part, '\'') % 2 && std::getline(parts, more, '|'))
        part += '|' + more;
      auto mark = part.npos;
      for (auto* each : {" => ", " ~> ", " :: "}) mark = std::min(mark, part.find(each));
      Listed l{tool + part, tool, "", "", split(part.substr(0, mark))};
      if (mark != part.npos) {
        l.mark = part.substr(mark + 1, 2);
        l.rest = part.substr(mark + 4, part.find_last_not_of(' ') - mark - 3);
      }
      all.push_back(std::move(l));
    }
  }
  return all;
}

TEST(CommandLine, TakenOrRefusedAsListed) {
  for (auto& [file, least] : {std::pair{"command_lines.txt", 170u}, {"peers.txt", 1200u}}) {
    auto all = listed(file);
    EXPECT_GT(all.size(), least) << file;
    for (auto& l : all) {
      SCOPED_TRACE(l.line);
      if (l.mark == "=>" || (l.mark == "~>" && !parse(l.tool, l.words))) {
        EXPECT_TRUE(says(refused(l.tool, l.words), l.rest));
        continue;
      }
      auto said = described(accepted(l.tool, l.words));
      if (l.mark != "::") continue;
      for (auto& word : split(l.rest)) {
        auto noted = [&](auto& all) {  // a part of it
          return word.starts_with("note=") && all.starts_with("note=") && says(all, word.substr(5));
        };
        const bool there =
            said.contains(word.substr(word[0] == '!')) || std::ranges::any_of(said, noted);
        EXPECT_EQ(there, word[0] != '!') << word;
      }
    }
  }
}

TEST(CommandLine, BadValues) {
  refuses_each("runqlat", {"--pid"},
               {"", "0", "-1", "+1", "1,", ",1", "1,,2", "1 2", " 1", "1x", "0x10", "2147483648",
                "99999999999999999999", "1,2\n", "abc", "1;2"},
               "--pid");
  refuses_each("biolatency", {},
               {"", "0", "0.0", "x", "1x", "nan", "inf", "1e400", "2000000000", "1 ", "0x1"},
               "is not between 0.001 and 1e9 seconds");
  // A report each nanosecond is a typing error that would keep a CPU busy.
  for (auto& words : {Words{}, {"-i"}})
    refuses_each("biolatency", words, {"1e-300", "0.000000001", "1e-9ms"}, "is not between 0.001");
  refuses_each("biolatency", {"1"}, {"", "0", "1.5", "x", "1s", "18446744073709551616"},
               "COUNT: '");
  refuses_each("execsnoop", {"-o", "f", "--rotate"},
               {"0", "", "1023", "x", "1T", "-1", ",3", "1025G"}, "from 1K to 1024G");
  refuses_each("execsnoop", {"-o", "f", "--rotate"}, {"1M,0", "1M,100", "1M,", "1M,3,4", "1M,x"},
               "from 1 to 99");
  refuses_each("execsnoop", {"--max-rate"}, {"0", "1000000001", "x"}, "from 1 to 1000000000");
  refuses_each("offcputime", {"-m"},
               {"18446744073709552", "18446744073709551615", "18446744073709551616", "-1", "", "1k",
                " 1", "1 "},
               "--min-block-time");
  refuses_each("runqlat", {"-u"},
               {"", "4294967295", "4294967296", "-1", "no such user", "1:2", "../root", "1,", ",1"},
               "user");
  refuses_each("runqlat", {"--comm"}, {"", "a,", ",a", "a,,b"}, "--comm");
  refuses_each("drsnoop", {"--ring-size"},
               {"0", "2G", "-1", "", "K", "16777217T", "18446744073709551615G"}, "--ring-size");
  refuses_each("offcputime", {"--perf-max-stack-depth"}, {"0", "513", "x"}, "512");
  refuses_each("tcplife", {"-L"},
               {"0", "65536", "80,", "http", "-1", "", "5-4", "0-4", "1-65536", "1-", "-", "1-2-3"},
               "is not a list of ports or ranges");
  // Invalid characters in options are rejected.
  refuses_each("biolatency", {}, {"-:", "-;", "-\xff", "-\x1b", "---", "--=", "-W", "-Wfoo"}, "");
  EXPECT_FALSE(says(refused("biolatency", {"--something-else"}), "did you mean"));
  Words many;
  for (int i = 0; i < 4; i++) many.insert(many.end(), {"-n", "123456789012345"});
  EXPECT_EQ(accepted("drsnoop", many).tasks.names.size(), 4u);
  many.push_back("-n");
  refuses_each("drsnoop", many, {"12345"}, "64 bytes");
}

TEST(CommandLine, ParsesTwice) {
  // getopt keeps state between calls; a failure within a bundle must not leak.
  refused("biolatency", {"-mXT"});
  auto c = accepted("biolatency", {"-D", "1"});
  EXPECT_TRUE(c.given("disks"));
  EXPECT_FALSE(c.given("timestamp"));
  EXPECT_EQ(c.schedule.interval, 1);
}

TEST(CommandLine, HelpAndVersionAskForNothingElse) {
  for (auto& [words, what] :
       {std::pair{Words{"--help", "these", "are", "not", "read"}, Invocation::help},
        {{"-V"}, Invocation::version},
        {{"-h", "--json", "--csv"}, Invocation::help},
        {{"-?"}, Invocation::help},  // as in argp
        {{"--usage"}, Invocation::usage}}) {
    auto r = parse("biolatency", words);
    ASSERT_TRUE(r) << words[0];
    EXPECT_EQ(r->what, what) << words[0];
  }
}

TEST(PeersCommandLines, ToolsOfPeersSayWhatDiffers) {
  WordSet tools;
  for (auto& l : listed("peers.txt"))
    if (auto* tool = called(l.tool).tool) tools.emplace(tool->name);
  std::size_t differ = 0;
  for (auto& tool : all_tools()) {
    // A tool that agrees with its peers completely has rows only.
    differ += !tool.differs.empty();
    EXPECT_TRUE(tool.differs.empty() || tools.contains(std::string(tool.name))) << tool.name;
    for (auto& d : tool.differs) EXPECT_TRUE(d.what.ends_with('.')) << tool.name << d.what;
  }
  EXPECT_GE(differ, 45u);
}

TEST(CommandLine, NamesWithAnotherMeaningElsewhereHaveANote) {
  auto notes = [](std::string_view tool, const Words& words) {
    return accepted(tool, words).notes.size();
  };
  EXPECT_EQ(notes("tcpstates", {"--timestamp"}), 1u);
  EXPECT_EQ(notes("tcpstates", {"-t"}), 0u);
  EXPECT_EQ(notes("hardirqs", {"-C"}), 1u);
  EXPECT_EQ(notes("hardirqs", {"--per-cpu"}), 0u);
  EXPECT_EQ(notes("fsslower", {"-c"}), 1u);
  EXPECT_EQ(notes("fsslower", {"--output-format", "csv"}), 0u);
  for (auto& tool : all_tools())
    for (auto& [letter, name, note, unless] : tool.other_meanings) {
      SCOPED_TRACE(std::string(tool.name) + letter + std::string(name));
      EXPECT_TRUE(name.empty() || has_option(tool, name));
      EXPECT_TRUE(!letter || std::ranges::count(all_options(tool), letter, &Option::letter));
    }
}

/// True if a tool or command has the option, by any of its names or the beginning of one, or says
/// what to use instead.
bool answers(const std::vector<Option>& options, std::vector<Elsewhere> elsewhere,
             std::string_view typed) {
  elsewhere.insert(elsewhere.end(), refused_by_all().begin(), refused_by_all().end());
  std::string name(typed.substr(typed.find_first_not_of('-')));
  std::ranges::replace(name, '_', '-');
  const char letter = typed.starts_with("--") ? '\0' : name[0];
  auto begins = [&](std::string_view known) { return !letter && known.starts_with(name); };
  auto has = [&](auto& o) {
    return letter ? o.letter == letter || o.alias_letter == letter
                  : std::ranges::any_of(o.names(), begins);
  };
  auto refuses = [&](auto& e) {
    std::string theirs(e.name);
    std::ranges::replace(theirs, '_', '-');
    return !e.instead.empty() && (letter ? e.letter == letter : theirs == name);
  };
  return typed == "-?" || typed == "--usage" || std::ranges::any_of(options, has) ||
         std::ranges::any_of(elsewhere, refuses);
}

TEST(PeersOptions, AreTakenOrHaveAnAnswer) {
  std::size_t n = 0;
  for (auto& line : lines_of(places::data_text("peer_options.txt"))) {
    std::istringstream rows(line.starts_with('#') ? std::string() : line);
    for (std::string row; std::getline(rows, row, '|');) {
      auto options = split(row);
      const auto name = options.front();
      options.erase(options.begin());
      auto call = called(name);
      auto* command = find_command(name);
      ASSERT_TRUE(call.tool || command) << name;
      auto tool = call.tool ? build(*call.tool) : Tool();
      auto own = command ? options_of(*command) : all_options(tool);
      for (auto& option : options) {
        n++;
        EXPECT_TRUE(answers(own, tool.elsewhere, option)) << name << ' ' << option;
        auto parsed = parse(name, {option});
        for (auto* part : {"unknown option", "ambiguous"})
          EXPECT_TRUE(parsed || !says(parsed.error().what, part)) << name << ' ' << option;
      }
    }
  }
  EXPECT_GT(n, 1800u);
}

// As in the peers that have it: -d is the duration, unless the tool or a peer of its name uses it
// for something else.
TEST(CommandLine, DurationHasItsLetterWhereThatIsFree) {
  for (auto& tool : all_tools()) {
    auto other = [](auto& o) { return o.letter == 'd' && o.name != "duration"; };
    auto alias = [](auto& o) { return o.alias_letter == 'd'; };
    auto options = all_options(tool);
    const bool taken = std::ranges::any_of(options, other) || std::ranges::any_of(options, alias) ||
                       std::ranges::any_of(tool.elsewhere, other);
    auto duration = std::ranges::find(options, "duration", &Option::name);
    ASSERT_NE(duration, options.end()) << tool.name;
    if (tool.name != "oomkill") {
      EXPECT_EQ(duration->letter == 'd', !taken) << tool.name;
    }
  }
  EXPECT_EQ(accepted("execsnoop", {"-d", "3"}).schedule.duration, 3);
}

TEST(CommandLine, FlameGraphsAreOfStacks) {
  const WordSet of_stacks{"stacks", "outstanding", "accounts"};
  for (auto& tool : all_tools())
    EXPECT_EQ(has_option(tool, "svg"),
              std::ranges::any_of(
                  reports_of(tool),
                  [&](auto& report) { return of_stacks.contains(std::string(report->name())); }))
        << tool.name;
}

// A number that only the loader reads is not in the kernel program.
TEST(CommandLine, NumberWithoutSetting) {
  auto option = number('n', "lines", "N", "lines", {});
  Config c;
  EXPECT_TRUE(option.apply(c, "5"));
  EXPECT_TRUE(c.edits().empty());
}

TEST(ParseUnsigned, WholeTextOrNothing) {
  EXPECT_EQ(parse_unsigned("0"), 0u);
  EXPECT_EQ(parse_unsigned("007"), 7u);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), UINT64_MAX);
  for (auto bad : {""sv, " "sv, " 1"sv, "1 "sv, "-1"sv, "+1"sv, "1.0"sv, "1e3"sv, "0x1"sv, "1\0"sv,
                   "\0001"sv, "18446744073709551616"sv, "\xd9\xa1"sv, "1,000"sv})
    EXPECT_FALSE(parse_unsigned(bad)) << bad;
  EXPECT_FALSE(parse_unsigned(std::string(100000, '9')));
}

TEST(ParseSeconds, Units) {
  for (auto& [text, seconds] : std::map<std::string, double>{
           {"2", 2}, {"0.5", .5}, {"100ms", .1}, {"3s", 3}, {"2m", 120}, {"1.5h", 5400}, {"0", 0}})
    EXPECT_EQ(parse_seconds(text), seconds) << text;
  for (auto bad : {""sv,      "s"sv,     "ms"sv,  " 1"sv,    "1 s"sv, "1S"sv,   "-1"sv,
                   "+1"sv,    "1d"sv,    "1us"sv, "nan"sv,   "inf"sv, "-inf"sv, "infinity"sv,
                   "1e999"sv, "0x1p3"sv, "1,5"sv, "1.2.3"sv, "1\0"sv, "1m "sv})
    EXPECT_FALSE(parse_seconds(bad)) << bad;
  auto huge = parse_seconds("1e308h");
  EXPECT_TRUE(!huge || std::isfinite(*huge)) << "a time, or none";
}

TEST(ParseSize, Suffixes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("8M"), 8u << 20);
  EXPECT_EQ(parse_size("3g"), 3ull << 30);
  EXPECT_EQ(parse_size("17179869183G"), 17179869183ull << 30);
  for (auto* bad : {"", "K", "M", "1KK", "1 K", "1.5M", "-1K", "1T", "1B", "17179869184G",
                    "18014398509481984K", "18446744073709551616", "0x10K"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

// Other texts are no conditions, and texts are no names of a kernel object: they do not compile.
template <std::size_t Size>
struct Text {
  char chars[Size];
  consteval Text(const char (&text)[Size]) { std::copy_n(text, Size, chars); }
};
template <Text T>
concept is_condition = requires {
  typename std::bool_constant<(When(T.chars), true)>;
};
static_assert(is_condition<""> && is_condition<"a"> && is_condition<"!a|b-c"> &&
              is_condition<"a|!b"> && is_condition<"a=b|c">);
static_assert(!is_condition<"a||b"> && !is_condition<"a |b"> && !is_condition<"|a"> &&
              !is_condition<"a|"> && !is_condition<"!!a"> && !is_condition<"a!b"> &&
              !is_condition<"a="> && !is_condition<"--a">);
static_assert(!std::is_convertible_v<const char*, ProgramName> &&
              !std::is_convertible_v<std::string_view, MapName> &&
              !std::is_constructible_v<MapName, ProgramName>);

TEST(ConfigConditions, OptionsAndNegation) {
  Config c;
  c.give("json", "");
  for (auto yes : std::initializer_list<When>{"", "json", "!csv", "csv|json", "json|csv"})
    EXPECT_TRUE(c.holds(yes)) << yes;
  for (auto no : std::initializer_list<When>{"!json", "csv", "csv|strict", "jso"})
    EXPECT_FALSE(c.holds(no)) << no;
}

TEST(ConfigConditions, WordsOfAList) {
  Config c;
  c.give("only", "sched,irq");
  for (auto yes : std::initializer_list<When>{"only=sched", "only=irq", "only=block|only=irq",
                                              "!only=block", "csv|only=sched"})
    EXPECT_TRUE(c.holds(yes)) << yes;
  for (auto no : std::initializer_list<When>{"only=block", "only=sch", "!only=irq", "other=sched"})
    EXPECT_FALSE(c.holds(no)) << no;
}

TEST(ConfigConditions, TaskFilter) {
  EXPECT_FALSE(Config().holds("task-filter"));
  EXPECT_TRUE(Config().holds("!task-filter"));
  for (auto* words :
       {"-p1", "-t1", "-u0", "--comm x", "-c 1", "-- true", "--not-pid 1", "--not-comm x"}) {
    auto c = accepted("biolatency", words_of(words));
    EXPECT_TRUE(c.holds("task-filter") && c.holds("queued|task-filter")) << words;
    EXPECT_FALSE(c.holds("!task-filter")) << words;
  }
}

TEST(OwnSettings, AreOneValueThatIsCopiedToo) {
  struct Settings {
    int number = 7;
  };
  Config c;
  EXPECT_EQ(std::as_const(c).own<Settings>().number, 7) << "no option has said anything";
  c.own<Settings>().number = 8;
  c.own<Settings>().number++;
  auto copy = c;
  c.own<Settings>().number = 0;
  EXPECT_EQ(std::as_const(copy).own<Settings>().number, 9);
  EXPECT_EQ(copy.own<std::string>(), "") << "of another part of the tool";
}

TEST(Reports, AreChosenByAnOption) {
  auto tool = build(*find_tool("tcpretrans"));
  EXPECT_EQ(chosen_report(tool, accepted("tcpretrans", {}))->name(), "event");
  EXPECT_EQ(chosen_report(tool, accepted("tcpretrans", {"-c"}))->name(), "aggregate");
}

/// Appends arguments to Config::svg, each after a blank.
Positional word(std::string_view metavar, Positional::Repeat repeat) {
  return {.metavar = metavar,
          .doc = "a word",
          .repeat = repeat,
          .apply = [](Config& c, std::string_view text) -> Result<void> {
            c.files.svg += ' ' + std::string(text);
            return {};
          }};
}

/// The parsed arguments, or the error.
std::string taken(std::vector<Positional> positionals, const Words& words) {
  Tool tool{.name = "thing", .positionals = std::move(positionals)};
  auto r = parse_command_line(tool, words);
  if (r) return r->config.files.svg;
  EXPECT_EQ(r.error().status, kUsage);
  return r.error().what;
}

std::string usage(std::vector<Positional> positionals) {
  return synopsis(Tool{.name = "thing", .positionals = std::move(positionals)});
}

const auto kPattern = word("PATTERN", Positional::required);
const auto kMaybe = word("MAYBE", Positional::optional);

TEST(Positionals, RequiredAndOptional) {
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a"}), " a");
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a", "b"}), " a b");
  EXPECT_EQ(taken({kPattern, kMaybe}, {"a", "b", "c"}), "unexpected argument 'c'");
  EXPECT_EQ(taken({kPattern, kMaybe}, {}), "PATTERN is missing");
  EXPECT_EQ(taken({}, {"a"}), "unexpected argument 'a'");
  EXPECT_EQ(taken({}, {}), "");
}

TEST(Positionals, Repeated) {
  auto any = word("WORD", Positional::any_number), some = word("WORD", Positional::at_least_one);
  EXPECT_EQ(taken({any}, {}), "");
  EXPECT_EQ(taken({any}, {"a", "b", "c"}), " a b c");
  EXPECT_EQ(taken({kPattern, some}, {"a", "b", "c"}), " a b c");
  EXPECT_EQ(taken({kPattern, some}, {"a"}), "WORD is missing");
  EXPECT_EQ(usage({kPattern, some}), "[OPTIONS] PATTERN WORD... [-- COMMAND ARGS...]");
}

TEST(Positionals, Synopsis) {
  EXPECT_EQ(usage({}), "[OPTIONS] [-- COMMAND ARGS...]");
  EXPECT_EQ(usage(shared::interval_count()), "[OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ARGS...]");
  EXPECT_EQ(usage({kPattern, shared::duration_argument()}),
            "[OPTIONS] PATTERN [DURATION] [-- COMMAND ARGS...]");
  EXPECT_EQ(usage({word("WORD", Positional::any_number)}),
            "[OPTIONS] [WORD...] [-- COMMAND ARGS...]");
}

TEST(Positionals, TheErrorOfOneEndsIt) {
  auto picky = word("PICKY", Positional::any_number);
  picky.apply = [](Config&, std::string_view text) -> Result<void> {
    if (text == "b") return Error{"not b", {}, {}, kUsage};
    return {};
  };
  EXPECT_EQ(taken({picky}, {"a", "b", "c"}), "not b");
}

TEST(Positionals, AnArgumentOrItsOption) {
  Tool tool{.name = "thing", .positionals = shared::interval_count(5)};
  auto interval = [&](const Words& words) {
    auto r = parse_command_line(tool, words);
    return r ? r->config.schedule.interval : -1;
  };
  EXPECT_EQ(interval({}), 5);
  EXPECT_EQ(interval({"2"}), 2);
  EXPECT_EQ(interval({"-i", "3"}), 3) << "an option is not overwritten by the default";
  EXPECT_EQ(taken(tool.positionals, {"-i", "3", "2"}),
            "INTERVAL '2' and --interval cannot be used together");
  EXPECT_EQ(taken(tool.positionals, {"2", "0"}),
            "COUNT: '0' is not a number from 1 to 18446744073709551615");
  EXPECT_EQ(taken({shared::duration_argument()}, {"--duration", "3", "2"}),
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
  EXPECT_EQ(value({"0.5"}), 500'000u);
  EXPECT_EQ(value({"18446744073709"}), 18446744073709'000'000u);
  for (auto* bad : {"18446744073710", "-1", "x", "", "10ms"}) {
    EXPECT_EQ(taken(tool.positionals, {"-v", bad}),
              bad[0] == '-'
                  ? "unknown option -1"
                  : "MIN_MS: '" + std::string(bad) + "' is not a number from 0 to 18446744073709");
  }
  EXPECT_EQ(arguments(tool).at(0).doc, "only slower ones (default: 10)");
}

// Optional arguments come last, and only the last one may repeat.
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
