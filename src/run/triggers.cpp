#include "run/triggers.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "cli/naming.hpp"
#include "coretap/kernel.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

std::optional<double> number_of(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const auto number = ::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || *end || !std::isfinite(number) || number <= 0) return {};
  return number;
}

std::string pressure_file(const TriggerRule& rule) {
  return fmt::format("/proc/pressure/{}", rule.of);
}

Result<Fd> watch_pressure(const TriggerRule& rule) {
  const auto path = pressure_file(rule);
  const auto what = fmt::format("cannot watch {}", path);
  Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    const int error = errno;
    if (error == ENOENT || error == EOPNOTSUPP)
      return Error{
          what, "this kernel does not measure pressure (CONFIG_PSI, psi=1)", {}, kUnsupported};
    return system_error(what, error, kUnsupported);
  }
  const auto words = fmt::format("{} {:.0f} {:.0f}", rule.full ? "full" : "some", rule.limit * 1e6,
                                 rule.window * 1e6);
  if (::write(fd.get(), words.c_str(), words.size() + 1) < 0) {
    const int error = errno;
    auto failed = system_error(what, error, kUnsupported);
    if (error == EINVAL)
      failed.hint = "windows are from 500ms to 10s; without CAP_SYS_RESOURCE, only multiples of 2s";
    return failed;
  }
  return fd;
}

/// "some avg10=1.20 ..." -> "1.20 % in 10 s".
std::string pressure_now(const TriggerRule& rule) {
  const auto text = read_file(pressure_file(rule)).value_or("");
  const auto at = text.find(fmt::format("{} avg10=", rule.full ? "full" : "some"));
  if (at == text.npos) return {};
  const auto from = text.find('=', at) + 1;
  return fmt::format("{} % in 10 s", text.substr(from, text.find(' ', from) - from));
}

}  // namespace

Result<TriggerRule> parse_trigger(std::string_view text) {
  const auto words = words_in(text);
  TriggerRule rule{.text = fmt::to_string(fmt::join(words, " "))};
  const auto refused = [&](std::string_view why = {}) {
    return usage(fmt::format("'{}' is no trigger{}{}", text, why.empty() ? "" : ": ", why),
                 fmt::format("there are: {}", kTriggerForms));
  };
  if (words.empty()) return refused();
  if (words[0] == "psi") {
    if (words.size() != 4) return refused();
    constexpr std::string_view kResources[] = {"cpu", "memory", "io"};
    rule.of = words[1];
    if (std::ranges::find(kResources, words[1]) == std::end(kResources) ||
        (words[2] != "some" && words[2] != "full"))
      return refused();
    rule.full = words[2] == "full";
    auto window = words[3];
    const auto stall = parse_seconds(take_until(window, '/'));
    const auto within = parse_seconds(window);
    if (!stall || !within || *stall <= 0 || *stall > *within)
      return refused("give a time of stall in a window, as 150ms/1s");
    if (*within < 0.5 || *within > 10) return refused("the window is from 500ms to 10s");
    rule.limit = *stall;
    rule.window = *within;
    return rule;
  }
  if (words[0] == "load") {
    rule.kind = TriggerRule::load;
    if (words.size() != 3 || words[1] != ">") return refused();
    auto limit = words[2];
    const auto number = number_of(take_until(limit, '/'));
    if (!number || (!limit.empty() && limit != "cpu")) return refused();
    rule.limit = *number * (limit == "cpu" ? static_cast<double>(online_cpus().size()) : 1);
    return rule;
  }
  const auto call = called(words[0]);
  if (!call.tool) return refused();
  rule.of = call.tool->name;
  const auto tool = build(*call.tool);
  if (tool.report->name() != "event" || !tool.report->can_be_recorded())
    return refused(fmt::format("{} shows no single events", rule.of));
  rule.kind = TriggerRule::event;
  if (words.size() == 1) return rule;
  rule.kind = TriggerRule::rate;
  const std::size_t at = words.size() == 4 && words[1] == "events" ? 2 : 1;
  if (words.size() != at + 2 || words[at] != ">" || !words[at + 1].ends_with("/s"))
    return refused();
  const auto number = number_of(words[at + 1].substr(0, words[at + 1].size() - 2));
  if (!number) return refused();
  rule.limit = *number;
  return rule;
}

Result<void> add_triggers(std::vector<TriggerRule>& to, std::string_view list) {
  return each_word(list, [&](std::string_view text) -> Result<void> {
    auto rule = parse_trigger(text);
    if (!rule) return rule.error();
    to.push_back(std::move(*rule));
    return {};
  });
}

Result<void> Triggers::begin(Loop& loop, const std::vector<TriggerRule>& rules, Counted counted,
                             Fire fire) {
  counted_ = std::move(counted);
  fire_ = std::move(fire);
  for (auto& rule : rules) {
    Watched watched{.rule = rule, .fd = {}};
    if (rule.kind == TriggerRule::pressure) {
      auto fd = watch_pressure(rule);
      if (!fd) return fd.error();
      watched.fd = std::move(*fd);
      loop.watch(watched.fd.get(), EPOLLPRI, [this, rule] {
        fire_({rule.text, pressure_now(rule)});
      });
    }
    all_.push_back(std::move(watched));
  }
  if (!rules.empty()) loop.every(1, [this] { each_second(); });
  return {};
}

void Triggers::look() {
  for (auto& one : all_) {
    if (one.rule.kind != TriggerRule::event) continue;
    const auto now = counted_(one.rule.of);
    const auto more = now - std::min(now, one.seen);
    one.seen = now;
    if (more) fire_({one.rule.text, fmt::format("{} events", more)});
  }
}

void Triggers::each_second() {
  look();
  for (auto& one : all_) {
    auto& rule = one.rule;
    double value = 0;
    if (rule.kind == TriggerRule::load) {
      const auto text = read_file("/proc/loadavg").value_or("");
      value = number_of(text.substr(0, text.find(' '))).value_or(0);
    } else if (rule.kind == TriggerRule::rate) {
      const auto now = counted_(rule.of);
      value = static_cast<double>(now - std::min(now, one.seen));
      one.seen = now;
    } else {
      continue;
    }
    const bool over = value > rule.limit;
    if (over && !one.over)
      fire_({rule.text, rule.kind == TriggerRule::load ? fmt::format("{:.2f}", value)
                                                       : fmt::format("{:.0f}/s", value)});
    one.over = over;
  }
}

}  // namespace coretap
