#include "why/rank.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace coretap::why {

namespace {

using Sums = std::map<std::string, std::uint64_t, std::less<>>;  // ns by state

bool counts(const Account& account, const Facts& facts) {
  return !account.own && (facts.target.empty() ? !account.kernel : account.target);
}

/// A process that is meant to wait for CPUs loses nothing by it.
bool loses(const Account& account, std::string_view state) {
  return !account.background || !state.starts_with("queue_") || state == "queue_limit";
}

/// While this command runs, other threads may wait that would not wait without it: on a machine for
/// as long as it runs, in a target for its share of the CPU time of others.
void take_out_own(Sums& sums, const Part& part, const Facts& facts) {
  std::uint64_t own = 0, others = 0;
  for (auto& account : part.accounts)
    if (account.own || !counts(account, facts)) (account.own ? own : others) += account.in("cpu");
  auto share =
      static_cast<double>(own) / static_cast<double>(std::max<std::uint64_t>(1, own + others));
  for (auto state : {"queue_busy", "queue_idle"}) {
    auto found = sums.find(state);
    if (found == sums.end()) continue;
    auto ours = facts.target.empty()
                    ? std::min(own, found->second)
                    : static_cast<std::uint64_t>(share * static_cast<double>(found->second));
    found->second -= std::min(ours, found->second);
    if (facts.target.empty()) own -= ours;
  }
}

Sums sums_of(const Part& part, const Facts& facts) {
  Sums sums;
  for (auto& account : part.accounts) {
    if (!counts(account, facts)) continue;
    for (auto& [state, ns] : account.ns)
      if (loses(account, state)) sums[state] += ns;
  }
  take_out_own(sums, part, facts);
  return sums;
}

std::uint64_t busy(const Sums& sums, const Facts& facts) {
  std::uint64_t ns = 0;
  for (auto& [state, time] : sums)
    if (!is_idle(state, !facts.target.empty())) ns += time;
  return ns;
}

/// The rules whose conditions hold, and the time that each explains: a state belongs to the first.
std::vector<std::pair<const Rule*, std::uint64_t>> explain(const Facts& facts, Sums sums) {
  std::vector<std::pair<const Rule*, std::uint64_t>> all;
  for (auto& rule : rules()) {
    if ((rule.needs_target && facts.target.empty()) || (rule.when && !rule.when(facts))) continue;
    std::uint64_t lost = 0;
    for (auto state : rule.states)
      if (auto found = sums.find(state); found != sums.end())
        lost += std::exchange(found->second, 0);
    all.emplace_back(&rule, lost);
  }
  return all;
}

std::uint64_t stall_ns(const Facts& facts, const Rule& rule) {
  constexpr double kMost = 1e12;  // recorded facts may hold any number
  return static_cast<std::uint64_t>(std::clamp(facts.counter(rule.stall_us), 0.0, kMost) * 1e3);
}

/// The time of stalls that is in no state of busy time: waits for locks of programs.
std::uint64_t held(const Facts& facts) {
  std::uint64_t ns = 0;
  for (auto& rule : rules())
    if (rule.states.empty() && (!rule.when || rule.when(facts))) ns += stall_ns(facts, rule);
  return ns;
}

/// The same for the whole run, with the counters of stalls, which there are only for that.
std::vector<std::pair<const Rule*, std::uint64_t>> explain_run(const Facts& facts, Sums sums) {
  auto all = explain(facts, std::move(sums));
  for (auto& [rule, lost] : all) lost = std::max(lost, stall_ns(facts, *rule));
  return all;
}

bool enough(std::uint64_t lost, std::uint64_t busy, double seconds, const Rule& rule,
            const Thresholds& limits) {
  constexpr double kNearlyAll = 0.9, kHalfOfAThread = 0.5;
  auto ns = static_cast<double>(lost);
  return ns >= (rule.computes ? kNearlyAll : limits.share) * static_cast<double>(busy) &&
         ns >= (rule.computes ? kHalfOfAThread : limits.pressure) * seconds * 1e9;
}

/// Parts of the run in which each rule is seen: a start, a job or a rotation of logs is only in
/// one.
std::map<const Rule*, std::size_t> parts_seen(const Facts& facts, const Thresholds& limits) {
  std::map<const Rule*, std::size_t> seen;
  for (auto& part : facts.parts) {
    auto sums = sums_of(part, facts);
    auto all = busy(sums, facts);
    for (auto& [rule, lost] : explain(facts, std::move(sums)))
      seen[rule] += enough(lost, all, part.seconds, *rule, limits);
  }
  return seen;
}

/// The processes that lost most of it, if there are several.
std::vector<std::string> losers(const Facts& facts, const Rule& rule) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 0.1;
  auto processes = facts.by_process([&](auto& a) {
    std::uint64_t ns = 0;
    for (auto state : rule.states) ns += counts(a, facts) && loses(a, state) ? a.in(state) : 0;
    return ns;
  });
  std::vector<std::string> all;
  if (processes.size() < 2) return all;
  std::uint64_t lost = 0;
  for (auto& process : processes) lost += process.ns;
  for (auto& [name, ns] : processes) {
    auto share = static_cast<double>(ns) / static_cast<double>(lost);
    if (share < kLeast || all.size() == kMost) break;
    all.push_back(fmt::format("{} {:.0f} %", name, share * 100));
  }
  return all;
}

std::string with_target(std::string_view command, const Facts& facts) {
  std::string text(command);
  constexpr std::string_view kTarget = "{target}";
  if (auto at = text.find(kTarget); at != text.npos) {
    auto size = kTarget.size() + (facts.target.empty() && text[at + kTarget.size()] == ' ');
    text.replace(at, size, facts.target);
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Own causes first, unless a foreign one costs twice as much; then by what they cost. That it
/// computes is the answer if there is no other.
void order(std::vector<Finding>& findings) {
  auto weight = [](const Finding& f) {
    return static_cast<double>(f.lost_ns) * (f.rule->foreign ? 0.5 : 1);
  };
  std::ranges::stable_sort(findings, [&](auto& a, auto& b) {
    auto last = [](const Finding& f) { return 2 * f.below + f.rule->computes; };
    return last(a) != last(b) ? last(a) < last(b) : weight(a) > weight(b);
  });
}

/// An effect follows its cause, which names it.
void join_effects(std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size(); i++)
    for (auto effect : findings[i].rule->causes) {
      auto found =
          std::ranges::find_if(findings, [&](auto& f) { return f.rule->id == effect && !f.below; });
      if (found == findings.end()) continue;
      auto at = static_cast<std::size_t>(found - findings.begin());
      findings[i].through.push_back(effect);
      if (at < i)
        std::rotate(found, findings.begin() + static_cast<std::ptrdiff_t>(i),
                    findings.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
}

std::string why_silent(const Answer& answer, const Facts& facts) {
  if (answer.time_ns == 0) return "no such thread was there";
  auto per_thread = static_cast<double>(answer.busy_ns) / 1e9 / facts.seconds;
  if (per_thread < 0.02)
    return fmt::format("it is idle: its threads ({:.0f} on average) wait for work", answer.threads);
  return fmt::format("no lost time is a tenth of the {:.2f} threads that are busy on average",
                     per_thread);
}

}  // namespace

Answer rank(const Facts& facts, const Thresholds& thresholds, bool all) {
  Answer answer;
  Sums sums;
  for (auto& part : facts.parts) {
    for (auto& [state, ns] : sums_of(part, facts)) sums[state] += ns;
    for (auto& account : part.accounts) {
      if (counts(account, facts)) answer.time_ns += account.time_ns;
    }
  }
  answer.threads = static_cast<double>(answer.time_ns) / 1e9 / facts.seconds;
  constexpr double kFew = 0.01;
  auto unknown = sums.find("unknown");
  answer.certain =
      facts.certain && (unknown == sums.end() || static_cast<double>(unknown->second) <=
                                                     kFew * static_cast<double>(answer.time_ns));
  answer.busy_ns = busy(sums, facts) + held(facts);
  if (auto cpu = sums.find("cpu"); cpu != sums.end()) answer.cpu_ns = cpu->second;
  constexpr double kIdle = 0.02;  // of one thread
  const bool idle = static_cast<double>(answer.busy_ns) < kIdle * facts.seconds * 1e9;
  const auto least_parts = facts.parts.size() < 3 ? facts.parts.size() : 2;
  auto seen = parts_seen(facts, thresholds);
  for (auto& [rule, lost] : explain_run(facts, sums)) {
    if (!lost) continue;
    Finding finding{.rule = rule, .lost_ns = lost};
    finding.share =
        static_cast<double>(lost) / static_cast<double>(std::max<std::uint64_t>(1, answer.busy_ns));
    finding.below = idle || !enough(lost, answer.busy_ns, facts.seconds, *rule, thresholds) ||
                    (facts.counter(rule->stall_us) <= 0 && seen[rule] < least_parts);
    if (finding.below && !all) continue;
    finding.losers = losers(facts, *rule);
    if (rule->evidence) finding.evidence = rule->evidence(facts);
    if (rule->culprits) finding.culprits = rule->culprits(facts);
    finding.command = with_target(rule->command, facts);
    answer.findings.push_back(std::move(finding));
  }
  for (auto& note : notes()) {
    double count = 0;
    for (auto name : note.counters) count += std::max(0.0, facts.counter(name));
    if (count > 0) answer.notes.push_back({&note, count, with_target(note.command, facts)});
  }
  order(answer.findings);
  join_effects(answer.findings);
  if (std::ranges::all_of(answer.findings, &Finding::below))
    answer.silent = why_silent(answer, facts);
  return answer;
}

}  // namespace coretap::why
