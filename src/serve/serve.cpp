#include "serve/serve.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/parser.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "metrics/names.hpp"
#include "metrics/printed.hpp"
#include "program/session.hpp"
#include "run/run.hpp"
#include "serve/config.hpp"
#include "serve/supervisor.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

using namespace serve;

/// The parsed command line.
struct Own {
  std::vector<std::string> runs;
  std::string listen, textfile, print;
  double every = 0;
};

int fail(Error error) {
  error.what = fmt::format("serve: {}", error.what);
  return print_error("coretap", error);
}

Result<ServeConfig> load(const Own& own, const std::string& file) {
  constexpr std::size_t kMostBytes = 1 << 20;
  ServeConfig config;
  if (!file.empty()) {
    auto text = read_file(file, kMostBytes);
    if (!text) return Error{fmt::format("cannot read {}", file), strerror(errno), {}, kUsage};
    auto parsed = parse_config(*text, file);
    if (!parsed) return parsed.error();
    config = std::move(*parsed);
  }
  for (auto& run : own.runs)
    config.entries.push_back({.run = run, .where = fmt::format("--run '{}'", run)});
  if (!own.listen.empty()) config.listen = own.listen;
  if (auto r = check(config); !r) return r.error();
  return config;
}

/// The tool of an entry, as its command line configures it.
struct Chosen {
  Tool tool;
  Invocation invocation;
  std::shared_ptr<const metrics::Plan> plan;
};
Chosen chosen(const Entry& entry) {
  auto tool = build(*find_tool(entry.arguments.front()));
  auto parsed = parse_command_line(tool, {entry.arguments.begin() + 1, entry.arguments.end()});
  tool.report = chosen_report(tool, parsed->config);
  auto plan = *metrics::make_plan(tool, parsed->config, entry.labels);
  return {std::move(tool), std::move(*parsed), std::move(plan)};
}

std::string label_names(const metrics::Plan& plan) {
  std::vector<std::string> names;
  for (auto& l : plan.labels) names.push_back(l.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Prints which tools would run, what they would show, and whether they run here.
int check_here(const ServeConfig& config) {
  Sink out;
  bool all = true;
  for (auto& entry : config.entries) {
    auto one = chosen(entry);
    auto& plan = one.plan;
    out.line(fmt::format("{}: {}", entry.name, entry.run));
    for (auto* families : {&plan->families, &plan->totals})
      for (auto& f : *families)
        out.line(fmt::format("  {} ({}): {}", f.name, name_of(f.type), f.help));
    out.line(fmt::format("  labels: {}; at most {} lines, {} for each set of labels",
                         label_names(*plan), entry.max_series, plan->lines_per_series()));
    if (entry.profiles) out.line(fmt::format("  profiles: /debug/pprof/{}", entry.name));
    if (entry.hindsight) out.line("  hindsight: its recordings are kept");
    if (auto& e = entry.events)
      out.line(fmt::format("  events: {}{}", e->file,
                           !e->otlp          ? ""
                           : e->file.empty() ? "pushed"
                                             : ", and pushed"));
    Session s(one.tool, one.invocation.config);
    auto ready = prepare(s);
    all &= static_cast<bool>(ready);
    out.line(ready ? "  this kernel and these privileges can run it"
                   : fmt::format("  does not run here: {}{}{}", ready.error().what,
                                 ready.error().why.empty() ? "" : ": ", ready.error().why));
  }
  if (config.otlp)
    out.line(
        fmt::format("OTLP: metrics every {} s to {}", config.otlp->every, config.otlp->endpoint));
  if (auto& h = config.hindsight)
    out.line(fmt::format("hindsight: the last {:g} s, {} MB at most, {} triggers", h->store.last,
                         h->store.most >> 20, h->triggers.size() + h->thresholds.size()));
  auto status = end_of(out);
  return status ? status : all ? kOk : kUnsupported;
}

std::string metrics_of_all(const ServeConfig&) {
  std::string text;
  for (auto& registered : registry()) text += metrics::metrics_text(build(registered));
  return text;
}

std::string dashboard_of(const ServeConfig& config) {
  std::vector<metrics::Shown> shown;
  for (auto& entry : config.entries) {
    auto one = chosen(entry);
    shown.push_back({fmt::format("{}: {}", entry.run, one.tool.summary),
                     entry.named ? entry.name : "", one.plan});
  }
  if (shown.empty())
    for (auto& registered : registry()) {
      auto tool = build(registered);
      if (auto plan = metrics::make_plan(tool, Config(), {}))
        shown.push_back({fmt::format("{}: {}", tool.name, tool.summary), "", *plan});
    }
  return metrics::dashboard(shown) + '\n';
}

std::string rules_of_all(const ServeConfig&) { return metrics::rules(); }

std::string tables_of(const ServeConfig& config) {
  std::set<std::string_view> named;
  for (auto& entry : config.entries) named.insert(entry.arguments.front());
  auto text = metrics::tables_head();
  for (auto& registered : registry())
    if (named.empty() || named.contains(registered.name))
      text += '\n' + metrics::table(build(registered));
  return text;
}

/// Prints about the entries; without entries, about all tools with defaults.
struct Print {
  std::string_view name, doc;
  std::string (*text)(const ServeConfig&);
};
constexpr Print kPrints[] = {
    {"metrics", "names, types and labels of all tools", metrics_of_all},
    {"dashboard", "JSON for Grafana, of FILE and --run, or of all tools", dashboard_of},
    {"rules", "alerts for Prometheus", rules_of_all},
    {"tables", "for ClickHouse and lines of --json, of FILE and --run, or of all tools", tables_of},
};

std::string print_names(bool with_docs) {
  std::string all;
  for (auto& p : kPrints) {
    if (!all.empty()) all += &p == std::end(kPrints) - 1 ? " or " : ", ";
    all += p.name;
    if (with_docs) all += fmt::format(" ({})", p.doc);
  }
  return all;
}

}  // namespace

std::vector<Option> serve_options() {
  static const auto kPrintDoc = fmt::format("print {}", print_names(true));
  auto run =
      value(0, "run", "COMMAND", "serve this tool too, with its options: --run 'TOOL OPTIONS'",
            [](Config& c, std::string_view given) -> Result<void> {
              c.own<Own>().runs.emplace_back(given);
              return {};
            });
  run.adds_up = true;
  return {
      run,
      text(0, "listen", "ADDRESS", "answer at ADDRESS:PORT or unix:PATH (default: 127.0.0.1:9961)",
           "a value", [](Config& c) -> std::string& { return c.own<Own>().listen; }),
      flag(0, "check", "print what would run, its metrics and labels, and whether it runs here"),
      flag(0, "once", "print one page that covers --every seconds (default: 1), and exit"),
      text(
          0, "textfile", "FILE", "write the page to FILE for node_exporter, and listen to nothing",
          "a value", [](Config& c) -> std::string& { return c.own<Own>().textfile; },
          Complete::file),
      value(0, "every", "SECONDS", "how often --textfile is written (default: 15)",
            [](Config& c, std::string_view given) {
              return store(take_seconds("--every", given), c.own<Own>().every);
            }),
      one_of(text(0, "print", "WHAT", kPrintDoc, "a value",
                  [](Config& c) -> std::string& { return c.own<Own>().print; }),
             [] {
               std::vector<Completion> all;
               for (auto& p : kPrints) all.push_back({std::string(p.name), std::string(p.doc)});
               return all;
             }),
  };
}

int run_serve(const Config& config, const std::vector<std::string>& words) {
  const auto& own = config.own<Own>();
  auto* what = std::ranges::find(kPrints, own.print, &Print::name);
  const bool prints = what != std::end(kPrints);
  if (!prints && !own.print.empty())
    return fail(usage(fmt::format("--print: there is no '{}'", own.print),
                      fmt::format("use {}", print_names(false))));
  auto file = words.empty() ? std::string() : words[0];
  if (prints && file.empty() && own.runs.empty()) return print_text(what->text({}));
  if (file.empty() && own.runs.empty())
    return fail(usage("there is nothing to serve",
                      "name a FILE, or tools: coretap serve --run 'TOOL OPTIONS' --run TOOL"));
  auto loaded = load(own, file);
  if (!loaded) return fail(loaded.error());
  if (prints) return print_text(what->text(*loaded));
  if (config.given("check")) return check_here(*loaded);
  ServeOptions options{.once = config.given("once"),
                       .textfile = own.textfile,
                       .every = own.every > 0          ? own.every
                                : config.given("once") ? 1.0
                                                       : 15.0};
  if (options.once && !options.textfile.empty())
    return fail(usage("--once and --textfile cannot be used together"));
  std::function<Result<ServeConfig>()> again;
  if (!file.empty()) again = [&own, file] { return load(own, file); };
  return supervise(std::move(*loaded), options, again);
}

}  // namespace coretap
