// Rules for every tool's table.
#include <cctype>

#include "all_tools.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "docs/commands.hpp"
#include "docs/man.hpp"
#include "program/attach.hpp"
#include "program/load.hpp"
#include "text/json_kinds.hpp"

namespace coretap {
namespace {

class EveryTool : public testing::TestWithParam<const Registered*> {
 protected:
  Tool tool = build(*GetParam());

  bool has_option(std::string_view name) const { return coretap::has_option(tool, name); }

  /// A condition as parsed by Config::holds.
  void expect_condition(std::string_view when) const {
    for (auto& word : options_of(when))
      EXPECT_TRUE(word == "task-filter" || has_option(word)) << "there is no option --" << word;
  }

  std::vector<Field> fields() const {
    std::vector<Field> all;
    for (auto& report : reports_of(tool))
      for (auto& f : report->fields()) all.push_back(f);
    return all;
  }
};

bool matches(std::string_view text, const char* pattern) {
  static std::map<std::string_view, std::regex> known;
  return std::regex_match(text.begin(), text.end(),
                          known.try_emplace(pattern, pattern).first->second);
}

/// A fragment: starts with lower case (except names such as I/O), no full stop.
void expect_fragment(std::string_view text, std::string_view where) {
  ASSERT_FALSE(text.empty()) << where;
  EXPECT_FALSE(matches(text, "[A-Z][a-z]+([ ,:;].*)?")) << where << " has a capital: " << text;
  EXPECT_FALSE(text.ends_with('.')) << where << " ends with a full stop: " << text;
  EXPECT_FALSE(matches(text, " .*|.* |.*  .*")) << where << " has blanks: '" << text << "'";
  EXPECT_TRUE(matches(text, "[ -~]*")) << where << " is not plain ASCII: " << text;
}

TEST_P(EveryTool, HasTheNameOfItsFile) {
  EXPECT_EQ(tool.name, GetParam()->name);
  EXPECT_EQ(tool.subsystem, GetParam()->subsystem);
  EXPECT_TRUE(fs::exists(
      fmt::format("{}/src/tools/{}/{}.cpp", places::source_dir(), tool.subsystem, tool.name)));
}

TEST_P(EveryTool, TellsWhatItIs) {
  expect_fragment(tool.summary, "summary");
  EXPECT_LE(tool.summary.size(), 72u) << tool.summary;
  EXPECT_FALSE(tool.description.empty());
  EXPECT_TRUE(tool.description.ends_with('.')) << tool.description;
  expect_fragment(tool.overhead, "overhead");
  EXPECT_FALSE(tool.announce.empty());
  EXPECT_FALSE(tool.announce.ends_with('.'));
}

TEST_P(EveryTool, HasUnambiguousOptions) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (auto& o : all_options(tool)) {
    EXPECT_TRUE(names.insert(o.name).second) << "--" << o.name << " twice";
    if (!o.alias.empty()) {
      EXPECT_TRUE(names.insert(o.alias).second) << "--" << o.alias << " twice";
    }
    if (!o.letter) continue;
    EXPECT_TRUE(letters.insert(o.letter).second) << "-" << o.letter << " twice";
    EXPECT_TRUE(isascii(o.letter) && isalnum(o.letter)) << "-" << o.letter;
  }
}

TEST_P(EveryTool, HasWellFormedOptions) {
  for (auto& o : all_options(tool)) {
    SCOPED_TRACE(o.name);
    EXPECT_TRUE(matches(o.name, "[a-z0-9-]+"));
    expect_fragment(o.doc, "doc");
    EXPECT_TRUE(o.apply);
    expect_condition(o.belongs_to);
    EXPECT_FALSE(says(o.belongs_to, o.name));
    EXPECT_TRUE(matches(o.metavar, "[^a-z]*")) << o.metavar;
    if (o.metavar.empty()) {
      EXPECT_TRUE(o.complete == Complete::nothing && !o.words) << "a flag has no value to complete";
    }
  }
  for (auto& other : tool.other_meanings) expect_condition(other.unless);
  for (auto& [one, other] : tool.exclusive) {
    EXPECT_TRUE(has_option(one)) << one;
    EXPECT_TRUE(has_option(other)) << other;
    EXPECT_NE(one, other);
  }
}

/// Splits an example like a shell, without redirections, up to the end of the command.
Words shell_words(std::string_view command) {
  static const std::regex part(R"(([0-9]*[<>]+&?\s*\S+)|([|;&])|('[^']*'|"[^"]*"|[^\s'"|;&<>])+)");
  Words all;
  for (std::cregex_iterator m(command.begin(), command.end(), part), end; m != end; ++m) {
    if ((*m)[2].matched) break;
    if (!(*m)[1].matched)
      all.push_back(std::regex_replace(m->str(), std::regex("'([^']*)'|\"([^\"]*)\""), "$1$2"));
  }
  return all;
}

TEST(ShellWords, AreAsAShellHasThem) {
  EXPECT_EQ(shell_words("a -b 'c d' \"e\" ''"), (Words{"a", "-b", "c d", "e", ""}));
  EXPECT_EQ(shell_words("a 2>/dev/null b >out c > out d"), (Words{"a", "b", "c", "d"}));
  EXPECT_EQ(shell_words("a b | c d"), (Words{"a", "b"}));
  EXPECT_EQ(shell_words("a -- b -c > out"), (Words{"a", "--", "b", "-c"}));
}

void expect_parses(const Tool& tool, std::string_view command) {
  auto words = shell_words(command);
  ASSERT_FALSE(words.empty());
  EXPECT_EQ(words[0], tool.name);
  words.erase(words.begin());
  // Users and disks depend on the machine.
  auto machine = tool;
  for (auto& o : machine.options)
    if (o.complete == Complete::disk || o.complete == Complete::user)
      o.apply = [](Config&, std::string_view) -> Result<void> { return {}; };
  auto parsed = parse_command_line(machine, words);
  EXPECT_TRUE(parsed) << parsed.error().what << ": " << parsed.error().why;
}

TEST_P(EveryTool, HasExamplesThatParse) {
  EXPECT_GE(tool.examples.size(), 2u);
  for (auto& example : tool.examples) {
    SCOPED_TRACE(example.command);
    expect_fragment(example.meaning, "meaning");
    expect_parses(tool, example.command);
  }
}

TEST_P(EveryTool, AnswersQuestions) {
  EXPECT_GE(tool.questions.size(), 1u);
  EXPECT_LE(tool.questions.size(), 5u);
  for (auto& q : tool.questions) {
    SCOPED_TRACE(q.question);
    EXPECT_TRUE(matches(q.question, "[A-Z][ -~]{1,74}[?]"));
    expect_parses(tool, q.command);
  }
}

TEST_P(EveryTool, HasHooksAndMapsThatItsKernelProgramHas) {
  if (tool.object.compressed.empty()) {
    EXPECT_FALSE(tool.report->has_program());
    EXPECT_TRUE(tool.hooks.empty());
    return;
  }
  auto parts = kernel_parts(tool);
  ASSERT_FALSE(parts.programs.empty()) << "the kernel program cannot be opened";
  EXPECT_FALSE(tool.hooks.empty());
  std::set<std::string_view> named;
  for (auto& hook : tool.hooks) {
    SCOPED_TRACE(hook.name);
    expect_fragment(hook.name, "hook");
    expect_condition(hook.when);
    if (!hook.optional.empty()) expect_fragment(hook.optional, "optional");
    EXPECT_FALSE(hook.candidates.empty());
    for (auto& way : hook.candidates) {
      EXPECT_FALSE(way.programs.empty() && way.needs.empty()) << "a way of nothing";
      if (!way.caveat.empty()) expect_fragment(way.caveat, "caveat");
      for (auto program : way.programs) {
        named.insert(program);
        EXPECT_FALSE(parts.section(program).empty()) << "there is no program " << program.c_str();
      }
    }
  }
  for (auto& program : library_programs()) named.insert(program.name);
  for (auto& program : parts.programs)
    EXPECT_TRUE(named.contains(program.name)) << program.name << " belongs to no hook";
  for (auto& size : tool.maps) {
    EXPECT_TRUE(std::ranges::count(parts.maps, size.map.c_str())) << "no map " << size.map.c_str();
    expect_condition(size.when);
  }
}

TEST_P(EveryTool, HasFieldsThatSayWhatTheyAre) {
  for (auto& f : fields()) {
    SCOPED_TRACE(f.key);
    EXPECT_TRUE(matches(f.key, "[a-z][a-z0-9]*(_[a-z0-9]+)*"));
    expect_fragment(f.doc, "doc");
    EXPECT_TRUE(f.read);
    expect_condition(f.shown_with);
    expect_condition(f.only_with);
    for (auto& [title, option] :
         {std::pair{f.millisecond_title, "milliseconds"}, {f.nanosecond_title, "nanoseconds"}})
      EXPECT_TRUE(title.empty() || (has_option(option) && f.format.kind == Format::microseconds))
          << option;
    if (f.format.kind == Format::milliseconds) {
      EXPECT_TRUE(f.key.ends_with("_ns"));
      EXPECT_TRUE(f.title.find("ms") != f.title.npos || f.title == "MS") << f.title;
    }
    if (f.format.kind == Format::percent) {
      EXPECT_TRUE(f.key.ends_with("_ratio") && says(f.title, "%")) << f.title;
    }
    // A column that shows a unit has one in its key.
    if (says(f.title, "(ms)") || says(f.title, "(us)")) {
      EXPECT_TRUE(matches(f.key, ".*_[num]s"));
    }
    if (says(f.title, "KB") || says(f.title, "MB")) {
      EXPECT_TRUE(matches(f.key, ".*_(kb|mb|bytes|pages)"));
    }
    EXPECT_FALSE(f.format.kind == Format::enumerator && f.format.type.empty());
  }
}

TEST_P(EveryTool, ListsWhatItSays) {
  EXPECT_EQ(has_option("list"), tool.list != nullptr);
  if (tool.list) {
    EXPECT_TRUE(tool.list({}).ends_with('\n'));
  }
}

TEST_P(EveryTool, WritesEachKeyOnce) {
  auto kinds = json_kinds(tool);
  for (auto& key : kinds.back().keys) EXPECT_NE(key.doc, "") << key.name;
  for (auto& kind : kinds) {
    WordSet keys;
    for (auto& k : kind.keys) EXPECT_TRUE(keys.insert(k.name).second) << k.name << " twice";
  }
  WordSet columns;
  for (auto& k : tool.report->csv())
    EXPECT_TRUE(columns.insert(k.name).second) << k.name << " twice";
  for (auto& report : reports_of(tool)) {
    // The same title in two forms, one of which an option selects, is one column.
    std::map<std::string_view, std::string> titles;
    for (auto& f : report->fields()) {
      if (f.title.empty()) continue;
      auto [other, fresh] = titles.try_emplace(f.title, std::string(f.shown_with));
      EXPECT_TRUE(fresh || "!" + other->second == f.shown_with ||
                  other->second == fmt::format("!{}", f.shown_with))
          << f.title << " twice";
    }
  }
}

TEST_P(EveryTool, HasAReportThatIsComplete) {
  for (auto& other : tool.other_reports) EXPECT_TRUE(has_option(other.when)) << other.when;
  for (auto& report : reports_of(tool)) {
    EXPECT_FALSE(report->name().empty());
    EXPECT_FALSE(report->json().empty());
    EXPECT_FALSE(report->csv().empty());
    for (auto condition : report->conditions()) expect_condition(condition);
    // Tables name their sort keys.
    Config config;
    config.rows.sort = "no such key";
    auto checked = report->check(config);
    if (!checked) {
      EXPECT_EQ(checked.error().status, kUsage);
      EXPECT_FALSE(checked.error().hint.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryTool, each_registered(), name_of_registered);

TEST(Registry, NamesAndQuestionsAreUnique) {
  std::set<std::string_view> names, asked;
  for (auto& entry : registry()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " twice";
    EXPECT_EQ(find_tool(entry.name), &entry);
    EXPECT_EQ(find_command(entry.name), nullptr) << entry.name << " is a command";
    EXPECT_NE(entry.name, "coretap");
    for (auto& q : build(entry).questions)
      EXPECT_TRUE(asked.insert(q.question).second) << entry.name << ": " << q.question;
  }
  EXPECT_EQ(find_tool("no such tool"), nullptr);
}

TEST(Registry, ThisBuildHasAllTools) {
  EXPECT_TRUE(tools_left_out().empty());
  EXPECT_FALSE(is_left_out("runqlat"));
  EXPECT_EQ(tools_in_build(), "");
  auto error = no_such_tool("runqla");
  EXPECT_EQ(error.what, "there is no tool 'runqla'");
  EXPECT_EQ(error.hint,
            "did you mean 'runqlat'? coretap list shows all tools, coretap --help all commands");
  EXPECT_EQ(error.status, kUsage);
}

TEST(Registry, LongOptionsAreTheSameEverywhere) {
  struct First {
    std::string_view tool;
    std::string metavar;
    bool shared;
  };
  std::map<std::string, First> first;
  for (auto& entry : registry())
    for (auto& o : all_options(build(entry))) {
      auto [known, fresh] = first.try_emplace(std::string(o.name),
                                              First{entry.name, std::string(o.metavar), o.shared});
      if (fresh) continue;
      EXPECT_EQ(o.metavar, known->second.metavar)
          << "--" << o.name << " of " << entry.name << " and of " << known->second.tool;
      EXPECT_EQ(o.shared, known->second.shared) << "--" << o.name << " is the library's in one of "
                                                << entry.name << " and " << known->second.tool;
    }
}

}  // namespace
}  // namespace coretap
