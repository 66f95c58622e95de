// Generated documents: as in tests/golden, and consistent with the reporters' output.
#include "all_tools.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "docs/commands.hpp"
#include "docs/documents.hpp"
#include "docs/man.hpp"
#include "docs/mdoc.hpp"
#include "kernel/kernel.hpp"
#include "program/session.hpp"
#include "reports/histogram.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"
#include "text/json_kinds.hpp"

namespace coretap {
namespace {

/// "line 12: opensnoop event...: 'old' has become 'new'", or empty: the first word that differs.
std::string first_difference(const std::string& golden, const std::string& now) {
  auto a = lines_of(golden), b = lines_of(now);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); i++) {
    auto old = i < a.size() ? a[i] : "(end)", fresh = i < b.size() ? b[i] : "(end)";
    if (old == fresh) continue;
    auto was = words_of(old), is = words_of(fresh);
    auto [one, other] = std::ranges::mismatch(was, is);
    return fmt::format("line {}: {}...: '{}' has become '{}'", i + 1, old.substr(0, old.find(':')),
                       one == was.end() ? "(end)" : *one, other == is.end() ? "(end)" : *other);
  }
  return golden == now ? "" : "line ends differ";
}

/// All keys of JSON lines, including nested objects, with each of their types.
using KeyTypes = std::map<std::string, std::map<std::string, std::string>>;
void add_types(KeyTypes& all, const std::vector<OutputKey>& keys, const std::string& where) {
  for (auto& k : keys) {
    auto type = k.type.substr(0, k.type.find(" or null"));
    all[k.name].emplace(type, where);
    add_types(all, k.members, where);
  }
}

// A program that reads lines of several tools into one table has one column per key.
TEST(Json, AKeyHasOneTypeInAllTools) {
  KeyTypes all;
  for (auto& tool : all_tools()) {
    for (auto& kind : json_kinds(tool))
      add_types(all, kind.keys, fmt::format("{} of {}", kind.type, tool.name));
  }
  EXPECT_GT(all.size(), 100u);
  for (auto& [name, types] : all) {
    std::string words;
    for (auto& [type, where] : types) words += fmt::format("{} in {}; ", type, where);
    EXPECT_EQ(types.size(), 1u) << name << " is " << words;
  }
  EXPECT_EQ(all["error"].begin()->first, "string");
}

TEST(Golden, DocumentsAreAsRecorded) {
  fs::path golden = fs::path(places::source_dir()) / "tests/golden";
  ASSERT_TRUE(fs::exists(golden)) << "scripts/golden makes it";
  auto all = golden_documents();
  for (auto& [path, text] : all) {
    EXPECT_TRUE(fs::exists(golden / path)) << path << " is new: run scripts/golden";
    if (fs::exists(golden / path)) {
      EXPECT_EQ(first_difference(places::file_text(golden / path), text), "")
          << path << ": run scripts/golden";
    }
  }
  for (auto& entry : fs::recursive_directory_iterator(golden))
    if (entry.is_regular_file()) {
      auto path = fs::relative(entry.path(), golden).generic_string();
      EXPECT_TRUE(all.contains(path)) << path << " is stale: run scripts/golden";
    }
}

TEST(Golden, AllToolsAreInTheTable) {
  EXPECT_TRUE(says(places::file_text(fs::path(places::source_dir()) / "docs/tools.md"),
                   "<!-- tools -->\n" + tool_table() + "<!-- /tools -->"))
      << "run scripts/golden";
}

// A reader of README.md wants to know what this is within a screen.
TEST(Documents, ReadmeIsShort) {
  EXPECT_LE(fs::file_size(fs::path(places::source_dir()) / "README.md"), 12'000u);
}

TEST(Documents, FitATerminal) {
  auto all = overview();
  for (auto& tool : all_tools()) all += help_text(tool);
  for (auto& command : commands()) all += help_text(command);
  for (auto& line : lines_of(all))  // a command line stays in one line, to be copied
    EXPECT_TRUE(line.size() <= 80 || line.starts_with("  coretap ")) << line;
}

/// A row of arguments or options in a help text: the syntax, and its description in one line.
struct HelpRow {
  std::string group, typed, doc;
};
std::vector<HelpRow> rows(const std::string& help) {
  constexpr std::size_t kDoc = 28;
  std::vector<HelpRow> all;
  std::string group;
  for (auto& line : lines_of(help.substr(help.find("\nArguments:\n") + 1))) {
    auto start = line.find_first_not_of(' ');
    if (start == line.npos) continue;
    if (start == 0) {
      if (!line.ends_with(':')) break;  // paragraphs follow
      group = line.substr(0, line.size() - 1);
    } else if (start < kDoc) {
      auto columns = line.size() > kDoc && line[kDoc - 1] == ' ' && line[kDoc] != ' ';
      auto typed = line.substr(2, columns ? kDoc - 2 : line.npos);
      typed.erase(typed.find_last_not_of(' ') + 1);
      all.push_back({group, typed, columns ? line.substr(kDoc) : ""});
    } else {
      EXPECT_EQ(start, kDoc) << line;
      auto& doc = all.back().doc;
      doc += (doc.empty() ? "" : " ") + line.substr(kDoc);
    }
  }
  return all;
}

TEST(Documents, HelpHasEachOptionOnceInItsGroup) {
  const Words groups = {"Arguments", "Options", "Filters",     "Time",   "Sampling",
                        "Output",    "Stacks",  "Diagnostics", "Limits", "Other"};
  const std::map<std::string_view, std::string> known = {
      {"pid", "Filters"},     {"cgroup", "Filters"},     {"interval", "Time"},
      {"json", "Output"},     {"frequency", "Sampling"}, {"folded", "Stacks"},
      {"max-keys", "Limits"}, {"strict", "Diagnostics"}, {"help", "Other"}};
  for (auto& tool : all_tools()) {
    SCOPED_TRACE(tool.name);
    auto help = help_text(tool);
    auto all = rows(help);
    EXPECT_TRUE(help.starts_with(tool.name)) << help;
    for (auto* name :
         {"json", "csv", "duration", "strict", "exit-status", "explain", "help", "version"})
      EXPECT_TRUE(has_option(tool, name)) << name;
    EXPECT_TRUE(says(help, "-- COMMAND"));
    std::size_t at = 0;
    for (auto& row : all) {
      while (at < groups.size() && groups[at] != row.group) at++;
      EXPECT_LT(at, groups.size()) << row.group << " is unknown or out of order";
    }
    auto options = all_options(tool);
    EXPECT_EQ(all.size(), tool.positionals.size() + 1 + options.size());
    for (auto& o : options) {
      auto typed = fmt::format("{}--{}{}{}", o.letter ? fmt::format("-{}, ", o.letter) : "    ",
                               o.name, o.metavar.empty() ? "" : " ", o.metavar);
      auto row = std::ranges::find(all, typed, &HelpRow::typed);
      ASSERT_NE(row, all.end()) << typed;
      EXPECT_EQ(row->doc, o.doc) << typed;
      EXPECT_EQ(row->group == "Options", !o.shared) << typed;
      if (auto group = known.find(o.name); o.shared && group != known.end()) {
        EXPECT_EQ(row->group, group->second) << typed;
      }
    }
    // The parts in their order.
    std::size_t part = 0;
    auto expect_next = [&](const std::string& words) {
      auto found = help.find(words, part);
      EXPECT_NE(found, help.npos) << words;
      part = std::min(found, help.size());
    };
    expect_next(
        fmt::format("{}: {}\n\nUsage: coretap {} [OPTIONS]", tool.name, tool.summary, tool.name));
    expect_next("\nExamples:\n");
    for (auto& e : tool.examples) expect_next(fmt::format("\n  coretap {}", e.command));
    for (auto* title : {"\nArguments:\n", "\nOverhead: ", "\nExit status: 0 success;", "\nMore: "})
      expect_next(title);
  }
}

/// The arguments of a macro, line by line, between two lines of a page.
Words after_macro(const std::string& page, const std::string& macro, const std::string& from = "",
                  const std::string& to = "") {
  auto start = from.empty() ? 0 : page.find(from);
  EXPECT_NE(start, page.npos) << from;
  Words all;
  for (auto& line :
       lines_of(page.substr(start, to.empty() ? page.npos : page.find(to, start + 1) - start)))
    if (line.starts_with(macro + ' ')) all.push_back(line.substr(macro.size() + 1));
  return all;
}

TEST(Documents, PagesHaveTheirSectionsInOrder) {
  for (auto& written : man_pages(places::source_dir() + "/docs/samples")) {
    auto& path = written.first;
    auto& page = written.second;
    if (page.starts_with(".so ")) continue;
    auto sections = after_macro(page, ".Sh");
    auto of = std::ranges::find_if(registry(), [&](auto& entry) {
      return path == fmt::format("man8/{}.8", page_of(entry.name));
    });
    if (of == registry().end()) {
      // mdoc(7) requires these sections in this order; others are between them.
      const Words known = {"NAME",        "SYNOPSIS", "DESCRIPTION", "FILES",
                           "EXIT STATUS", "EXAMPLES", "SEE ALSO"};
      EXPECT_EQ(sections.front(), known.front()) << path;
      EXPECT_EQ(sections.back(), known.back()) << path;
      std::erase_if(sections, [&](auto& s) { return !std::ranges::count(known, s); });
      EXPECT_TRUE(std::ranges::is_sorted(sections, {}, [&](auto& s) {
        return std::ranges::find(known, s) - known.begin();
      })) << path;
      continue;
    }
    auto tool = build(*of);
    Words expected = {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS",  "ATTACH POINTS", "OUTPUT",
                      "JSON", "RIGHTS",   "EXIT STATUS", "OVERHEAD", "ANSWERS",       "EXAMPLES"};
    if (has_option(tool, "return-trampoline"))
      expected.insert(expected.begin() + 10, "EFFECTS ON TRACED PROGRAMS");
    auto sample = fmt::format("{}/docs/samples/{}.txt", places::source_dir(), tool.name);
    if (fs::exists(sample)) expected.push_back("EXAMPLE OUTPUT");
    if (!tool.differs.empty() || !tool.elsewhere.empty()) expected.push_back("DIFFERENCES");
    expected.push_back("SEE ALSO");
    EXPECT_EQ(sections, expected) << path;
  }
}

void add_items(Words& all, const std::vector<OutputKey>& keys) {
  for (auto& k : keys) {
    auto type = k.type + (k.unit.empty() ? "" : ", ") + k.unit;
    all.push_back(fmt::format("{} Pq {}", k.name, inline_words(type)));
    add_items(all, k.members);
  }
}

TEST(Documents, PagesHaveWhatTheToolHasInItsOrder) {
  for (auto& tool : all_tools()) {
    SCOPED_TRACE(tool.name);
    auto page = man_page(tool);
    Words keys, columns;
    auto kinds = json_kinds(tool);
    for (std::size_t i = 1; i + 1 < kinds.size(); i++) add_items(keys, kinds[i].keys);
    for (auto& c : tool.report->csv()) columns.push_back(c.name);
    for (auto& other : tool.other_reports)
      for (auto& c : other.report->csv()) columns.push_back(c.name);
    EXPECT_EQ(after_macro(page, ".It Va", "\n.Sh JSON\n", "\n.Ss CSV\n"), keys);
    auto named = after_macro(page, ".Va", "\n.Ss CSV\n", "\n.Sh ");
    for (auto& name : named) name.erase(std::min(name.find(' '), name.size()));
    EXPECT_EQ(named, columns);
    std::size_t candidates = 0;
    for (auto& hook : tool.hooks) candidates += hook.candidates.size();
    auto attach = page.substr(page.find("\n.Sh ATTACH POINTS\n"));
    attach.resize(attach.find("\n.Sh OUTPUT\n"));
    EXPECT_GE(count_of(attach, "\n.It \n"), candidates);
    EXPECT_GE(after_macro(attach, ".It Sy").size(), tool.hooks.size());
    EXPECT_EQ(after_macro(page, ".Dl", "\n.Sh ANSWERS\n", "\n.Sh ").size(), tool.questions.size());
    EXPECT_EQ(after_macro(page, ".Dl", "\n.Sh EXAMPLES\n", "\n.Sh ").size(), tool.examples.size());
    // Own options are in the synopsis: letters without a value together, others separately.
    std::size_t alone = 0;
    std::string letters;
    for (auto& o : tool.options)
      if (o.letter && o.metavar.empty())
        letters += o.letter;
      else
        alone++;
    auto synopsis = after_macro(page, ".Op Fl", "\n.Sh SYNOPSIS\n", "\n.Sh DESCRIPTION\n");
    EXPECT_EQ(synopsis.size(), alone + !letters.empty() + 1);
    if (!letters.empty()) {
      EXPECT_EQ(synopsis.front(), inline_words(letters));
    }
    EXPECT_EQ(synopsis.back(), "- Ar COMMAND Op Ar ARGS ...");
  }
}

TEST(Documents, PagesLeadToPagesThatAreThere) {
  auto pages = man_pages();
  EXPECT_EQ(pages.size(), all_names().size() + 12);
  auto& index = pages.at("man8/coretap.8");
  for (auto& entry : registry()) {
    auto page = page_of(entry.name);
    auto& text = pages.at(fmt::format("man8/{}.8", page));
    EXPECT_TRUE(says(text, fmt::format(".Sh NAME\n.Nm {}\n", page),
                     fmt::format(".Sh SYNOPSIS\n.Nm coretap {}\n", entry.name),
                     fmt::format("\n.Dl coretap {}", entry.name)));
    EXPECT_TRUE(says(index, fmt::format(".It Xr {} 8\n", page))) << page;
  }
  for (auto& [path, text] : pages) {
    for (auto& line : lines_of(text)) {
      if (!line.starts_with(".Xr coretap")) continue;
      auto words = words_of(line);
      EXPECT_TRUE(pages.contains(fmt::format("man{0}/{1}.{0}", words.at(2), words[1]))) << line;
    }
    // A new tool does not change other tools' pages.
    if (path != "man8/coretap.8") {
      for (auto& entry : registry())
        if (path.find(entry.name) == path.npos) {
          EXPECT_EQ(text.find(fmt::format("Xr {} 8", page_of(entry.name))), text.npos) << path;
        }
    }
  }
}

TEST(Documents, SentencesStartWithACapital) {
  for (auto& [path, text] : man_pages()) {
    auto all = lines_of(text);
    for (std::size_t i = 0; i + 1 < all.size(); i++) {
      auto& next = all[i + 1];
      if (!all[i].starts_with(".It ") || next.starts_with('.')) continue;
      auto word = next.substr(0, next.find_first_of(" ,:;.("));
      bool name = !std::regex_match(word, std::regex("[A-Za-z-]*"));
      EXPECT_TRUE(name || !islower(static_cast<unsigned char>(next[0]))) << path << ": " << next;
    }
  }
}

TEST(Documents, OptionsAreOnTheirPagesWithWhatTheyBelongTo) {
  auto common = output_man_page();
  for (auto& tool : all_tools()) {
    auto page = man_page(tool);
    for (auto& o : all_options(tool)) {
      SCOPED_TRACE(fmt::format("{} --{}", tool.name, o.name));
      bool own = std::ranges::count(tool.options, o.name, &Option::name);
      for (auto* each : {&page, &common})
        if (each == &page || !own) {
          EXPECT_TRUE(says(*each, fmt::format("Fl -{}", o.name)));
        }
      if (o.belongs_to.empty()) continue;
      // Common options are in one list, with their description after it.
      auto item = own ? fmt::format("\n.It {}\n", option_item(o)) : "\n.Ss Common options\n";
      auto at = page.find(item);
      ASSERT_NE(at, page.npos);
      EXPECT_LT(page.find("\nOnly with", at), page.find(own ? "\n.It" : "\n.Sh", at + 1));
    }
  }
  EXPECT_TRUE(says(man_page(build(*find_tool("vmscan"))), "\nOnly without\n.Fl -distributed ."));
}

TEST(Documents, SamplesHaveTheColumnsOfTheirTools) {
  auto directory = places::source_dir() + "/docs/samples";
  std::size_t samples = 0;
  for (auto& tool : all_tools()) {
    auto sample = places::file_text(fmt::format("{}/{}.txt", directory, tool.name));
    if (sample.empty()) continue;  // scripts/samples adds it if the tool can run
    samples++;
    ASSERT_TRUE(sample.starts_with(fmt::format("coretap {}", tool.name))) << tool.name;
    auto command = sample.substr(0, sample.find('\n'));
    EXPECT_GE(lines_of(sample).size(), 2u) << tool.name;
    EXPECT_LE(lines_of(sample).size(), 17u) << tool.name;
    for (auto& field : columns_of(tool, command)) {
      // The text of cpuwalk is a histogram: these two are in JSON and CSV only.
      bool shown = tool.name != "cpuwalk" || (field.title != "BUSY%" && field.title != "STINTS");
      EXPECT_EQ(sample.find(field.title) != sample.npos, shown) << tool.name << ": " << field.title;
    }
    auto page = man_page(tool, sample);
    EXPECT_EQ(count_of(page, "\n.Sh EXAMPLE OUTPUT\n"), 1) << tool.name;
    EXPECT_EQ(man_page(tool).find("EXAMPLE OUTPUT"), std::string::npos);
  }
  EXPECT_GE(samples, 55u);
  // Text that roff would interpret as requests.
  auto page = man_page(build(*find_tool("biolatency")), "coretap biolatency\n.Sh X\n'br \\n\n");
  EXPECT_TRUE(says(page, "\n.Bd -literal\n\\&.Sh X\n"));
  EXPECT_EQ(page.find("\n.Sh X"), page.npos);
  EXPECT_EQ(page.find("\n'br"), page.npos);
}

TEST(Documents, TheTopLevelHoldsNothingElse) {
  if (!fs::exists(places::source_dir() + "/.git")) GTEST_SKIP() << "packagers add directories";
  const auto known = words_of(
      "CHANGELOG.md CMakeLists.txt CONTRIBUTING.md LICENSE LICENSES README.md SECURITY.md bpf cmake "
      "completion docs include packaging scripts src tests vmlinux");
  for (auto& entry : fs::directory_iterator(places::source_dir())) {
    auto name = entry.path().filename().string();
    if (name.starts_with('.') || name.starts_with("build")) continue;
    EXPECT_EQ(std::ranges::count(known, name), 1) << name;
  }
}

TEST(Documents, DifferencesAreInBothPages) {
  auto migrate = man_pages().at("man7/coretap-migrate.7");
  auto after = [](const std::string& page, const std::string& heading) {
    auto at = page.find(heading);
    return at == page.npos ? "" : page.substr(at, page.find("\n.S", at + 1) - at);
  };
  for (auto& tool : all_tools()) {
    auto own = after(man_page(tool), "\n.Sh DIFFERENCES\n");
    auto there = after(migrate, fmt::format("\n.Ss {}\n", tool.name));
    EXPECT_EQ(own.empty(), tool.differs.empty() && tool.elsewhere.empty()) << tool.name;
    EXPECT_EQ(there.empty(), own.empty()) << tool.name;
    for (auto& refused : tool.elsewhere) {
      auto item = refused.name.empty() ? fmt::format("Fl {}\n", refused.letter)
                                       : fmt::format("Fl -{}\n", refused.name);
      EXPECT_TRUE(says(own, item));
      EXPECT_TRUE(says(there, item));
    }
    EXPECT_EQ(count_of(there, "\n.It bcc"), count_of(own, "\n.It bcc")) << tool.name;
  }
  EXPECT_TRUE(says(migrate, ".It Fl -cgroupmap\n")) << "what no tool has";
}

TEST(Documents, NameTheToolAsItWasCalled) {
  auto tool = build(*find_tool("runqlat"));
  EXPECT_EQ(command_of("runqlat"), "coretap runqlat");
  EXPECT_EQ(as_typed("runqlat", "runqlat -m 1"), "coretap runqlat -m 1");
  EXPECT_EQ(as_typed("runqlat", "echo 1"), "echo 1");
  EXPECT_TRUE(says(help_text(tool), "Usage: coretap runqlat ["));
  started_by_link("ct-runqlat", "runqlat");
  EXPECT_EQ(command_of("runqlat"), "ct-runqlat");
  auto help = help_text(tool);
  auto refused = parse_command_line(tool, {"--no-such-option"});
  started_by_link("coretap runqlat", "runqlat");
  // The page has the name used by packages.
  EXPECT_TRUE(says(help, "Usage: ct-runqlat [", "\n  ct-runqlat -mT 1 ", "man coretap-runqlat"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "see ct-runqlat --help");
  EXPECT_EQ(command_of("runqlat"), "coretap runqlat");
}

TEST(Documents, EveryCommandHasHelp) {
  for (auto& command : commands()) {
    EXPECT_EQ(find_tool(command.name), nullptr);
    auto help = help_text(command);
    EXPECT_TRUE(says(help, fmt::format("Usage: coretap {} ", command.name)));
    for (auto& o : options_of(command))
      EXPECT_TRUE(says(help, fmt::format("--{}", o.name))) << o.name;
    EXPECT_TRUE(says(overview(), fmt::format("\n  {}", command.name)));
    EXPECT_TRUE(says(coretap_man_page(), fmt::format(".It Cm {}", command.name)));
  }
}

TEST(Conditions, AreWords) {
  expect_each(condition_words,
              {" => ", "queued => with --queued", "!queued => without --queued",
               "pids|tids => with --pids or --tids", "task-filter => with a filter by task",
               "memcg|task-filter => with --memcg or a filter by task"});
}

TEST(Help, WrapsAtWords) {
  EXPECT_EQ(wrap("one two three", 2, 9), "  one two\n  three\n");
  EXPECT_EQ(wrap("one\n\ntwo", 0), "one\n\ntwo\n");
  EXPECT_EQ(wrap("incomprehensibilities", 4, 10), "    incomprehensibilities\n");
}

TEST(Man, EscapesWhatWouldBeAMacro) {
  Tool tool;
  tool.name = "example";
  tool.summary = "It is No macro";
  tool.description = ".dots and 'quotes' begin lines. With --json a \\ stays (see /proc/stat).";
  tool.report = AggregateReport{};
  auto page = man_page(tool);
  EXPECT_TRUE(
      says(page, ".Nd \\&It is \\&No macro\n",
           "\n\\&.dots and \\(aqquotes\\(aq begin lines.\nWith\n.Fl -json\na \\e stays (see\n"
           ".Pa /proc/stat ) .\n"));
}

}  // namespace
}  // namespace coretap
