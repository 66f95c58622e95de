// What the tests of several of these tools say.
#pragma once

#include "../harness.hpp"

namespace coretap::tooltest {
inline namespace app {

/// The first of these programs that is there.
inline std::string first_program(const Strings& paths, const std::string& what) {
  for (auto& path : paths)
    if (::access(path.c_str(), X_OK) == 0) return path;
  throw Skip(what + " is not installed");
}

/// As observe_all(), of a workload that ends, with tools that run here only with options: they are
/// not tried before.
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

/// Nothing that happened is missing, but for texts that are cut.
inline void expect_all(const Report& report) {
  expect_fields(report.ledger, {{"lost", 0}, {"unmatched", 0}, {"untracked", 0}});
}

}  // namespace app
}  // namespace coretap::tooltest
