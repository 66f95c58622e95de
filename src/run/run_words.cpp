#include "run/run_words.hpp"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/recall.hpp"
#include "cli/help.hpp"
#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/version.hpp"
#include "program/attach.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/target_attach.hpp"

namespace coretap {

namespace {

/// The probed programs and libraries.
std::vector<std::string> files_of(const CandidatePlan* way) {
  std::set<std::string> files;
  if (way)
    for (auto& [program, places] : way->places)
      for (auto& point : places.points) files.insert(point.path);
  return {files.begin(), files.end()};
}

/// " (MIN_US 10000, --pid 123)": the arguments and options that select data; empty: there are none.
std::string selection(const Session& s) {
  auto words = s.config.arguments;
  for (auto& group : option_groups(s.tool)) {
    if (group.title != "Options" && group.title != "Filters") continue;
    for (auto& o : group.options)
      if (s.config.given(o.name))
        words.push_back(
            fmt::format("--{}{}{}", o.name, o.metavar.empty() ? "" : " ", s.config.text(o.name)));
  }
  return words.empty() ? ""
                       : fmt::format(" ({})", printable(fmt::to_string(fmt::join(words, ", "))));
}

/// The tool's words, with what the options select in place of {stacks} and {cpus}.
std::string subject(const Session& s) {
  std::string text(s.tool.announce);
  auto replace = [&](std::string_view mark, const std::string& words) {
    if (auto at = text.find(mark); at != text.npos) text.replace(at, mark.size(), words);
  };
  replace("{stacks}", s.config.given("kernel-stacks-only") ? "kernel stack"
                      : s.config.given("user-stacks-only") ? "user stack"
                                                           : "kernel and user stack");
  replace("{cpus}", s.config.given("cpu") ? fmt::format("CPU {}", s.config.text("cpu"))
                                          : std::string("all CPUs"));
  return text;
}

struct AttachedHook {
  std::string name;
  std::vector<std::string> attached, files = {};
};

std::vector<AttachedHook> attached_hooks(const Session& s) {
  const auto bytes = recalled(Ask::hooks, "", [&] {
    std::vector<std::string> all;
    for (auto& h : s.plan.hooks) {
      if (!h.wanted) continue;
      auto* used = h.used();
      all.push_back(packed({std::string(h.hook->name),
                            packed(used ? used->targets : std::vector<std::string>()),
                            packed(files_of(used))}));
    }
    return packed(all);
  });
  std::vector<AttachedHook> hooks;
  for (auto& one : unpacked(bytes))
    if (auto parts = unpacked(one); parts.size() == 3)
      hooks.push_back({parts[0], unpacked(parts[1]), unpacked(parts[2])});
  return hooks;
}

/// With --debug all places, with --verbose if they are few.
bool lists_targets(const Session& s) {
  constexpr std::size_t kFew = 20;
  return s.config.given("debug") ||
         (s.config.given("verbose") && s.plan.targets.points.size() <= kFew);
}

}  // namespace

std::string build_words() {
  std::string_view commit = kCommit;
  return fmt::format("{}libbpf {}, compiler {}",
                     commit.empty() ? "" : fmt::format("commit {}, ", commit),
                     std::string_view(libbpf_version_string()).substr(1), kCompiler);
}

void record_header(const Session& s) {
  kernel_release();
  attached_hooks(s);
  recalled(Ask::limits, "", [&] { return packed(s.plan.limits); });
}

void print_header(Session& s) {
  if (s.config.format != OutputFormat::json || !s.prints()) return;
  JsonLine line("header", s.tool.name);
  line.text("version", kVersion);
  line.text("kernel", kernel_release())
      .text("time", iso_time(s.began_ns))
      .number("monotonic_ns", s.began_ns);
  line.key("options").begin_object();
  for (auto& [name, value] : s.config.given_options())
    if (name != "record" && name != "anonymous" && name != "perfetto")
      line.text(name, value);  // `coretap show` prints the same line
  line.end_object().key("hooks").begin_array();
  for (auto& hook : attached_hooks(s)) {
    line.begin_object().text("hook", hook.name).texts("attached", hook.attached);
    if (!hook.files.empty()) line.texts("files", hook.files);
    line.end_object();
  }
  line.end_array().texts(
      "limits", unpacked(recalled(Ask::limits, "", [&] { return packed(s.plan.limits); })));
  s.out.line(line.finish());
}

void print_ledger(Session& s) {
  if (s.config.format == OutputFormat::json && s.prints()) {
    JsonLine line("ledger", s.tool.name);
    s.ledger.json(line);
    s.out.line(line.finish());
    s.out.flush();
  }
  if (s.quiet) return;
  auto text = s.ledger.text(s.config.given("verbose"), STDERR_FILENO);
  if (!text.empty()) fputs(fmt::format("{}: {}", s.tool.shown_name(), text).c_str(), stderr);
}

void print_plan(Session& s) {
  const bool json = s.config.format == OutputFormat::json;
  if (json) {
    for (auto& line : explain_json(s.plan, s.tool.name)) s.out.line(line);
  } else {
    s.out.write(explain(s.plan, true));
    for (auto& l : s.plan.limits) s.out.line("limit: " + l);
    s.out.line("maps:");
  }
  for (auto* map : maps_of(s.object.get())) {
    if (!bpf_map__autocreate(map)) continue;
    const std::string_view name = bpf_map__name(map);
    const auto entries = bpf_map__max_entries(map), key = bpf_map__key_size(map),
               value = bpf_map__value_size(map);
    JsonLine line("map", s.tool.name);
    line.text("map", name).number("entries", entries);
    line.number("key_bytes", key).number("value_bytes", value);
    s.out.line(json ? std::string(line.finish())
                    : fmt::format("  {}: {} entries of {} + {} bytes", name, entries, key, value));
  }
}

void announce(Session& s) {
  for (auto& h : s.plan.hooks)
    if (h.hook->targets && h.used())
      s.say(fmt::format("tracing {}{}", fmt::join(h.used()->targets, ", "),
                        lists_targets(s) ? "\n" + list_targets(s.plan.targets) : ""));
  s.verbose("attached:\n" + explain(s.plan, false));
  if (s.config.format != OutputFormat::text || s.exporter) return;
  auto text = subject(s) + selection(s);
  if (!s.config.command.empty())
    text += " until the command ends";
  else if (s.config.schedule.duration > 0)
    text += fmt::format(" for {:g} s", s.config.schedule.duration);
  fputs((text + "... Hit Ctrl-C to end.\n").c_str(), stderr);
}

}  // namespace coretap
