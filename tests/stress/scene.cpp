#include "stress/scene.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace coretap::stress {

using tooltest::Skip;
using tooltest::slowness;

std::uint64_t Outcome::seen() const {
  auto sum = shown;
  for (auto& [cause, count] : not_shown) sum += count;
  return sum;
}

std::string Outcome::sum() const {
  auto text = std::to_string(truth) + (seen() == truth ? " = " : " against ") +
              std::to_string(shown) + " shown";
  for (auto& [cause, count] : not_shown)
    if (count) text += " + " + std::to_string(count) + " " + cause;
  if (missed) text += " + " + std::to_string(missed) + " missed";
  return text;
}

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

Scene::Scene(const Row& row, const Size& size) : row_(row) {
  if (row.by_cgroup) cgroup_.emplace();
  auto words = arguments(row, size.events) + size.more;
  const auto cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  for (int i = 0; i < size.workloads; i++) {
    loads_.push_back(
        std::make_unique<Load>(row.workload.at(0), words, (size.first_cpu + i) % cpus));
    if (cgroup_) cgroup_->add(loads_.back()->workload().pid());
  }
}

Strings Scene::options(const Strings& more) {
  auto all = Strings("--json") + row_.options + more;
  if (cgroup_) return all + Strings{"--cgroup", cgroup_->path()};
  std::string pids;
  for (auto& load : loads_)
    for (auto& pid : wanted_pids(row_, *load)) pids += (pids.empty() ? "" : ",") + pid;
  return all + Strings{"--pid", pids};
}

void Scene::release() {
  if (!row_.kernel_event.empty())
    trace_.emplace(row_.kernel_event);  // attached with the tool: without their start
  began_ns_ = now_ns();
  for (auto& load : loads_) load->release();
}

void Scene::finish() {
  for (auto& load : loads_) load->finish();
  if (trace_) trace_->stop();
  ended_ns_ = now_ns();
}

std::optional<std::uint64_t> Scene::truth() {
  if (!row_.truth && !trace_) return std::nullopt;
  std::uint64_t sum = 0;
  for (auto& load : loads_)
    sum += trace_ ? trace_->lines(load->workload().pid()).size() : row_.truth(*load);
  if (!sum) throw Skip("none-here");
  return sum;
}

/// Nothing happened before the workloads were released, or took longer than they ran.
void Scene::check_times(const Json& line) const {
  constexpr std::uint64_t kSlack = 5'000'000'000;  // events in progress when they ended
  auto last = (ended_ns_ ? ended_ns_ : now_ns()) + kSlack, span = last - began_ns_;
  auto check = [&](const char* key, std::uint64_t least, std::uint64_t most) {
    if (!line.has(key) || line[key].is_null()) return;
    auto value = line[key].u64();
    if (value < least || value > most)
      throw Wrong(std::string(key) + " is " + std::to_string(value) + ", not within " +
                  std::to_string(least) + " to " + std::to_string(most));
  };
  if (line["type"].str() == "event") check("monotonic_ns", began_ns_, last);
  check("latency_ns", 0, span);
  if (line.has("count") && line.has("total_ns")) check("total_ns", 0, line["count"].u64() * span);
}

Outcome Scene::judge(const std::string& out) {
  Outcome o;
  auto known = truth();
  auto ledger = tooltest::read_report(out, [&](const Json& line) {
    check_times(line);
    o.shown += row_.shown(line);
  });
  for (auto* cause : kNotShown) o.not_shown[cause] = ledger[cause].u64();
  o.missed = ledger["missed"].u64();
  if (!known) {
    o.reason = "not known";
    if (!o.seen()) throw Wrong("nothing was seen");
    return o;
  }
  o.truth = *known;
  auto seen = static_cast<double>(o.seen()), truth = static_cast<double>(o.truth);
  // The kernel counts skipped program runs for all tasks.
  auto most = truth * (1 + row_.tolerance) + (row_.tolerance > 0 ? 20 : 0) +
              static_cast<double>(row_.slack * loads_.size());
  auto least = truth - static_cast<double>(o.missed);
  for (auto& load : loads_)
    if (row_.hidden) least -= static_cast<double>(row_.hidden(*load));
  if (row_.tolerance > 0) least -= std::max(truth * row_.tolerance, 3 * std::sqrt(truth));
  // An emulated CPU that waits for its host may count several clock ticks as one.
  if (row_.tolerance > 0 && slowness() > 3) {
    least = 1;
    o.reason = "no lower bound";
  }
  if (seen < least || seen > most) throw Wrong(o.sum());
  return o;
}

}  // namespace coretap::stress
