// Shared by the tests of several of these tools.
#pragma once

#include "../harness.hpp"

namespace coretap::tooltest {
inline namespace app {

/// The first of these programs that exists.
inline std::string first_program(const Strings& paths, const std::string& what) {
  for (auto& path : paths)
    if (::access(path.c_str(), X_OK) == 0) return path;
  throw Skip(what + " is not installed");
}

/// As observe_all(), with a workload that ends and tools that run here only with options: they are
/// not tried first.
inline Observed observe_with(const std::vector<Strings>& tools, const Strings& workload) {
  Scene scene(workload, {});
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto& tool : tools) {
    auto words = scene.filled(tool);
    tracers.push_back(
        std::make_unique<Tracer>(words.at(0), Strings(words.begin() + 1, words.end())));
  }
  auto seen = scene.finish();
  for (auto& tracer : tracers) seen.add(*tracer);
  return seen;
}

/// No event is missing; texts may be truncated.
inline void expect_all(const Report& report) {
  expect_fields(report.ledger, {{"lost", 0}, {"unmatched", 0}, {"untracked", 0}});
}

}  // namespace app
}  // namespace coretap::tooltest
