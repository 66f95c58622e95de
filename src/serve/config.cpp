#include "serve/config.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

// Only the parser, without exceptions, streams and the TOML formatter.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

#include "base/descriptors.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "cli/words.hpp"
#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "run/record.hpp"
#include "serve/config_keys.hpp"
#include "serve/endpoint.hpp"

namespace coretap::serve {

namespace {

constexpr std::uint64_t kMostSeries = 100'000, kUsualSeries = 500;
constexpr std::uint64_t kMostEvery = 3600;  // seconds between pushes of metrics
constexpr std::size_t kMostHeaders = 16, kMostHeaderBytes = 1024;
constexpr std::size_t kMostTriggers = record::kMostAlarms;
constexpr std::uint64_t kLeastSize = 64 << 10, kMostSize = 1ULL << 50;
constexpr double kLongestTime = 7 * 24 * 3600;
constexpr std::uint64_t kEventRate = 20'000;  // max_events_per_second of tools that show each event

/// True for a header that a request may have beside those that coretap sets.
bool is_header(std::string_view name, std::string_view value) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  constexpr std::string_view kOwn[] = {"host",       "content-length",    "content-type",
                                       "connection", "transfer-encoding", "content-encoding"};
  std::string lower;
  for (unsigned char c : name) {
    if (!isalnum(c) && kOthers.find(static_cast<char>(c)) == kOthers.npos) return false;
    lower += static_cast<char>(tolower(c));
  }
  return !name.empty() && std::ranges::find(kOwn, lower) == std::end(kOwn) &&
         name.size() + value.size() <= kMostHeaderBytes &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Reads the parts of a configuration. Keeps the first error; what comes after it does not matter.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  const std::optional<Error>& error() const { return error_; }

  void config(const toml::table& table, ServeConfig& config) {
    keys(table, {"serve", "otlp", "hindsight", "tool"});
    if (auto* serve = table_at(table, "serve", "serve must be a table: [serve]")) {
      keys(*serve, kServeKeys);
      text(*serve, "listen", config.listen);
      number(*serve, "max_series", 1, kMostSeries, config.max_series);
    }
    if (auto* push = table_at(table, "otlp", "otlp must be a table: [otlp]"))
      otlp(*push, config.otlp.emplace());
    if (auto* kept = table_at(table, "hindsight", "hindsight must be a table: [hindsight]"))
      hindsight(*kept, config.hindsight.emplace());
    if (auto* tools = table.get("tool")) {
      if (!tools->is_array()) return fail(*tools, "tools are a list of tables: [[tool]]");
      for (auto& node : *tools->as_array()) {
        if (!node.is_table()) return fail(node, "each tool is a table: [[tool]]");
        tool(*node.as_table(), config.entries.emplace_back());
      }
    }
  }

 private:
  void fail(const toml::node& node, std::string_view what, std::string hint = {}) {
    if (!error_) error_ = usage(fmt::format("{}: {}", where(node), what), std::move(hint));
  }
  std::string where(const toml::node& node) const {
    return fmt::format("{}:{}", file_, node.source().begin.line);
  }

  void keys(const toml::table& table, const std::vector<std::string_view>& known) {
    for (auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      auto meant = did_you_mean(key.str(), known);
      return fail(node, fmt::format("unknown key '{}'", key.str()),
                  meant.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : meant);
    }
  }
  void keys(const toml::table& table, std::span<const ConfigKey> known) {
    std::vector<std::string_view> names;
    for (auto& key : known) names.push_back(key.name);
    keys(table, names);
  }
  const toml::table* table_at(const toml::table& table, std::string_view key,
                              std::string_view otherwise) {
    auto* node = table.get(key);
    if (node && !node->is_table()) fail(*node, otherwise);
    return node ? node->as_table() : nullptr;
  }
  void text(const toml::table& table, std::string_view key, std::string& to) {
    auto* node = table.get(key);
    if (!node) return;
    auto* value = node->as_string();
    if (!value || value->get().empty())
      return fail(*node, fmt::format("{} must be text in quotes", key));
    to = value->get();
  }
  void number(const toml::table& table, std::string_view key, std::uint64_t least,
              std::uint64_t most, std::uint64_t& to) {
    auto* node = table.get(key);
    if (!node) return;
    auto* value = node->as_integer();
    if (!value || value->get() < static_cast<std::int64_t>(least) ||
        value->get() > static_cast<std::int64_t>(most))
      return fail(*node, fmt::format("{} must be a whole number from {} to {}", key, least, most));
    to = static_cast<std::uint64_t>(value->get());
  }

  void truth(const toml::table& table, std::string_view key, bool& to) {
    auto* node = table.get(key);
    if (!node) return;
    if (!node->is_boolean()) return fail(*node, fmt::format("{} must be true or false", key));
    to = node->as_boolean()->get();
  }
  void seconds(const toml::table& table, std::string_view key, double least, double& to) {
    std::string given;
    text(table, key, given);
    if (given.empty()) return;
    auto value = parse_seconds(given);
    if (!value || *value < least || *value > kLongestTime)
      return fail(*table.get(key),
                  fmt::format("{} must be a time of at least {:g} s, as \"5m\"", key, least));
    to = *value;
  }
  void size(const toml::table& table, std::string_view key, std::uint64_t& to) {
    std::string given;
    text(table, key, given);
    if (given.empty()) return;
    auto value = parse_size(given);
    if (!value || *value < kLeastSize || *value > kMostSize)
      return fail(*table.get(key), fmt::format("{} must be a size, as \"256M\"", key));
    to = *value;
  }

  void hindsight(const toml::table& table, Hindsight& h) {
    keys(table, kHindsightKeys);
    h.where = where(table);
    text(table, "directory", h.store.directory);
    if (!h.store.directory.empty() && h.store.directory[0] != '/')
      fail(*table.get("directory"), "directory must be an absolute path");
    seconds(table, "last", kLeastLast, h.store.last);
    seconds(table, "after", 0, h.store.after);
    size(table, "most", h.store.most);
    size(table, "free", h.store.free);
    number(table, "keep", 1, kMostKeep, h.store.keep);
    std::string at_most;
    text(table, "at_most", at_most);
    if (!at_most.empty())
      if (auto r = take_times(h.store, at_most); !r)
        fail(*table.get("at_most"), "at_most: " + r.error().what, r.error().hint);
    text(table, "token_file", h.token_file);
    auto* on = table.get("on");
    if (!on) return;
    auto* all = on->as_array();
    if (!all || all->size() > kMostTriggers)
      return fail(*on, fmt::format("on must be a list of at most {} triggers: [\"load > 4/cpu\"]",
                                   kMostTriggers));
    for (auto& one : *all) {
      auto* trigger = one.as_string();
      if (!trigger) return fail(one, "on: a trigger must be text in quotes");
      h.on.push_back({trigger->get(), where(one)});
    }
  }

  void otlp(const toml::table& table, Otlp& otlp) {
    keys(table, kOtlpKeys);
    text(table, "endpoint", otlp.endpoint);
    if (otlp.endpoint.empty())
      return fail(table, "otlp needs endpoint", "endpoint = \"http://127.0.0.1:4318\"");
    if (auto good = parse_endpoint(otlp.endpoint); !good)
      fail(*table.get("endpoint"), good.error().what, good.error().hint);
    if (auto* headers =
            table_at(table, "headers", "headers must be a table: { X-Scope-OrgID = \"ops\" }"))
      header_list(*headers, otlp);
    number(table, "every", 1, kMostEvery, otlp.every);
  }

  void header_list(const toml::table& table, Otlp& otlp) {
    if (table.size() > kMostHeaders)
      return fail(table, fmt::format("headers: there can be {}", kMostHeaders));
    for (auto& [key, value] : table) {
      auto* text = value.as_string();
      if (!text) return fail(value, fmt::format("headers: {} must be text in quotes", key.str()));
      if (!is_header(key.str(), text->get()))
        return fail(value, fmt::format("headers: {} is no header that can be added", key.str()));
      otlp.headers.emplace_back(key.str(), text->get());
    }
  }

  void events(const toml::table& table, EventFile& e) {
    keys(table, kEventKeys);
    text(table, "file", e.file);
    truth(table, "otlp", e.otlp);
    if (e.file.empty() && !e.otlp) return fail(table, "events needs file, or otlp = true");
    text(table, "max_bytes", e.max_bytes);
    number(table, "keep", 1, 99, e.keep);
    number(table, "per_second", 1, 1 << 30, e.per_second);
  }

  void tool(const toml::table& table, Entry& entry) {
    keys(table, kToolKeys);
    entry.where = where(table);
    text(table, "run", entry.run);
    if (entry.run.empty()) return fail(table, "a tool needs run", "run = \"TOOL OPTIONS\"");
    text(table, "name", entry.name);
    truth(table, "hindsight", entry.hindsight);
    number(table, "max_series", 1, kMostSeries, entry.max_series);
    if (table.get("max_events_per_second"))
      number(table, "max_events_per_second", 0, 1ULL << 40, entry.max_rate.emplace());
    if (auto* labels = table.get("labels")) {
      auto* all = labels->as_array();
      if (!all) return fail(*labels, "labels must be a list: [\"comm\"]");
      for (auto& label : *all) {
        auto* name = label.as_string();
        if (!name) return fail(label, "a label must be text in quotes");
        entry.labels.push_back(name->get());
      }
    }
    if (auto* e = table_at(table, "events",
                           "events must be a table: { file = \"/var/log/coretap/exec.jsonl\" }"))
      events(*e, entry.events.emplace());
  }

  std::string file_;
  std::optional<Error> error_;
};

Error placed(const std::string& where, Error error) {
  error.what = fmt::format("{}: {}", where, error.what);
  error.status = kUsage;
  return error;
}

/// Can its tool be recorded, and its name be that of files?
Result<void> check_recorded(const Entry& entry, const std::vector<std::string>& words) {
  const auto is_plain = [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  };
  if (!std::ranges::all_of(entry.name, is_plain))
    return usage(fmt::format("'{}' cannot be the name of files", entry.name),
                 "with hindsight = true, a name has letters, digits, - and _");
  auto tool = to_record(words);
  return tool ? Result<void>() : tool.error();
}

/// The first word of a file that only some may read.
Result<std::string> read_token(const std::string& file) {
  constexpr std::size_t kLeast = 16, kMost = 256;
  auto text = read_file(file, 2 * kMost);
  if (!text) return system_error(fmt::format("cannot read token_file {}", file), errno, kUsage);
  const auto words = words_in(*text);
  if (words.size() != 1 || words[0].size() < kLeast || words[0].size() > kMost ||
      !std::ranges::all_of(words[0], [](char c) { return c > ' ' && c <= '~'; }))
    return usage(
        fmt::format("token_file {} has no word of {} to {} characters", file, kLeast, kMost),
        "openssl rand -hex 32 makes one");
  return std::string(words[0]);
}

using Plans = std::vector<std::shared_ptr<const metrics::Plan>>;  // of the entries

/// Is it about a metric of a tool that is kept?
Result<void> check_threshold(const metrics::Threshold& threshold, const ServeConfig& config,
                             const Plans& plans) {
  bool any = false;
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < plans.size(); i++) {
    if (!config.entries[i].hindsight) continue;
    auto is = metrics::applies(threshold, *plans[i], config.entries[i].name);
    if (!is) return is.error();
    any |= *is;
    for (auto* families : {&plans[i]->families, &plans[i]->totals})
      for (auto& family : *families) known.push_back(family.name);
  }
  if (any) return {};
  auto meant = did_you_mean(threshold.metric, known);
  return usage(fmt::format("no tool that is kept has the metric '{}'", threshold.metric),
               meant.empty() ? "coretap serve --check FILE lists them" : meant);
}

Result<void> check_hindsight(ServeConfig& config, const Plans& plans) {
  auto kept = [&](const Entry& entry) { return entry.hindsight; };
  auto first = std::ranges::find_if(config.entries, kept);
  if (!config.hindsight) {
    if (first == config.entries.end()) return {};
    return placed(first->where, usage("hindsight = true needs a table [hindsight]",
                                      "[hindsight] with last = \"5m\""));
  }
  auto& h = *config.hindsight;
  if (first == config.entries.end())
    return placed(h.where,
                  usage("hindsight has no tool to keep", "add hindsight = true to a [[tool]]"));
  if (std::ranges::count_if(config.entries, kept) > static_cast<long>(record::kMostTools))
    return placed(h.where,
                  usage(fmt::format("at most {} tools can be recorded", record::kMostTools)));
  for (auto& [text, where] : h.on) {
    if (metrics::names_metric(text)) {
      auto threshold = metrics::parse_threshold(text);
      if (!threshold) return placed(where, threshold.error());
      if (auto r = check_threshold(*threshold, config, plans); !r) return placed(where, r.error());
      h.thresholds.push_back(std::move(*threshold));
      continue;
    }
    auto rule = parse_trigger(text);
    if (!rule) return placed(where, rule.error());
    const bool of_tool = rule->kind == TriggerRule::event || rule->kind == TriggerRule::rate;
    if (of_tool && std::ranges::none_of(config.entries, [&](auto& entry) {
          return entry.hindsight && entry.arguments.front() == rule->of;
        }))
      return placed(where, usage(fmt::format("{} is no tool that is kept", rule->of),
                                 fmt::format("add [[tool]] with run = \"{}\" and hindsight = true",
                                             rule->of)));
    h.triggers.push_back(std::move(*rule));
  }
  if (h.token_file.empty()) return {};
  auto token = read_token(h.token_file);
  if (!token) return placed(h.where, token.error());
  h.token = std::move(*token);
  return {};
}

/// Divides the rest equally among tools without a limit, up to kUsualSeries each.
Result<void> divide_series(ServeConfig& config) {
  std::uint64_t given = 0, others = 0;
  for (auto& entry : config.entries) {
    given += entry.max_series;
    others += !entry.max_series;
  }
  if (given + others > config.max_series)
    return usage(fmt::format("the tools may have {} series together, but max_series is {}",
                             given + others, config.max_series),
                 "raise max_series in [serve], or lower it for tools");
  if (!others) return {};
  auto part = std::min(kUsualSeries, (config.max_series - given) / others);
  for (auto& entry : config.entries)
    if (!entry.max_series) entry.max_series = part;
  return {};
}

}  // namespace

bool Entry::operator==(const Entry& other) const {
  auto all = [](const Entry& e) {
    return std::tie(e.run, e.name, e.named, e.labels, e.max_series, e.max_rate, e.events,
                    e.hindsight);
  };
  return all(*this) == all(other);
}

bool Hindsight::operator==(const Hindsight& other) const {
  auto all = [](const Hindsight& h) {
    auto& s = h.store;
    return std::tie(s.directory, s.last, s.after, s.most, s.keep, s.free, s.dumps, s.per, h.on,
                    h.token_file);
  };
  return all(*this) == all(other);
}

metrics::ExportOptions Entry::export_options() const {
  return {.name = name,
          .named = named,
          .labels = labels,
          .max_series = max_series,
          .max_rate = max_rate.value_or(0)};
}

Result<ServeConfig> parse_config(std::string_view text, const std::string& file) {
  auto parsed = toml::parse(text, file);
  if (!parsed)
    return usage(fmt::format("{}:{}:{}: {}", file, parsed.error().source().begin.line,
                             parsed.error().source().begin.column, parsed.error().description()));
  Reader reader(file);
  ServeConfig config;
  reader.config(parsed.table(), config);
  if (reader.error()) return *reader.error();
  return config;
}

Result<void> check(ServeConfig& config) {
  std::set<std::string> names;
  Plans plans;
  for (auto& entry : config.entries) {
    auto fail = [&](Error error) { return placed(entry.where, std::move(error)); };
    auto words = command_words(entry.run);
    if (!words) return fail(words.error());
    if (!words->empty() && words->front() == "coretap") words->erase(words->begin());
    if (words->empty()) return fail(usage("the command line is empty"));
    auto call = called(words->front());
    if (!call.tool) return fail(no_such_tool(words->front()));
    words->front() = std::string(call.tool->name);
    if (!call.option.empty()) words->insert(words->begin() + 1, std::string(call.option));
    if (entry.events) {
      auto& e = *entry.events;
      if (e.otlp && !config.otlp)
        return fail(usage("its events are to be pushed, but nothing says where to",
                          "add [otlp] with endpoint = \"http://127.0.0.1:4318\""));
      words->emplace_back("--json");
      if (!e.file.empty())
        for (const auto& word : {fmt::format("--output={}", e.file), std::string("--append"),
                                 fmt::format("--rotate={},{}", e.max_bytes, e.keep)})
          words->push_back(word);
      if (e.per_second) words->push_back(fmt::format("--max-rate={}", e.per_second));
    }
    auto tool = build(*call.tool);
    auto parsed = parse_command_line(tool, {words->begin() + 1, words->end()});
    if (!parsed) return fail(parsed.error());
    if (parsed->what != Invocation::run)
      return fail(usage(fmt::format("'{}' asks for help, not for a run", entry.run)));
    if (!parsed->config.command.empty())
      return fail(usage("a command after -- cannot be served", "tools are to run all the time"));
    const bool has_file = entry.events && !entry.events->file.empty();
    if (!has_file && parsed->config.given("output"))
      return fail(
          usage("--output is not for served tools", "events = { file = \"...\" } writes them"));
    tool.report = chosen_report(tool, parsed->config);
    auto plan = metrics::make_plan(tool, parsed->config, entry.labels);
    if (!plan) return fail(plan.error());
    bool shows_events = (*plan)->shape.kind == MetricShape::events;
    if (entry.events && !shows_events)
      return fail(usage(fmt::format("{} shows no single events that could be written or pushed",
                                    words->front())));
    entry.profiles = (*plan)->shape.kind == MetricShape::stacks;
    if (!entry.max_rate && shows_events) entry.max_rate = kEventRate;
    plans.push_back(*plan);
    entry.named = !entry.name.empty();
    if (entry.name.empty()) entry.name = words->front();
    if (!names.insert(entry.name).second)
      return fail(usage(fmt::format("there are two tools with the name '{}'", entry.name),
                        "give each a name of its own: name = \"...\""));
    if (entry.hindsight)
      if (auto r = check_recorded(entry, *command_words(entry.run)); !r) return fail(r.error());
    entry.arguments = std::move(*words);
  }
  if (config.entries.empty())
    return usage("no tool is configured", "add [[tool]] with run = \"TOOL OPTIONS\"");
  if (auto r = check_hindsight(config, plans); !r) return r.error();
  return divide_series(config);
}

}  // namespace coretap::serve
