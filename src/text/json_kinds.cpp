#include "text/json_kinds.hpp"

#include <rapidjson/document.h>

#include <utility>

#include <fmt/format.h>

#include "text/ledger.hpp"

namespace coretap {

namespace {

JsonKind header() {
  return {"header",
          "first",
          {type_key("header"), key("version", "string", "of coretap"),
           key("kernel", "string", "release, as of uname -r"), time_key(), monotonic_key(),
           key("options", "object", "options as given, by their long names"),
           key("hooks", "array of objects", "what was attached", {},
               {key("hook", "string", "its name"),
                key("attached", "array of strings", "attach points; empty if there was none"),
                key("files", "array of strings",
                    "programs and libraries whose functions are probed; "
                    "absent where there are none")}),
           key("limits", "array of strings", "what this kernel takes away from the data")}};
}

std::string ledger_doc(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kDocs[] = {
      {"seen",
       "events: shown, filtered, lost, untracked, unmatched, overwritten, missed, unjudged, "
       "limited and unread together"},
      {"shown", "events in the output"},
      {"filtered", "events excluded by filters"},
      {"lost", "events lost because the ring buffer was full"},
      {"untracked",
       "events not tracked because a map was full, or the kernel refused storage for a moment"},
      {"unmatched", "start or end not seen"},
      {"truncated", "shown, but shortened"},
      {"stacks_failed", "shown, but without their stack"},
      {"stacks_truncated", "shown with a user stack that ends too early, and is marked"},
      {"stacks_guessed",
       "shown with frames of the user stack that were inferred from frame pointers"},
      {"stacks_truncated_by", "the reasons for which user stacks end too early, how often each"},
      {"overwritten", "events that a flight recorder overwrote before the dump"},
      {"missed", "events for which the kernel skipped the program, as it was running on that CPU"},
      {"unjudged",
       "events that a filter expression could not judge: it reads memory that is not there"},
      {"limited", "events above --max-rate"},
      {"unread", "events that were in the ring buffer when tracing ended, too many to be shown"},
      {"data_lost",
       "any of the above but filtered, stacks_truncated, stacks_guessed, overwritten and limited: "
       "--strict ends with status 4"},
  };
  for (auto& [key, doc] : kDocs)
    if (key == name) return std::string(doc);
  return {};
}

/// Derived from the output of Ledger::json().
JsonKind ledger_kind() {
  JsonKind kind{"ledger", "last", {}};
  JsonLine line("ledger", "");
  Ledger{}.json(line);
  auto text = line.finish();
  rapidjson::Document written;
  written.Parse(text.data(), text.size());
  for (auto& member : written.GetObject()) {
    std::string name(member.name.GetString(), member.name.GetStringLength());
    if (name == "tool") continue;
    kind.keys.push_back(name == "type" ? type_key("ledger")
                                       : key(name,
                                             member.value.IsBool()     ? "boolean"
                                             : member.value.IsObject() ? "object"
                                                                       : "integer",
                                             ledger_doc(name)));
  }
  return kind;
}

}  // namespace

std::vector<JsonKind> json_kinds(const Tool& tool) {
  std::vector<JsonKind> all{header()};
  auto add = [&](const Report& report, std::string_view when) {
    for (auto& kind : report->json()) {
      all.push_back(kind);
      if (!when.empty()) all.back().written += fmt::format(", with --{}", when);
    }
  };
  add(tool.report, {});
  for (auto& other : tool.other_reports) add(other.report, other.when);
  all.push_back(ledger_kind());
  for (auto& kind : all)
    kind.keys.insert(kind.keys.begin() + 1,
                     key("tool", "string", fmt::format("\"{}\"", tool.name)));
  return all;
}

}  // namespace coretap
