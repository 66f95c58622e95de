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
#include <optional>
#include <ranges>

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

/// The condition under which one of a tool's reports has a certain option; nullopt: none has it.
std::optional<std::string_view> condition_of(const Tool& tool,
                                             const std::function<bool(const ReportKind&)>& has) {
  if (has(*tool.report)) return "";
  for (auto& other : tool.other_reports)
    if (has(*other.report)) return other.when;
  return {};
}

bool shows_containers(const Tool& tool) {
  auto shows = [](const Report& report) {
    return std::ranges::any_of(report->fields(), [](auto& f) {
      return f.key == "container" && f.only_with != kNamedByOnly;
    });
  };
  return shows(tool.report) ||
         std::ranges::any_of(tool.other_reports, [&](auto& other) { return shows(other.report); });
}

bool adds_up_by_keys(const ReportKind& kind) {
  return kind.adds_up() && std::ranges::any_of(kind.fields(), is_key);
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
    return Option{letter,
                  name,
                  {},
                  doc,
                  [](Config&, std::string_view) -> Result<void> { return {}; },
                  {},
                  Complete::nothing,
                  true};
  };
  std::vector<Option> all;
  auto has = [&](std::string_view wanted) {
    return std::ranges::any_of(tool.options, [&](auto& o) { return o.name == wanted; });
  };
  if (has("pid")) all.push_back(not_pid());
  if (has("comm")) all = joined({all, {name(), not_comm()}});
  if (has("cgroup")) all = joined({all, container_filters()});
  if (shows_containers(tool)) all.push_back(containers());
  if (auto when = condition_of(tool, [](auto& kind) { return kind.names_processes(); }))
    all = joined({all, belonging_to(*when, {simple(0, "include-self",
                                                   "also show the activity of coretap itself")})});
  bool intervals =
      std::ranges::any_of(tool.positionals, [](auto& p) { return p.option == "interval"; });
  if (intervals) all.push_back(interval());
  if (auto when = condition_of(tool, [](auto& kind) { return kind.has_histograms(); });
      when && (intervals || has("interval")))
    all = joined({all, belonging_to(*when, {heatmap()})});
  if (auto when = condition_of(tool, adds_up_by_keys))
    all = joined({all, belonging_to(*when, {by()})});
  all.push_back(duration());
  all.push_back(output());
  all = joined({all, output_files()});
  all.push_back(color());
  all.push_back(simple('j', "json", "one JSON object per line"));
  all.push_back(csv());
  all.push_back(simple(0, "strict", "exit with status 4 if data was lost"));
  all.push_back(simple(0, "exit-status", "with -- COMMAND: exit with its exit status"));
  if (auto when = condition_of(tool, [](auto& kind) { return !kind.ring_doc().empty(); }))
    all =
        joined({all, belonging_to(*when, {limit(0, "ring-size", "BYTES", ring_doc(tool), 1 << 30,
                                                [](Config& c) { return &c.events.ring_bytes; })})});
  if (auto when = condition_of(tool, [](auto& kind) { return kind.name() == "event"; }))
    all = joined({all, belonging_to(*when, {max_rate()})});
  all.push_back(
      simple(0, "explain", "show which attach points would be used here, and why, then exit"));
  all.push_back(simple('v', "verbose",
                       "print attach points, and the verifier's log if a program is refused"));
  all.push_back(simple('h', "help", "print this help"));
  all.push_back(simple('V', "version", "print the version"));
  return all;
}

Error refused_elsewhere(std::string_view typed, const Elsewhere& option) {
  return usage(fmt::format("{} of bcc or libbpf-tools is not an option here", typed),
               std::string(option.instead));
}

Result<void> take_positionals(const Tool& tool, Config& c, const std::vector<std::string>& words) {
  auto see = fmt::format("see {} --help", command_of(tool.name));
  auto word = words.begin();
  for (auto& p : tool.positionals) {
    if (word == words.end()) {
      if (p.needed()) return usage(fmt::format("{} is missing", p.metavar), see);
      if (p.otherwise.empty() || c.given(p.option)) continue;
      if (auto r = p.apply(c, p.otherwise); !r) return r;
      continue;
    }
    if (!p.option.empty() && c.given(p.option))
      return usage(
          fmt::format("{} '{}' and --{} cannot be used together", p.metavar, *word, p.option),
          "both set the same value: give only one of them");
    do {
      auto r = p.apply(c, *word++);
      if (!r) return r;
    } while (p.repeats() && word != words.end());
  }
  if (word == words.end()) return {};
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
    for (auto name : {o.name, o.alias}) {
      if (name.empty()) continue;
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

/// Text for a condition: "--events", "--index or --unusable", "a filter by task"; with `given` only
/// the options that are on the command line.
std::string names_of(std::string_view condition, const Config* given = nullptr) {
  std::string names;
  if (condition.starts_with('!')) condition.remove_prefix(1);
  for (auto rest = condition;;) {
    auto bar = rest.find('|');
    auto word = rest.substr(0, bar);
    if (!given || given->holds(word)) {
      if (!names.empty()) names += " or ";
      names += word == "task-filter" ? "a filter by task" : fmt::format("--{}", word);
      if (given) return names;
    }
    if (bar == std::string_view::npos) return names;
    rest.remove_prefix(bar + 1);
  }
}

/// Rejects options without effect or conflicting in this combination.
Result<void> check_conditions(const std::vector<Option>& options, const Config& c,
                              const std::string& see) {
  for (auto& o : options) {
    if (!c.given(o.name) || c.holds(o.belongs_to)) continue;
    if (o.belongs_to.starts_with('!'))
      return usage(
          fmt::format("--{} and {} cannot be used together", o.name, names_of(o.belongs_to, &c)),
          see);
    return usage(fmt::format("--{} needs {}", o.name, names_of(o.belongs_to)), see);
  }
  return {};
}

}  // namespace

std::vector<Option> all_options(const Tool& tool) {
  auto all = tool.options;
  for (auto& o : common_options(tool)) {
    // The tool's definition of a common option (another letter) takes precedence.
    bool has = false;
    for (auto& own : tool.options) {
      has |= own.name == o.name;
      if (own.letter && own.letter == o.letter) o.letter = 0;
    }
    for (auto& other : tool.elsewhere)
      if (other.letter == o.letter) o.letter = 0;
    if (!has) all.push_back(std::move(o));
  }
  return all;
}

const std::vector<Elsewhere>& refused_by_all() {
  constexpr std::string_view kByCgroup = "filter by --cgroup, which takes paths and ids";
  static const std::vector<Elsewhere> all = {
      {0, "ebpf", "the program is already compiled; --explain shows where it would be attached"},
      {0, "cgroupmap", kByCgroup},
      {0, "mntnsmap", kByCgroup},
  };
  return all;
}

const Report& chosen_report(const Tool& tool, const Config& config) {
  for (auto& other : tool.other_reports)
    if (config.given(other.when)) return other.report;
  return tool.report;
}

/// True if the word is the value of the preceding option, whose value is optional.
static bool takes_next(const std::vector<Option>& options, std::string_view typed,
                       std::string_view word) {
  return std::ranges::any_of(options, [&](auto& o) {
    return !o.optional_suffix.empty() && typed.starts_with("--") && typed.substr(2) == o.name &&
           word.ends_with(o.optional_suffix);
  });
}

Result<std::vector<std::string>> take_options(Invocation& invocation, std::string_view command_name,
                                              const std::vector<Option>& options,
                                              const std::vector<std::string>& arguments,
                                              const std::vector<Elsewhere>& elsewhere) {
  Config& c = invocation.config;
  std::string letters = ":";
  std::vector<std::string> names;
  std::vector<option> longs;
  names.reserve(4 * options.size() + elsewhere.size());
  constexpr int kFirst = 1000;  // larger than any letter
  constexpr int kElse = 2000, kUsageWords = 3000;
  for (std::size_t i = 0; i < options.size(); i++) {
    auto& o = options[i];
    int has_value = o.metavar.empty()           ? no_argument
                    : o.optional_suffix.empty() ? required_argument
                                                : optional_argument;
    if (o.letter) letters += std::string(1, o.letter) + (has_value ? ":" : "");
    for (auto name : {o.name, o.alias}) {
      if (name.empty()) continue;
      // Other suites write some names with underscores.
      auto underscored = std::string(name);
      std::ranges::replace(underscored, '-', '_');
      for (auto& spelling : {std::string(name), underscored}) {
        names.push_back(spelling);
        longs.push_back({names.back().c_str(), has_value, nullptr, kFirst + static_cast<int>(i)});
      }
    }
  }
  for (std::size_t i = 0; i < elsewhere.size(); i++) {
    if (elsewhere[i].letter) letters += elsewhere[i].letter;
    if (elsewhere[i].name.empty()) continue;
    names.emplace_back(elsewhere[i].name);
    longs.push_back(
        {names.back().c_str(), optional_argument, nullptr, kElse + static_cast<int>(i)});
  }
  longs.push_back({"usage", no_argument, nullptr, kUsageWords});
  longs.push_back({});

  // The words after -- are a command with its own options.
  std::vector<std::string> own;
  bool command = false;
  own.emplace_back(command_name);
  for (auto& a : arguments) {
    if (command) {
      c.command.push_back(a);
    } else if (a == "--") {
      command = true;
    } else if (own.size() > 1 && takes_next(options, own.back(), a)) {
      own.back() += '=' + a;
    } else {
      own.push_back(a);
    }
  }
  if (command && c.command.empty()) return usage("-- needs a command after it");
  std::vector<char*> argv;
  argv.reserve(own.size() + 1);
  for (auto& a : own) argv.push_back(a.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(own.size());

  optind = 0;
  opterr = 0;
  auto see = fmt::format("see {} --help", command_name);
  while (true) {
    int found = getopt_long(argc, argv.data(), letters.c_str(), longs.data(), nullptr);
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
    if (found >= kElse)
      return refused_elsewhere(word.substr(0, word.find('=')), elsewhere[found - kElse]);
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
    const Option* o = nullptr;
    if (found >= kFirst) {
      o = &options[found - kFirst];
    } else {
      for (auto& candidate : options)
        if (candidate.letter == found) o = &candidate;
    }
    if (!o) return usage(fmt::format("unknown option {}", word), see);
    std::string_view text = optarg && !o->metavar.empty() ? optarg : "";
    if (o->name == "help") invocation.what = Invocation::help;
    if (o->name == "version") invocation.what = Invocation::version;
    if (c.given(o->name) && !o->adds_up && c.text(o->name) != text)
      return usage(
          fmt::format("--{} is given twice: '{}' and '{}'", o->name, c.text(o->name), text),
          "it takes one value");
    if (found < kFirst && o->by_letter)
      if (auto r = o->by_letter(text); !r) return r.error();
    if (auto r = o->apply(c, text); !r) return r.error();
    c.give(o->name, text, o->adds_up);
  }
  return std::vector<std::string>(argv.begin() + optind, argv.begin() + argc);
}

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments) {
  Invocation invocation;
  Config& c = invocation.config;
  auto options = all_options(tool);
  auto elsewhere = tool.elsewhere;
  auto& everywhere = refused_by_all();
  elsewhere.insert(elsewhere.end(), everywhere.begin(), everywhere.end());
  auto words = take_options(invocation, command_of(tool.name), options, arguments, elsewhere);
  if (!words) return words.error();
  if (invocation.what != Invocation::run) return invocation;

  auto see = fmt::format("see {} --help", command_of(tool.name));
  if (auto r = take_positionals(tool, c, *words); !r) return r.error();
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
  return invocation;
}

}  // namespace coretap
