// Parses the command line with the C library's getopt_long(), whose rules users know: bundled
// letters, abbreviations, options between arguments.
//
// Why not a library such as CLI11, cxxopts or argparse: options are a table of values (Option,
// Positional), because help, mdoc pages and completion for three shells are generated from it. None
// of these libraries generates those. They would replace only the loop below. They are header-only,
// and each tool declares options: each tool would compile them.
#include "cli/parser.hpp"

#include <getopt.h>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/naming.hpp"
#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/tool.hpp"

namespace coretap {

namespace {

/// The help text of --ring-size, if any of the tool's reports has that option.
std::string_view ring_doc(const Tool& tool) {
  auto doc = tool.report->ring_doc();
  for (auto& other : tool.other_reports)
    if (doc.empty()) doc = other.report->ring_doc();
  return doc;
}

/// Options refer to the text of their conditions.
When kept(std::string condition) {
  static std::set<std::string, std::less<>> all;
  return When::made(*all.insert(std::move(condition)).first);
}

/// The condition under which one of a tool's reports has a certain option; nullopt: none has it.
std::optional<When> condition_of(const Tool& tool,
                                 const std::function<bool(const ReportKind&)>& has) {
  if (has(*tool.report)) return When();
  std::vector<std::string_view> all;
  for (auto& other : tool.other_reports)
    if (has(*other.report)) all.push_back(other.when);
  if (all.empty()) return {};
  // Negations cannot be joined.
  if (all.size() == 1 || std::ranges::any_of(all, [](auto when) { return when.find('!') == 0; }))
    return When::made(all.front());
  return kept(fmt::format("{}", fmt::join(all, "|")));
}

bool shows_containers(const ReportKind& kind) {
  return std::ranges::any_of(
      kind.fields(), [](auto& f) { return f.key == "container" && f.only_with != kNamedByOnly; });
}

bool shows_stacks(const ReportKind& kind) { return kind.name() == "stacks"; }

/// The condition under which stacks are shown; nullopt: never.
std::optional<When> condition_of_stacks(const Tool& tool) {
  if (!shows_stacks(*tool.report)) return condition_of(tool, shows_stacks);
  std::string others;
  for (auto& other : tool.other_reports)
    if (!shows_stacks(*other.report))
      others += fmt::format("{}{}", others.empty() ? "!" : "|", other.when);
  return kept(std::move(others));
}

/// If a key chosen with --by requires an option, enables that option.
Result<void> give_options_of_key(const Tool& tool, const Field& field, Config& c) {
  for (auto condition : {field.shown_with, field.only_with})
    if (!c.holds(condition)) {
      auto name = condition.substr(0, condition.find('|'));
      for (auto& o : tool.options) {
        if (o.name != name || !o.metavar.empty() || c.given(name)) continue;
        if (auto r = o.apply(c, {}); !r) return r;
        c.give(name, {});
      }
    }
  return {};
}

Result<void> give_options_of_keys(const Tool& tool, Config& c) {
  // Twice: a key may need an option only in combination with another key's option.
  for (int pass = 0; pass < 2; pass++)
    for (auto& field : chosen_report(tool, c)->fields())
      if (std::ranges::count(c.rows.by, field.key))
        if (auto r = give_options_of_key(tool, field, c); !r) return r;
  return {};
}

/// Options that the library adds to every tool.
std::vector<Option> common_options(const Tool& tool) {
  using namespace shared;
  auto simple = [](char letter, std::string_view name, std::string_view doc) {
    return same_everywhere(flag(letter, name, doc));
  };
  auto has = [&](std::string_view wanted) {
    return std::ranges::any_of(tool.options, [&](auto& o) { return o.name == wanted; });
  };
  std::vector<Option> all;
  auto add = [&](const std::vector<Option>& more) { all = joined({all, more}); };
  auto add_if = [&](const std::function<bool(const ReportKind&)>& wanted,
                    const std::vector<Option>& more) {
    if (auto when = condition_of(tool, wanted)) add(belonging_to(*when, more));
  };
  if (has("pid")) add({not_pid()});
  if (has("comm")) add({name(), not_comm()});
  if (has("cgroup")) add(container_filters());
  if (condition_of(tool, shows_containers)) add({containers()});
  add_if(&ReportKind::names_processes,
         {simple(0, "include-self", "also show the activity of coretap itself")});
  bool intervals =
      std::ranges::any_of(tool.positionals, [](auto& p) { return p.option == "interval"; });
  if (intervals) add({interval()});
  if (intervals || has("interval")) add_if(&ReportKind::has_histograms, {heatmap()});
  add_if(&ReportKind::adds_up, {by()});
  if (auto when = condition_of_stacks(tool)) {
    if (!has("interval")) add(belonging_to(*when, {interval()}));
    add(belonging_to(*when, stack_tables()));
  }
  add({duration('d'), output()});
  add(output_files());
  add_if(&ReportKind::can_be_recorded,
         {record(),
          simple(0, "anonymous",
                 "record tokens, the same ones within one recording, instead of names of files, "
                 "commands, users, hosts, units and containers, of arguments and other texts, "
                 "and of IP addresses; process ids and other numbers, symbols, and names of "
                 "system libraries stay")});
  add_if(
      [](auto& kind) {
        return kind.can_be_recorded() && kind.has_histograms() &&
               !kind.metrics(Config()).scale.linear;
      },
      {simple(0, "fine",
              "record histograms in steps of an eighth of a power of two, for coretap compare "
              "(default: if they take 16 MB at most)"),
       simple(0, "no-fine", "record histograms in powers of two")});
  add_if(&ReportKind::has_events, {perfetto()});
  add({color(), simple('j', "json", "one JSON object per line"), csv(), output_format(),
       simple(0, "strict", "exit with status 4 if data was lost"),
       simple(0, "exit-status", "with -- COMMAND: exit with its exit status")});
  add_if([](auto& kind) { return !kind.ring_doc().empty(); },
         {limit(0, "ring-size", "BYTES", ring_doc(tool), 1 << 30,
                [](Config& c) { return &c.events.ring_bytes; })});
  add_if([](auto& kind) { return kind.name() == "event"; }, {max_rate()});
  add({simple(0, "explain", "show which attach points would be used here, and why, then exit"),
       simple('v', "verbose",
              "print attach points, and the verifier's log if a program is refused"),
       simple('h', "help", "print this help"), simple('V', "version", "print the version")});
  return all;
}

Error refused_elsewhere(std::string_view typed, const Elsewhere& option) {
  return usage(fmt::format("{} of bcc or libbpf-tools is not an option here", typed),
               std::string(option.instead));
}

constexpr std::size_t kLongestDefault = 20;  // that is announced

/// Neither times nor targets, which a run announces in other words.
bool selects(const Positional& p) {
  return !p.repeats() && p.option != "interval" && p.option != "duration" && p.metavar != "COUNT";
}

Result<void> take_positionals(const Tool& tool, Config& c, const std::vector<std::string>& words) {
  auto see = fmt::format("see {} --help", command_of(tool.shown_name()));
  auto word = words.begin();
  for (auto& p : tool.positionals) {
    if (word == words.end()) {
      if (p.needed()) return usage(fmt::format("{} is missing", p.metavar), see);
      if (p.otherwise.empty() || c.given(p.option)) continue;
      if (auto r = p.apply(c, p.otherwise); !r) return r;
      if (selects(p) && p.otherwise.size() <= kLongestDefault)
        c.arguments.push_back(fmt::format("{} {}", p.metavar, p.otherwise));
      continue;
    }
    if (!p.option.empty() && c.given(p.option))
      return usage(
          fmt::format("{} '{}' and --{} cannot be used together", p.metavar, *word, p.option),
          "both set the same value: give only one of them");
    if (selects(p)) c.arguments.push_back(fmt::format("{} {}", p.metavar, *word));
    do {
      auto r = p.apply(c, *word++);
      if (!r) return r;
    } while (p.repeats() && word != words.end());
  }
  if (word == words.end()) return {};
  // Options of other suites take several words.
  if (!c.tasks.pids.empty() && c.given("pid") && parse_unsigned(*word))
    return usage(fmt::format("unexpected argument '{}'", *word),
                 fmt::format("several processes: --pid {},{}; {}", c.text("pid"), *word, see));
  // Tools of other suites take a duration as argument here, or none.
  bool time = tool.positionals.empty() && parse_seconds(*word);
  return usage(fmt::format("unexpected argument '{}'", *word),
               time ? fmt::format("to end after {} s: --duration {}; {}", *word, *word, see)
                    : fmt::format("a command to run comes after --; {}", see));
}

/// The error for an option that getopt rejects; `typed` includes its dashes.
Error refused_option(std::string see, const std::vector<Option>& options, std::string_view typed) {
  std::string word(typed.starts_with("--") ? typed.substr(2) : std::string_view());
  std::ranges::replace(word, '_', '-');
  std::vector<std::string_view> known;
  std::vector<std::string> begun;
  for (auto& o : options)
    for (auto name : o.names()) {
      known.push_back(name);
      if (name.starts_with(word)) begun.push_back(fmt::format("--{}", name));
    }
  if (!word.empty() && begun.size() > 1)
    return usage(fmt::format("option {} is ambiguous", typed),
                 fmt::format("it may be any of {}", fmt::join(begun, ", ")));
  if (auto meant = nearest(word, known); !meant.empty())
    see = fmt::format("did you mean --{}? {}", meant, see);
  return usage(fmt::format("unknown option {}", typed), see);
}

/// Rejects options without effect or conflicting in this combination.
Result<void> check_conditions(const std::vector<Option>& options, const Config& c,
                              const std::string& see) {
  for (auto& o : options) {
    if (!c.given(o.name) || c.holds(o.belongs_to)) continue;
    if (!o.belongs_to.starts_with('!'))
      return usage(fmt::format("--{} needs {}", o.name, condition_options(o.belongs_to)), see);
    auto others = o.belongs_to.substr(1), other = take_until(others, '|');
    while (!c.holds(When::made(other))) other = take_until(others, '|');
    return usage(
        fmt::format("--{} and {} cannot be used together", o.name, condition_options(other)), see);
  }
  return {};
}

}  // namespace

std::vector<Option> all_options(const Tool& tool) {
  auto all = tool.options;
  for (auto& o : common_options(tool)) {
    // The tool's definition of a common option (another letter) takes precedence.
    auto same_name = [&](auto& own) { return std::ranges::count(own.names(), o.name) > 0; };
    auto refused = [&](auto& other) { return other.name == o.name; };
    if (std::ranges::any_of(tool.options, same_name) ||
        std::ranges::any_of(tool.elsewhere, refused))
      continue;
    auto same_letter = [&](auto& own) { return own.letter == o.letter; };
    auto other_letter = [&](auto& own) { return own.alias_letter == o.letter; };
    if (std::ranges::any_of(tool.options, same_letter) ||
        std::ranges::any_of(tool.options, other_letter) ||
        std::ranges::any_of(tool.elsewhere, same_letter))
      o.letter = 0;
    all.push_back(std::move(o));
  }
  return all;
}

const std::vector<Elsewhere>& refused_by_all() {
  constexpr std::string_view kByCgroup = "filter by --cgroup, which takes paths and ids";
  static const std::vector<Elsewhere> all = {
      {0, "ebpf", "the program is already compiled; --explain shows where it would be attached"},
      {0, "cgroupmap", kByCgroup},
      {0, "mntnsmap", kByCgroup},
      {0, "C", kByCgroup},
      {0, "M", kByCgroup},
  };
  return all;
}

const Report& chosen_report(const Tool& tool, const Config& config) {
  for (auto& other : tool.other_reports)
    if (config.given(other.when)) return other.report;
  return tool.report;
}

/// True if the word is the value of the preceding option, whose value may be omitted.
static bool takes_next(const std::vector<Option>& options, std::string_view typed,
                       std::string_view word) {
  for (auto& o : options) {
    if (!o.value_may_be_omitted() || !typed.starts_with("--") || typed.substr(2) != o.name)
      continue;
    if (o.otherwise.empty()) return word.ends_with(o.optional_suffix);
    return !word.starts_with('-') && !parse_seconds(word);  // not another option or a DURATION
  }
  return false;
}

Result<std::vector<std::string>> take_options(Invocation& invocation, std::string_view command_name,
                                              const std::vector<Option>& options,
                                              const std::vector<std::string>& arguments,
                                              const std::vector<Elsewhere>& elsewhere) {
  Config& c = invocation.config;
  std::string letters = ":";
  std::list<std::string> names;
  std::vector<option> longs;
  auto add = [&](std::string_view name, int has_value, int number) {
    if (name.empty()) return;
    longs.push_back({names.emplace_back(name).c_str(), has_value, nullptr, number});
  };
  constexpr int kFirst = 1000;  // larger than any letter
  constexpr int kElse = 2000, kUsageWords = 3000;
  for (int i = 0; auto& o : options) {
    int has_value = o.metavar.empty()          ? no_argument
                    : o.value_may_be_omitted() ? optional_argument
                                               : required_argument;
    for (char letter : {o.letter, o.alias_letter})
      if (letter) letters += std::string(1, letter) + (has_value ? ":" : "");
    for (auto name : o.names()) {
      add(name, has_value, kFirst + i);
      // Other suites write some names with underscores.
      auto underscored = std::string(name);
      std::ranges::replace(underscored, '-', '_');
      add(underscored, has_value, kFirst + i);
    }
    i++;
  }
  for (int i = 0; auto& other : elsewhere) {
    if (other.letter) letters += other.letter;
    add(other.name, optional_argument, kElse + i++);
  }
  add("usage", no_argument, kUsageWords);
  longs.push_back({});

  // The words after -- are a command with its own options.
  auto dashes = std::ranges::find(arguments, "--");
  if (dashes != arguments.end()) {
    c.command.assign(dashes + 1, arguments.end());
    if (c.command.empty()) return usage("-- needs a command after it");
  }
  std::vector<std::string> own{std::string(command_name)};
  for (auto word = arguments.begin(); word != dashes; ++word)
    if (own.size() > 1 && takes_next(options, own.back(), *word))
      own.back() += '=' + *word;
    else
      own.push_back(*word);
  std::vector<char*> argv;
  argv.reserve(own.size() + 1);
  for (auto& a : own) argv.push_back(a.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(own.size());

  optind = 0;
  opterr = 0;
  auto see = fmt::format("see {} --help", command_name);
  while (true) {
    int which = 0;
    int found = getopt_long(argc, argv.data(), letters.c_str(), longs.data(), &which);
    if (found == -1) break;
    std::string_view word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
    if (found == kUsageWords) {
      invocation.what = Invocation::usage;
      continue;
    }
    if (found == '?' && optopt == '?') {
      invocation.what = Invocation::help;
      continue;
    }
    if (found >= kElse) {
      const auto& other = elsewhere[found - kElse];
      const auto typed = word.substr(0, word.find('='));
      // getopt_long() also takes the beginning of a name.
      if (!typed.ends_with(other.name)) return refused_option(see, options, typed);
      return refused_elsewhere(typed, other);
    }
    for (auto& other : elsewhere)
      if (other.letter && other.letter == found)
        return refused_elsewhere(fmt::format("-{}", other.letter), other);
    if (found == '?' || found == ':') {
      std::string name = optopt && optopt < kFirst ? fmt::format("-{}", static_cast<char>(optopt))
                                                   : std::string(word.substr(0, word.find('=')));
      if (found == ':') return usage(fmt::format("option {} needs a value", name), see);
      if (optopt >= kFirst) return usage(fmt::format("option {} takes no value", name), see);
      return refused_option(see, options, name);
    }
    auto has_letter = [&](auto& o) { return o.letter == found || o.alias_letter == found; };
    auto o = found >= kFirst ? options.begin() + (found - kFirst)
                             : std::ranges::find_if(options, has_letter);
    if (o == options.end()) return usage(fmt::format("unknown option {}", word), see);
    std::string_view text = optarg && !o->metavar.empty() ? optarg : o->otherwise;
    if (o->name == "help") invocation.what = Invocation::help;
    if (o->name == "version") invocation.what = Invocation::version;
    const bool differs = c.given(o->name) && !o->adds_up && c.text(o->name) != text;
    if (auto& [other, implied] = invocation.called;
        differs && implied.starts_with(fmt::format("--{}", o->name)))
      return usage(fmt::format("{} implies {}", other, implied),
                   fmt::format("the tool without it takes another --{}; {}", o->name, see));
    if (differs)
      return usage(
          fmt::format("--{} is given twice: '{}' and '{}'", o->name, c.text(o->name), text),
          "it takes one value");
    if (found < kFirst && o->by_letter)
      if (auto r = o->by_letter(text); !r) return r.error();
    if (auto r = o->apply(c, text); !r) return r.error();
    c.give(o->name, text, o->adds_up);
    invocation.typed.insert(found < kFirst ? fmt::format("-{}", static_cast<char>(found))
                                           : fmt::format("--{}", longs[which].name));
  }
  return std::vector<std::string>(argv.begin() + optind, argv.begin() + argc);
}

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments) {
  Invocation invocation;
  invocation.called = tool.called;
  Config& c = invocation.config;
  auto options = all_options(tool);
  auto typed = arguments;
  if (!tool.called.option.empty()) typed.emplace(typed.begin(), tool.called.option);
  auto elsewhere = tool.elsewhere;
  auto& everywhere = refused_by_all();
  elsewhere.insert(elsewhere.end(), everywhere.begin(), everywhere.end());
  auto words = take_options(invocation, command_of(tool.shown_name()), options, typed, elsewhere);
  if (!words) return words.error();
  if (invocation.what != Invocation::run) return invocation;

  auto see = fmt::format("see {} --help", command_of(tool.shown_name()));
  c.words = *words;
  if (auto r = take_positionals(tool, c, c.words); !r) return r.error();
  if (c.given("help")) {
    invocation.what = Invocation::help;
    return invocation;
  }
  if (c.given("json") && c.given("csv"))
    return usage("--json and --csv cannot be used together", see);
  c.format = c.given("json")  ? OutputFormat::json
             : c.given("csv") ? OutputFormat::csv
                              : OutputFormat::text;
  if (auto r = give_options_of_keys(tool, c); !r) return r.error();
  if (auto r = chosen_report(tool, c)->check(c); !r) return r.error();
  if (c.files.svg == "-" && c.holds("folded|json|csv"))
    return usage("--svg -: standard output is for one thing only", "name a file");
  if (c.files.pprof == "-" && (c.files.svg == "-" || c.holds("folded|json|csv")))
    return usage("--pprof -: standard output is for one thing only", "name a file");
  if (c.files.heatmap == "-" && c.holds("json|csv"))
    return usage("--heatmap=-: standard output is for one thing only", "name a file");
  if (c.files.rotate_bytes &&
      (c.files.svg == "-" || c.files.heatmap == "-" || c.files.pprof == "-"))
    return usage("--rotate cannot split a single document", "name a file for it");
  if (c.given("exit-status") && c.command.empty())
    return usage("--exit-status needs a command after --", see);
  if (!c.command.empty() && (!c.tasks.pids.empty() || !c.tasks.tids.empty()))
    return usage("-- COMMAND cannot be used together with --pid or --tid",
                 "only the command and its children are traced");
  if (!c.tasks.not_pids.empty() && (!c.tasks.pids.empty() || !c.command.empty()))
    return usage("--not-pid cannot be used together with --pid or -- COMMAND",
                 "only those processes are traced then");
  if (!c.tasks.not_comms.empty() && !c.tasks.comms.empty())
    return usage("--not-comm and --comm cannot be used together",
                 "only the tasks that --comm names are traced");
  for (auto& [one, other] : tool.exclusive)
    if (c.given(one) && c.given(other))
      return usage(fmt::format("--{} and --{} cannot be used together", one, other), see);
  if (auto r = check_conditions(options, c, see); !r) return r.error();
  if (tool.check)
    if (auto r = tool.check(c); !r) return r.error();
  for (auto& [letter, name, note, unless] : tool.other_meanings) {
    if (!unless.empty() && c.holds(unless)) continue;
    if (!letter && name.empty()) c.notes.emplace_back(note);
    for (auto& typed : {fmt::format("-{}", letter), fmt::format("--{}", name)})
      if (invocation.typed.contains(typed)) c.notes.push_back(fmt::format("{}: {}", typed, note));
  }
  return invocation;
}

}  // namespace coretap
