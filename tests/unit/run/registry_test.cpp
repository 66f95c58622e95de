// Rules that every tool's table keeps.
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

  /// A condition as Config::holds reads it.
  void expect_condition(std::string_view when) const {
    EXPECT_FALSE(when.ends_with('|')) << when;
    for (auto& word : options_of(when))
      EXPECT_TRUE(word == "task-filter" || has_option(word)) << "there is no option --" << word;
  }

  std::vector<Report> reports() const {
    std::vector<Report> all{tool.report};
    for (auto& other : tool.other_reports) all.push_back(other.report);
    return all;
  }

  std::vector<Field> fields() const {
    std::vector<Field> all;
    for (auto& report : reports())
      for (auto& f : report->fields()) all.push_back(f);
    return all;
  }
};

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// A fragment: lower case at its start (but for names such as I/O), no full stop.
void expect_fragment(std::string_view text, std::string_view where) {
  ASSERT_FALSE(text.empty()) << where;
  auto first = text.substr(0, text.find_first_of(" ,:;"));
  const bool capitalised =
      first.size() > 1 && isupper(static_cast<unsigned char>(first[0])) &&
      std::ranges::all_of(first.substr(1), [](unsigned char c) { return islower(c); });
  EXPECT_FALSE(capitalised) << where << " begins with a capital: " << text;
  EXPECT_FALSE(text.ends_with('.')) << where << " ends with a full stop: " << text;
  EXPECT_FALSE(text.starts_with(' ') || text.ends_with(' ')) << where << ": '" << text << "'";
  EXPECT_EQ(text.find("  "), std::string_view::npos) << where << " has two spaces: " << text;
  EXPECT_TRUE(is_ascii(text)) << where << " is not plain ASCII: " << text;
}

TEST_P(EveryTool, HasTheNameOfItsFile) {
  EXPECT_EQ(tool.name, GetParam()->name);
  EXPECT_EQ(tool.subsystem, GetParam()->subsystem);
  auto file = std::filesystem::path(places::source_dir()) / "src/tools" / tool.subsystem /
              fmt::format("{}.cpp", tool.name);
  EXPECT_TRUE(std::filesystem::exists(file)) << file;
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
    EXPECT_TRUE(std::all_of(o.name.begin(), o.name.end(),
                            [](char c) { return islower(c) || isdigit(c) || c == '-'; }));
    expect_fragment(o.doc, "doc");
    EXPECT_TRUE(o.apply);
    expect_condition(o.belongs_to);
    EXPECT_FALSE(says(o.belongs_to, o.name));
    EXPECT_FALSE(std::any_of(o.metavar.begin(), o.metavar.end(), [](char c) { return islower(c); }))
        << o.metavar;
    if (o.metavar.empty()) {
      EXPECT_TRUE(o.complete == Complete::nothing && !o.words) << "a flag has no value to complete";
    }
  }
  for (auto& [one, other] : tool.exclusive) {
    EXPECT_TRUE(has_option(one)) << one;
    EXPECT_TRUE(has_option(other)) << other;
    EXPECT_NE(one, other);
  }
}

/// The words of an example as a shell would pass them; redirections are the shell's.
Words shell_words(std::string_view command) {
  Words all;
  std::optional<std::string> word;
  bool redirection = false;
  char quote = 0;
  auto end = [&] {
    if (word && !redirection) all.push_back(*word);
    if (word) redirection = false;
    word.reset();
  };
  for (char c : command) {
    if (c == quote) {
      quote = 0;
    } else if (quote) {
      *word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      word = word.value_or("");
    } else if (c == ' ') {
      end();
    } else if (c == '|' || c == ';' || (c == '&' && !redirection)) {
      break;
    } else if (c == '>' || c == '<') {
      // The number before it names a descriptor.
      if (word && std::ranges::all_of(*word, isdigit)) word.reset();
      end();
      redirection = true;
    } else {
      word = word.value_or("") + c;
    }
  }
  end();
  EXPECT_EQ(quote, 0) << "a quote without its end: " << command;
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
  // Which users and disks there are is the machine's affair.
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
  EXPECT_LE(tool.questions.size(), 4u);
  for (auto& q : tool.questions) {
    SCOPED_TRACE(q.question);
    EXPECT_TRUE(q.question.ends_with('?'));
    EXPECT_TRUE(isupper(static_cast<unsigned char>(q.question.front())));
    EXPECT_LE(q.question.size(), 76u);
    EXPECT_TRUE(is_ascii(q.question));
    expect_parses(tool, q.command);
  }
}

TEST_P(EveryTool, HasHooksThatItsKernelProgramHas) {
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
        EXPECT_FALSE(parts.section(program).empty()) << "there is no program " << program;
      }
    }
  }
  for (auto& program : library_programs()) named.insert(program.name);
  for (auto& program : parts.programs)
    EXPECT_TRUE(named.contains(program.name)) << program.name << " belongs to no hook";
}

TEST_P(EveryTool, HasTheMapsThatItSizes) {
  auto parts = kernel_parts(tool);
  for (auto& size : tool.maps)
    EXPECT_TRUE(std::count(parts.maps.begin(), parts.maps.end(), size.map))
        << "no map " << size.map;
}

bool snake_case(std::string_view key) {
  return !key.empty() && islower(key[0]) && !key.ends_with('_') &&
         key.find("__") == std::string_view::npos &&
         std::all_of(key.begin(), key.end(),
                     [](char c) { return islower(c) || isdigit(c) || c == '_'; });
}

bool ends_with_any(std::string_view key, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](auto s) { return key.ends_with(s); });
}

TEST_P(EveryTool, HasFieldsThatSayWhatTheyAre) {
  for (auto& f : fields()) {
    SCOPED_TRACE(f.key);
    EXPECT_TRUE(snake_case(f.key));
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
      EXPECT_TRUE(f.key.ends_with("_ratio"));
    }
    // A column that shows a unit has one in its key.
    if (says(f.title, "(ms)") || says(f.title, "(us)")) {
      EXPECT_TRUE(ends_with_any(f.key, {"_ns", "_us", "_ms"}));
    }
    if (says(f.title, "KB") || says(f.title, "MB")) {
      EXPECT_TRUE(ends_with_any(f.key, {"_kb", "_mb", "_bytes", "_pages"}));
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
  for (auto& kind : json_kinds(tool)) {
    WordSet keys;
    for (auto& k : kind.keys) EXPECT_TRUE(keys.insert(k.name).second) << k.name << " twice";
  }
  WordSet columns;
  for (auto& k : tool.report->csv())
    EXPECT_TRUE(columns.insert(k.name).second) << k.name << " twice";
  for (auto& report : reports()) {
    // The same title in two forms, of which an option chooses one, is one column.
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
  for (auto& report : reports()) {
    EXPECT_FALSE(report->name().empty());
    EXPECT_FALSE(report->json().empty());
    EXPECT_FALSE(report->csv().empty());
    for (auto condition : report->conditions()) expect_condition(condition);
    // Tables name the keys that they sort by.
    Config config;
    config.sort = "no such key";
    auto checked = report->check(config);
    if (!checked) {
      EXPECT_EQ(checked.error().status, kUsage);
      EXPECT_FALSE(checked.error().hint.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryTool, testing::ValuesIn([] {
                           std::vector<const Registered*> all;
                           for (auto& entry : registry()) all.push_back(&entry);
                           return all;
                         }()),
                         [](auto& info) { return std::string(info.param->name); });

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
