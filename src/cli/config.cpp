#include "cli/config.hpp"

#include <getopt.h>
#include <pwd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "coretap/tool.hpp"
#include "kernel/disks.hpp"
#include "kernel/syscalls.hpp"
#include "kernel/zones.hpp"

namespace coretap {

namespace {

Error usage(std::string what, std::string hint = {}) {
  return {std::move(what), {}, std::move(hint), kUsage};
}

constexpr double kShortest = 0.001;  // seconds; below, nobody could read the reports

Result<void> no_effect(Config&, std::string_view) { return {}; }

Result<std::vector<std::uint32_t>> parse_ids(std::string_view option, std::string_view text) {
  std::vector<std::uint32_t> ids;
  while (true) {
    auto comma = text.find(',');
    auto id = parse_unsigned(text.substr(0, comma));
    if (!id || *id == 0 || *id > INT32_MAX)
      return usage(fmt::format("--{}: '{}' is not a list of ids", option, text),
                   fmt::format("give numbers separated by commas, such as --{} 1,203", option));
    ids.push_back(static_cast<std::uint32_t>(*id));
    if (comma == std::string_view::npos) return ids;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::uint64_t Config::number(std::string_view option, std::uint64_t otherwise) const {
  auto found = given_.find(option);
  return found == given_.end() ? otherwise : parse_unsigned(found->second).value_or(otherwise);
}

std::string_view Config::text(std::string_view option) const {
  auto found = given_.find(option);
  return found == given_.end() ? std::string_view() : found->second;
}

bool Config::holds(std::string_view condition) const {
  if (condition.empty()) return true;
  if (condition.front() == '!') return !holds(condition.substr(1));
  while (true) {
    auto bar = condition.find('|');
    auto word = condition.substr(0, bar);
    if (word == "task-filter" ? filters_tasks() : given(word)) return true;
    if (bar == std::string_view::npos) return false;
    condition.remove_prefix(bar + 1);
  }
}

bool Config::filters_tasks() const {
  return !pids.empty() || !tids.empty() || uid || !comm.empty() || !cgroup.empty() ||
         !command.empty();
}

void Config::give(std::string_view option, std::string_view value, bool adds_up) {
  auto [known, fresh] = given_.emplace(option, value);
  // Of other options the last one counts.
  if (!fresh)
    known->second = adds_up ? fmt::format("{},{}", known->second, value) : std::string(value);
}

void Config::set(Setting target, std::uint64_t value) {
  if (target.size) edits_.push_back({target, value});
}

Option flag(char letter, std::string_view name, std::string_view doc, Setting target) {
  return {letter, name, {}, doc, [target](Config& c, std::string_view) -> Result<void> {
            c.set(target, 1);
            return {};
          }};
}

Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Setting target, std::uint64_t unit, Setting present) {
  return value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
    auto n = parse_unsigned(text);
    auto limit = target.size >= 8 || !target.size ? UINT64_MAX : (1ULL << (8 * target.size)) - 1;
    if (!n || *n > limit / unit)
      return usage(fmt::format("--{}: '{}' is not a number in range", name, text));
    c.set(target, *n * unit);
    c.set(present, 1);
    return {};
  });
}

Option bounded(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
               std::uint64_t Config::*member, std::uint64_t most,
               std::optional<std::uint64_t> (*parse)(std::string_view)) {
  return value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
    auto n = parse(text);
    if (!n || *n == 0 || *n > most)
      return usage(fmt::format("--{}: '{}' is not between 1 and {}", name, text, most));
    c.*member = *n;
    return {};
  });
}

Option value(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::function<Result<void>(Config&, std::string_view)> apply, Complete complete) {
  return {letter, name, metavar, doc, std::move(apply), {}, complete};
}

namespace {

Result<void> take_cgroup(Config& c, std::string_view text) {
  if (text.empty()) return usage("--cgroup: needs a path");
  c.cgroups.push_back({0, std::string(text), 0});
  return {};
}

}  // namespace

namespace shared {

namespace {
Option same_everywhere(Option o) {
  o.shared = true;
  return o;
}

Option seconds(char letter, std::string_view name, std::string_view doc, double Config::*member) {
  return same_everywhere(
      value(letter, name, "SECONDS", doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto s = parse_seconds(text);
        if (!s || *s < kShortest || *s > 1e9)
          return usage(fmt::format("--{}: '{}' is not a time", name, text),
                       "give seconds, or a number with ms, s, m or h");
        c.*member = *s;
        return {};
      }));
}

Option ids(char letter, std::string_view name, std::string_view doc,
           std::vector<std::uint32_t> Config::*member) {
  auto option = same_everywhere(value(
      letter, name, name == "pid" ? "PID,..." : "TID,...", doc,
      [=](Config& c, std::string_view text) -> Result<void> {
        auto list = parse_ids(name, text);
        if (!list) return list.error();
        auto& all = c.*member;
        all.insert(all.end(), list->begin(), list->end());
        return {};
      },
      Complete::pid));
  option.adds_up = true;
  return option;
}

Option limit(std::string_view name, std::string_view metavar, std::string_view doc,
             std::uint64_t Config::*member, std::uint64_t most) {
  return same_everywhere(bounded(0, name, metavar, doc, member, most, parse_size));
}
}  // namespace

Option pid() { return ids('p', "pid", "only these processes", &Config::pids); }
Option tid(char letter) { return ids(letter, "tid", "only these threads", &Config::tids); }

namespace {
std::optional<std::uint32_t> user_id(std::string_view name) {
#ifdef CORETAP_STATIC
  // The name service needs shared libraries: a static executable knows the local users only.
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/etc/passwd", "re"), fclose);
  while (auto* entry = file ? fgetpwent(file.get()) : nullptr)
    if (name == entry->pw_name) return entry->pw_uid;
#else
  if (auto* entry = getpwnam(std::string(name).c_str())) return entry->pw_uid;
#endif
  return std::nullopt;
}
}  // namespace

Option uid(char letter) {
  return same_everywhere(value(
      letter, "uid", "USER", "only tasks of this user, by name or number",
      [](Config& c, std::string_view text) -> Result<void> {
        if (auto id = parse_unsigned(text); id && *id < UINT32_MAX) {
          c.uid = static_cast<std::uint32_t>(*id);
        } else if (auto id = user_id(text)) {
          c.uid = *id;
        } else {
          return usage(fmt::format("--uid: there is no user '{}'", text));
        }
        return {};
      },
      Complete::user));
}

Option comm(char letter) {
  return same_everywhere(value(letter, "comm", "NAME", "only tasks with this command name",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 if (text.empty())
                                   return usage("--comm: an empty name matches no task");
                                 // The kernel itself cuts names to 15 bytes.
                                 c.comm = text.substr(0, 15);
                                 return {};
                               }));
}

Option cgroup(char letter) {
  return same_everywhere(value(
      letter, "cgroup", "PATH",
      "only tasks in this cgroup (version 2) or below it; a path, absolute or below the "
      "cgroup mount, or an id",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--cgroup: needs a path or an id");
        c.cgroup = text;
        return {};
      },
      Complete::directory));
}

Option cgroups(char letter) {
  auto option = cgroup(letter);
  option.apply = take_cgroup;
  option.adds_up = true;
  return option;
}

Option syscalls(char letter, Setting wanted, Setting some) {
  return same_everywhere(
      value(letter, "syscall", "NAME,...", "only these system calls",
            [=](Config& c, std::string_view text) -> Result<void> {
              while (true) {
                auto name = text.substr(0, text.find(','));
                auto indices = syscall_indices(name);
                if (indices.empty())
                  return usage(fmt::format("--syscall: there is no system call '{}'", name),
                               "name one as man 2 syscalls does");
                for (auto index : indices) c.set({wanted.offset + index, 1}, 1);
                if (name.size() == text.size()) break;
                text.remove_prefix(name.size() + 1);
              }
              c.set(some, 1);
              return {};
            }));
}

Option output(char letter) {
  return same_everywhere(value(
      letter, "output", "FILE", "write to this file, made anew, instead of standard output",
      [](Config&, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--output: needs a file");
        return {};
      },
      Complete::file));
}

Option regular_expressions(char letter) {
  return same_everywhere(
      flag(letter, "regexp", "patterns are regular expressions (POSIX extended)"));
}

Option max_probes() {
  return limit("max-probes", "N",
               "places that may be attached one by one (default: 1000); more take long",
               &Config::max_probes, 1 << 20);
}

Option debug(char letter) {
  return same_everywhere(flag(letter, "debug", "also say each place that is traced"));
}

Option timestamp(char letter) {
  return same_everywhere(flag(letter, "timestamp", "print the time of each line or report"));
}
Option milliseconds(std::string_view doc) {
  return same_everywhere(flag('m', "milliseconds", doc));
}
Option duration(char letter) {
  return seconds(letter, "duration", "end after this time", &Config::duration);
}
Option kernel_stack() {
  return same_everywhere(flag('K', "kernel-stack", "print the kernel stack of each event"));
}
Option extended() {
  auto o = same_everywhere(flag('e', "extended", "print more columns"));
  o.alias = "extended_fields";
  return o;
}
Option print_uid() { return same_everywhere(flag('U', "print-uid", "print the user id")); }

Option disk() {
  return same_everywhere(value(
      'd', "disk", "DISK", "only this disk: a name as in /sys/block, or MAJOR:MINOR",
      [](Config& c, std::string_view text) -> Result<void> {
        auto number = find_disk(text);
        if (!number) return number.error();
        c.disk = *number;
        return {};
      },
      Complete::disk));
}

namespace {
/// What of the zones here the words name; each once.
std::string zones_as(std::string (*words)(const ZoneName&)) {
  std::string list;
  std::set<std::string> seen;
  if (zones())
    for (auto& z : (*zones()).all())
      if (auto word = words(z.name); seen.insert(word).second)
        list += (list.empty() ? "" : ", ") + word;
  return list;
}

bool same_letters(std::string_view a, std::string_view b) {
  auto upper = [](unsigned char c) { return ::toupper(c); };
  return std::ranges::equal(a, b, {}, upper, upper);
}
}  // namespace

Option node(char letter) {
  return same_everywhere(value(
      letter, "node", "NODE", "only memory of this NUMA node",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!zones()) return zones().error();
        auto wanted = parse_unsigned(text);
        for (auto& z : (*zones()).all())
          if (wanted == z.name.node) c.node = z.name.node;
        if (wanted && c.node == *wanted) return {};
        return usage(fmt::format("--node: there is no node '{}' with memory", text),
                     "there are: " + zones_as([](auto& n) { return std::to_string(n.node); }));
      }));
}

Option zone(char letter) {
  return same_everywhere(
      value(letter, "zone", "ZONE", "only memory of zones of this name, such as Normal or DMA32",
            [](Config& c, std::string_view text) -> Result<void> {
              if (!zones()) return zones().error();
              auto name = text;
              if (name.starts_with("ZONE_")) name.remove_prefix(5);  // as the kernel's enum has it
              for (auto& z : (*zones()).all())
                if (same_letters(z.name.zone, name)) {
                  c.zone = z.name.zone;
                  return {};
                }
              return usage(fmt::format("--zone: there is no zone '{}' with memory", text),
                           "there are: " + zones_as([](auto& n) { return n.zone; }));
            }));
}

Option library(char letter, std::string_view alias) {
  auto o = same_everywhere(value(
      letter, "library", "PATH", "the library or program to probe, instead of those found",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--library: needs a path");
        c.library = text;
        return {};
      },
      Complete::file));
  o.alias = alias;
  return o;
}

Option symbols_prefix(char letter) {
  return same_everywhere(value(letter, "symbols-prefix", "PREFIX",
                               "what the names of the functions to probe begin with, such as je_",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 c.symbols_prefix = text;
                                 return {};
                               }));
}

Option command(char letter) {
  return same_everywhere(value(
      letter, "command", "COMMAND",
      "like -- COMMAND, in one word, which is split at blanks without any quoting",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!c.command.empty())
          return usage("--command: there is a command already", "give one, by --command or --");
        for (std::size_t at = 0; (at = text.find_first_not_of(" \t", at)) != text.npos;) {
          auto end = std::min(text.find_first_of(" \t", at), text.size());
          c.command.emplace_back(text.substr(at, end - at));
          at = end;
        }
        if (c.command.empty()) return usage("--command: needs a command");
        return {};
      },
      Complete::command));
}

Option stack_depth() {
  return same_everywhere(value(0, "perf-max-stack-depth", "FRAMES",
                               "frames kept of each stack, 127 at most (default: 127)",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 auto n = parse_unsigned(text);
                                 if (!n || *n == 0 || *n > 127)
                                   return usage("--perf-max-stack-depth: needs 1 to 127");
                                 c.stack_depth = static_cast<std::uint32_t>(*n);
                                 return {};
                               }));
}
Option stack_storage() {
  return limit("stack-storage-size", "STACKS",
               "different stacks that can be told apart (default: by the machine's memory)",
               &Config::max_stacks, 1 << 24);
}
Option max_keys() {
  return limit("max-keys", "N", "different keys that can be counted (default: by the machine)",
               &Config::max_keys, 1 << 24);
}

Option top(char letter) {
  auto o = limit("top", "ROWS", "only this many rows", &Config::top, 1 << 24);
  o.letter = letter;
  return o;
}
Option sort(char letter) {
  return same_everywhere(value(letter, "sort", "KEY", "rows by this key, the largest first",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 c.sort = text;
                                 return {};
                               }));
}

namespace {
Option ip_version(char letter, std::string_view name, std::string_view doc, std::uint32_t version) {
  auto o = same_everywhere(flag(letter, name, doc));
  o.apply = [=](Config& c, std::string_view) -> Result<void> {
    if (c.ip && c.ip != version) return usage("--ipv4 and --ipv6 exclude each other");
    c.ip = version;
    return {};
  };
  return o;
}

Option ports(char letter, std::string_view name, std::string_view doc,
             std::vector<std::uint32_t> Config::*member) {
  return same_everywhere(
      value(letter, name, "PORT,...", doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto list = parse_ids(name, text);
        if (!list || std::ranges::any_of(*list, [](auto port) { return port > UINT16_MAX; }))
          return usage(fmt::format("--{}: '{}' is not a list of ports", name, text),
                       fmt::format("give numbers from 1 to 65535, such as --{} 80,443", name));
        auto& all = c.*member;
        all.insert(all.end(), list->begin(), list->end());
        return {};
      }));
}
}  // namespace

Option csv(char letter) {
  return same_everywhere(flag(letter, "csv", "comma-separated values with a header line"));
}
Option ipv4() { return ip_version('4', "ipv4", "only IPv4", 4); }
Option ipv6() { return ip_version('6', "ipv6", "only IPv6", 6); }
Option wide(char letter) {
  return same_everywhere(flag(letter, "wide", "columns wide enough for any IPv6 address"));
}
Option local_ports(char letter) {
  return ports(letter, "localport", "only these local ports", &Config::local_ports);
}
Option remote_ports(char letter) {
  return ports(letter, "remoteport", "only these remote ports", &Config::remote_ports);
}

std::vector<Option> task_filters(bool uid_letter) {
  return {pid(), tid(), uid(uid_letter ? 'u' : 0), comm(), cgroup()};
}

Option folded() {
  return same_everywhere(flag('f', "folded", "one line per stack, for flame graphs"));
}
Option offset(char letter) {
  return same_everywhere(flag(letter, "offset", "print offsets within functions"));
}

Option svg() {
  return same_everywhere(value(
      0, "svg", "FILE",
      "write an interactive flame graph to this file (-: standard output) at the end; stacks are "
      "then printed only with --folded, --json or --csv",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--svg: needs a file's name, or -");
        c.svg = text;
        return {};
      },
      Complete::file));
}

Option unwind() {
  return same_everywhere(
      value(0, "unwind", "HOW",
            "how user stacks are walked: auto (default), by the unwind tables of programs and "
            "libraries, and by frame pointers where there are none; fp, by frame pointers alone; "
            "off, not at all: only where the task stands",
            [](Config& c, std::string_view text) -> Result<void> {
              if (text == "auto")
                c.unwind = Config::automatic;
              else if (text == "fp")
                c.unwind = Config::frame_pointers;
              else if (text == "off")
                c.unwind = Config::no_walk;
              else
                return usage(fmt::format("--unwind: '{}' is not auto, fp or off", text), {});
              return {};
            }));
}

Option unwind_memory() {
  return limit("unwind-memory", "SIZE",
               "memory for unwind tables of programs and libraries that run (default: 64M)",
               &Config::unwind_memory, 1 << 30);
}

std::vector<Option> kernel_stacks() {
  return {folded(), svg(), offset(), stack_depth(), stack_storage()};
}

std::vector<Option> stacks() {
  return joined(
      {{same_everywhere(flag('U', "user-stacks-only", "no kernel stacks")),
        same_everywhere(flag('K', "kernel-stacks-only", "no user stacks")),
        same_everywhere(flag('d', "delimited", "a delimiter between kernel and user stack"))},
       kernel_stacks(),
       {unwind(), unwind_memory()}});
}

std::vector<std::pair<std::string_view, std::string_view>> stack_rules() {
  return {{"user-stacks-only", "kernel-stacks-only"}, {"folded", "json"}, {"folded", "csv"}};
}

Result<void> check_off_cpu(const Config& config) {
  if (config.number("min-block-time", 0) > config.number("max-block-time", UINT64_MAX))
    return usage("--min-block-time is above --max-block-time", "no wait can be both");
  if (config.given("user-threads-only") && config.given("kernel-threads-only"))
    return usage("--user-threads-only and --kernel-threads-only exclude each other",
                 "without both, all threads are traced");
  return {};
}

}  // namespace shared

std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists) {
  std::vector<Option> all;
  for (auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

namespace {

/// The report of events that the tool has, by whatever option; nullptr: none.
const EventReport* event_report(const Tool& tool) {
  auto* report = std::get_if<EventReport>(&tool.report);
  for (auto& other : tool.other_reports)
    if (!report) report = std::get_if<EventReport>(&other.report);
  return report;
}

/// Options that the library gives to every tool.
std::vector<Option> common_options(const Tool& tool) {
  using namespace shared;
  auto simple = [](char letter, std::string_view name, std::string_view doc) {
    return Option{letter, name, {}, doc, no_effect, {}, Complete::nothing, true};
  };
  std::vector<Option> all;
  if (tool.positionals == Positionals::interval_count || tool.positionals == Positionals::targets)
    all.push_back(seconds('i', "interval", "a report every so often", &Config::interval));
  all.push_back(duration());
  all.push_back(simple('j', "json", "one JSON object per line"));
  all.push_back(csv());
  all.push_back(simple(0, "strict", "end with exit status 4 if data was lost"));
  all.push_back(simple(0, "exit-status", "with -- COMMAND: end with its exit status"));
  if (auto* report = event_report(tool))
    all.push_back(limit("ring-size", "BYTES",
                        report->frequent
                            ? "room for events on their way (default: 2M)"
                            : "room for events on their way (default: 128K, 1M with stacks)",
                        &Config::ring_bytes, 1 << 30));
  all.push_back(simple(0, "explain", "print how this kernel would be traced, and end"));
  all.push_back(simple('v', "verbose", "say more on stderr: hooks, sizes, the verifier's words"));
  all.push_back(simple('h', "help", "print this help"));
  all.push_back(simple('V', "version", "print the version"));
  return all;
}

Result<void> take_positionals(const Tool& tool, Config& c, const std::vector<std::string>& words) {
  auto bad = [&](const std::string& word, std::string_view name) {
    return usage(fmt::format("'{}' is not {}", word, name),
                 fmt::format("see {} --help", tool.name));
  };
  if (tool.positionals == Positionals::cgroups) {
    for (auto& word : words)
      if (auto r = take_cgroup(c, word); !r) return r;
    return {};
  }
  if (tool.positionals == Positionals::targets) {
    c.targets = words;
    return {};
  }
  std::size_t most = tool.positionals == Positionals::interval_count ? 2
                     : tool.positionals == Positionals::duration     ? 1
                                                                     : 0;
  if (words.size() > most)
    return usage(fmt::format("unexpected argument '{}'", words[most]),
                 fmt::format("a command to run comes after --; see {} --help", tool.name));
  if (words.empty()) return {};
  auto first = parse_seconds(words[0]);
  bool interval = tool.positionals == Positionals::interval_count;
  if (!first || *first < kShortest || *first > 1e9)
    return bad(words[0], interval ? "an interval in seconds" : "a duration in seconds");
  if (c.given(interval ? "interval" : "duration"))
    return usage(fmt::format("'{}' and --{} are two {}", words[0],
                             interval ? "interval" : "duration",
                             interval ? "intervals" : "durations"));
  (interval ? c.interval : c.duration) = *first;
  if (words.size() == 2) {
    auto count = parse_unsigned(words[1]);
    if (!count || *count == 0) return bad(words[1], "a number of reports");
    c.count = *count;
  }
  return {};
}

}  // namespace

std::vector<Option> all_options(const Tool& tool) {
  auto all = tool.options;
  for (auto& o : common_options(tool)) {
    // The tool's own spelling of a common option (another letter) comes first.
    bool has = false;
    for (auto& own : tool.options) {
      has |= own.name == o.name;
      if (own.letter && own.letter == o.letter) o.letter = 0;
    }
    if (!has) all.push_back(std::move(o));
  }
  return all;
}

Result<void> check_sort(const TableReport& table, const Config& c) {
  std::string known;
  for (auto& f : table.fields) {
    if (!c.holds(f.exists)) continue;
    if (f.key == c.sort) return {};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", f.key);
  }
  if (c.sort.empty()) return {};
  return usage(fmt::format("--sort: there is no key '{}'", c.sort),
               fmt::format("there are: {}", known));
}

const Report& chosen_report(const Tool& tool, const Config& config) {
  for (auto& other : tool.other_reports)
    if (config.given(other.when)) return other.report;
  return tool.report;
}

Result<Invocation> parse_command_line(const Tool& tool, const std::vector<std::string>& arguments) {
  Invocation invocation;
  Config& c = invocation.config;
  c.interval = tool.default_interval;

  auto options = all_options(tool);
  std::string letters = ":";
  std::vector<std::string> names;
  std::vector<option> longs;
  names.reserve(2 * options.size());
  constexpr int kFirst = 1000;  // above any letter
  for (std::size_t i = 0; i < options.size(); i++) {
    auto& o = options[i];
    int has_value = o.metavar.empty() ? no_argument : required_argument;
    if (o.letter) letters += std::string(1, o.letter) + (has_value ? ":" : "");
    for (auto name : {o.name, o.alias}) {
      if (name.empty()) continue;
      names.emplace_back(name);
      longs.push_back({names.back().c_str(), has_value, nullptr, kFirst + static_cast<int>(i)});
    }
  }
  longs.push_back({});

  // What follows -- is a command with options of its own.
  std::vector<std::string> own;
  bool command = false;
  own.emplace_back(tool.name);
  for (auto& a : arguments) {
    if (command) {
      c.command.push_back(a);
    } else if (a == "--") {
      command = true;
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
  auto see = fmt::format("see {} --help", tool.name);
  while (true) {
    int found = getopt_long(argc, argv.data(), letters.c_str(), longs.data(), nullptr);
    if (found == -1) break;
    std::string_view word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
    if (found == '?' || found == ':') {
      std::string name = optopt && optopt < kFirst ? fmt::format("-{}", static_cast<char>(optopt))
                                                   : std::string(word.substr(0, word.find('=')));
      if (found == ':') return usage(fmt::format("option {} needs a value", name), see);
      if (optopt >= kFirst) return usage(fmt::format("option {} takes no value", name), see);
      return usage(fmt::format("unknown or ambiguous option {}", name), see);
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
    if (auto r = o->apply(c, text); !r) return r.error();
    c.give(o->name, text, o->adds_up);
  }
  if (invocation.what != Invocation::run) return invocation;

  std::vector<std::string> words(argv.begin() + optind, argv.begin() + argc);
  if (auto r = take_positionals(tool, c, words); !r) return r.error();
  if (c.given("json") && c.given("csv")) return usage("--json and --csv exclude each other", see);
  c.format = c.given("json")  ? OutputFormat::json
             : c.given("csv") ? OutputFormat::csv
                              : OutputFormat::text;
  if (auto* table = std::get_if<TableReport>(&chosen_report(tool, c))) {
    if (auto r = check_sort(*table, c); !r) return r.error();
    if (!c.given("top") && c.format == OutputFormat::text) c.top = table->top;
  }
  if (c.svg == "-" && c.holds("folded|json|csv"))
    return usage("--svg -: standard output is for one thing only", "name a file");
  if (c.given("exit-status") && c.command.empty())
    return usage("--exit-status needs a command after --", see);
  bool filters = false;
  for (auto& o : tool.options) filters |= o.name == "pid";
  if (!c.command.empty()) {
    if (!c.pids.empty() || !c.tids.empty())
      return usage("-- COMMAND and --pid or --tid exclude each other",
                   "the command and its children are what is traced");
    if (!filters) c.give("whole-system", "");
  }
  if (std::holds_alternative<SnapshotReport>(chosen_report(tool, c)) && c.filters_tasks())
    return usage("this report is about the whole machine",
                 "leave out the command and the filters by task");
  if ((c.node || !c.zone.empty()) && zones() && (*zones()).ranges(c.node, c.zone).empty())
    return usage("--node and --zone: no memory here is of both", "see /proc/zoneinfo");
  for (auto& [one, other] : tool.exclusive)
    if (c.given(one) && c.given(other))
      return usage(fmt::format("--{} and --{} exclude each other", one, other), see);
  if (tool.check)
    if (auto r = tool.check(c); !r) return r.error();
  return invocation;
}

}  // namespace coretap
