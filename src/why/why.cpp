#include "why/why.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"
#include "text/errors.hpp"
#include "text/sink.hpp"
#include "why/watch.hpp"
#include "why/words.hpp"

namespace coretap {

namespace {

constexpr int kFound = 5;                      // --fail: there is a finding
constexpr std::size_t kMostBytes = 256 << 20;  // of recorded facts

int failed(Error error) {
  error.what = "why: " + error.what;
  return print_error("coretap", error);
}

Option percent(std::string_view name, std::string_view doc) {
  return number(0, name, "PERCENT", doc, {.least = 1, .most = 100}, {});
}

double share(const Config& config, std::string_view name, std::uint64_t otherwise) {
  return static_cast<double>(config.number(name, otherwise)) / 100;
}

Result<double> seconds_of(const std::vector<std::string>& words) {
  constexpr double kUsual = 10, kLeast = 1, kMost = 3600;
  if (words.empty()) return kUsual;
  auto seconds = parse_seconds(words[0]);
  if (seconds && *seconds >= kLeast && *seconds <= kMost) return *seconds;
  return usage(fmt::format("'{}' is not between 1 and 3600 seconds", words[0]));
}

Result<why::Facts> facts_of(const Config& config, double seconds) {
  if (auto path = std::string(config.text("from")); !path.empty()) {
    auto text = read_file(path, kMostBytes);
    if (!text) return system_error("cannot read " + printable(path), errno);
    return why::from_lines(*text, path);
  }
  auto cgroup = config.tasks.cgroup;
  if (!cgroup.empty()) {
    auto directory = cgroup_directory(cgroup);
    if (!directory) return directory.error();
    auto mount = cgroup2_mount();
    if (!mount) return mount.error();
    cgroup = directory->substr(std::min(mount->size(), directory->size()));
    while (cgroup.ends_with('/')) cgroup.pop_back();
    if (cgroup.empty()) cgroup = "/";
  }
  why::Target target{.pids = config.tasks.pids, .comms = config.tasks.comms, .cgroup = cgroup};
  auto subject = target.subject();
  if (!subject) return subject.error();
  fmt::print(stderr, "Looking for what costs {} time, {:g} s... Ctrl-C ends it early.\n", *subject,
             seconds);
  return why::watch(target, seconds);
}

}  // namespace

std::vector<Option> why_options() {
  return joined(
      {{shared::pid(), shared::comm(), shared::cgroup()},
       shared::container_filters(),
       {
           number('n', "findings", "N", "print the first N findings (default: 3)",
                  {.least = 1, .most = 100}, {}),
           flag(0, "all", "also what is below the thresholds"),
           percent("share", "least share of the busy time of a finding (default: 10)"),
           percent("pressure", "least share of the time of one thread (default: 5)"),
           flag(0, "json", "print one JSON object per line: the answer, and each finding"),
           flag(0, "fail", "exit status 5 if there is a finding"),
           flag(0, "rules", "print all rules, and trace nothing"),
           flag(0, "raw", "print the facts instead of findings, for --from"),
           free_text(0, "from", "FILE", "read facts that --raw has printed, and trace nothing",
                     Complete::file, "a file"),
       }});
}

int run_why(const Config& config, const std::vector<std::string>& words) {
  const why::Thresholds thresholds{.share = share(config, "share", 10),
                                   .pressure = share(config, "pressure", 5)};
  if (config.given("rules")) return print_text(why::rules_in_words(thresholds));
  auto seconds = seconds_of(words);
  if (!seconds) return failed(seconds.error());
  if (!config.tasks.pids.empty() + !config.tasks.comms.empty() + !config.tasks.cgroup.empty() > 1)
    return failed(usage("--pid, --comm and a cgroup cannot be used together", "give one of them"));
  auto facts = facts_of(config, *seconds);
  if (!facts) return failed(facts.error());
  if (config.given("raw")) return print_text(why::to_lines(*facts));
  auto answer = why::rank(*facts, thresholds, config.given("all"));
  const auto most = static_cast<std::size_t>(config.number("findings", 3));
  auto status = print_text(config.given("json") ? why::in_json(*facts, answer, most)
                                                : why::in_words(*facts, answer, most));
  return status || !config.given("fail") || !answer.silent.empty() ? status : kFound;
}

}  // namespace coretap
