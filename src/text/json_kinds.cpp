#include "text/json_kinds.hpp"

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
  all.push_back({"ledger", "last", Ledger::keys()});
  for (auto& kind : all)
    kind.keys.insert(kind.keys.begin() + 1,
                     key("tool", "string", fmt::format("\"{}\"", tool.name)));
  return all;
}

}  // namespace coretap
