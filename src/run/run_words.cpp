#include "run/run_words.hpp"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/clock.hpp"
#include "coretap/version.hpp"
#include "program/attach.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/target_attach.hpp"

namespace coretap {

namespace {

/// The probed programs and libraries.
std::set<std::string> files_of(const CandidatePlan& way) {
  std::set<std::string> files;
  for (auto& [program, places] : way.places)
    for (auto& point : places.points) files.insert(point.path);
  return files;
}

void print_sizes(Session& s) {
  std::string text = "maps:\n";
  for (auto* map : maps_of(s.object.get())) {
    if (!bpf_map__autocreate(map)) continue;
    text +=
        fmt::format("  {}: {} entries of {} + {} bytes\n", bpf_map__name(map),
                    bpf_map__max_entries(map), bpf_map__key_size(map), bpf_map__value_size(map));
  }
  s.out.write(text);
}

void print_plan_json(Session& s) {
  for (auto& line : explain_json(s.plan, s.tool.name)) s.out.line(line);
  for (auto* map : maps_of(s.object.get())) {
    if (!bpf_map__autocreate(map)) continue;
    JsonLine line("map", s.tool.name);
    line.text("map", bpf_map__name(map));
    line.number("entries", bpf_map__max_entries(map));
    line.number("key_bytes", bpf_map__key_size(map));
    line.number("value_bytes", bpf_map__value_size(map));
    s.out.line(line.finish());
  }
}

}  // namespace

void print_header(Session& s) {
  if (s.config.format != OutputFormat::json || !s.prints()) return;
  JsonLine line("header", s.tool.name);
  line.text("version", kVersion);
  line.text("kernel", kernel_release())
      .text("time", iso_time(s.began_ns))
      .number("monotonic_ns", s.began_ns);
  line.key("options").begin_object();
  for (auto& [name, value] : s.config.given_options()) line.text(name, value);
  line.end_object().key("hooks").begin_array();
  for (auto& h : s.plan.hooks) {
    if (!h.wanted) continue;
    line.begin_object().text("hook", h.hook->name);
    auto* used = h.used();
    line.texts("attached", used ? used->targets : std::vector<std::string>());
    if (used && !used->places.empty()) line.texts("files", files_of(*used));
    line.end_object();
  }
  line.end_array().texts("limits", s.plan.limits);
  s.out.line(line.finish());
}

void print_ledger(Session& s) {
  if (s.config.format == OutputFormat::json && s.prints()) {
    JsonLine line("ledger", s.tool.name);
    s.ledger.json(line);
    s.out.line(line.finish());
    s.out.flush();
  }
  auto text = s.ledger.text(s.config.given("verbose"), STDERR_FILENO);
  if (!text.empty()) fputs(fmt::format("{}: {}", s.tool.name, text).c_str(), stderr);
}

void print_plan(Session& s) {
  if (s.config.format == OutputFormat::json) {
    print_plan_json(s);
    return;
  }
  s.out.write(explain(s.plan, true));
  for (auto& l : s.plan.limits) s.out.line("limit: " + l);
  print_sizes(s);
}

void announce(Session& s) {
  for (auto& l : s.plan.limits) s.say("note: " + l);
  for (auto& h : s.plan.hooks)
    if (h.hook->targets && h.used())
      s.say(fmt::format("tracing {}{}", fmt::join(h.used()->targets, ", "),
                        s.config.given("debug") ? "\n" + list_targets(s.plan.targets) : ""));
  s.verbose("attached:\n" + explain(s.plan, false));
  if (s.config.format != OutputFormat::text || s.exporter) return;
  auto text = std::string(s.tool.announce);
  if (!s.config.command.empty())
    text += " until the command ends";
  else if (s.config.schedule.duration > 0)
    text += fmt::format(" for {:g} s", s.config.schedule.duration);
  fputs((text + "... Hit Ctrl-C to end.\n").c_str(), stderr);
}

}  // namespace coretap
