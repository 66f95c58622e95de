#include "tool_tests.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <stdexcept>

#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "tracer.hpp"

namespace coretap::tooltest {

namespace {

std::map<std::string, ToolTests>& declared() {
  static std::map<std::string, ToolTests> all;
  return all;
}

}  // namespace

const char* name_of(ReportKind kind) {
  constexpr const char* kNames[] = {"events",      "aggregate", "stacks",
                                    "allocations", "snapshot",  "recorder"};
  return kNames[static_cast<int>(kind)];
}

void PrintTo(ReportKind kind, std::ostream* out) { *out << name_of(kind); }

DeclareTests::DeclareTests(ToolTests tests) {
  auto name = tests.stress.tool = tests.name;
  if (tests.reports.empty()) tests.reports = {{tests.stress.kind}};
  if (!declared().emplace(name, std::move(tests)).second)
    throw std::logic_error("the tests of " + name + " are declared twice");
}

const std::map<std::string, ToolTests>& declared_tests() { return declared(); }

const ToolTests& tests_of(const std::string& tool) {
  auto found = declared().find(tool);
  if (found == declared().end())
    throw std::runtime_error("no test file declares the tests of " + tool);
  return found->second;
}

ToolTests::Events events_for(const std::string& tool) {
  auto events = tests_of(tool).events;
  events.command.at(0) = workload_path(events.command[0]);
  return events;
}

Representative representative(ReportKind kind) {
  // Some of the tests' options conflict with other options: reports without options come first. Of
  // snapshots, those come first that need no BPF programs (extfrag -i).
  const bool wanted = kind != ReportKind::snapshot;
  for (bool plain : {wanted, !wanted})
    for (auto& [name, tests] : declared())
      for (auto& report : tests.reports)
        if (report.kind == kind && report.options.empty() == plain && !expected_missing(name))
          return {name, report.options};
  throw std::runtime_error(std::string("no tool has a report of kind ") + name_of(kind));
}

bool with_all_tools() {
  auto* wanted = ::getenv("CORETAP_ALL_TOOLS");
  return wanted && std::string_view(wanted) == "1";
}

std::string declarations_as_json() {
  rapidjson::StringBuffer buffer;
  for (auto& [name, tests] : declared()) {
    rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
    auto text = [&](const char* key, const std::string& value) {
      json.Key(key);
      json.String(value.c_str());
    };
    auto list = [&](const char* key, const Strings& words) {
      json.Key(key);
      json.StartArray();
      for (auto& word : words) json.String(word.c_str());
      json.EndArray();
    };
    json.StartObject();
    text("tool", name);
    json.Key("alone");
    json.Bool(tests.alone);
    json.Key("events");
    json.StartObject();
    list("options", tests.events.options);
    list("command", tests.events.command);
    json.EndObject();
    const bool intervals =
        tests.reports.at(0).kind == ReportKind::aggregate &&
        std::ranges::count(all_options(build(*find_tool(name))), "interval", &Option::name) > 0;
    json.Key("long_run");
    json.StartArray();
    for (auto& run : tests.long_run) {
      json.StartObject();
      text("name", run.of.empty() ? name : name + " " + run.of);
      list("arguments", run.arguments.empty() && intervals ? "-i 10" : run.arguments);
      json.Key("holds_results");
      json.Bool(run.holds_results);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    buffer.Put('\n');
  }
  return buffer.GetString();
}

}  // namespace coretap::tooltest
