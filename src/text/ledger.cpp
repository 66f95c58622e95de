#include "text/ledger.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/colour.hpp"

namespace coretap {

namespace {

struct Cause {
  std::string_view name, meaning;
  bool loss = true;    ///< --strict does not forgive it
  bool shown = false;  ///< of events that are shown, with less than all of their data
};
constexpr Cause kCauses[LEDGER_CAUSES] = {
    {"filtered", "excluded by filters", false},
    {"lost", "lost: ring buffer full (raise --ring-size; for traceloop, --size)"},
    {"untracked", "not tracked: map full (raise --max-keys)"},
    {"unmatched", "unmatched: start or end not seen"},
    {"truncated", "shown, but shortened", true, true},
    {"stacks_failed", "shown without their stack (raising --stack-storage-size may help)", true,
     true},
    {"stacks_truncated", "shown with a truncated user stack", false, true},
    {"stacks_guessed", "shown with frames inferred from frame pointers", false, true},
    {"overwritten", "overwritten before the dump (raise --size)", false},
    {"missed", "missed: BPF program already running on that CPU (recursion)"},
    {"unjudged", "not judged: a filter expression read memory that was not accessible"},
};
struct Counted {
  std::string_view name, meaning;
  std::uint64_t Ledger::*count;
  bool loss;
};
constexpr Counted kCounted[] = {
    {"limited", "limited: above --max-rate", &Ledger::limited, false},
    {"unread", "not read: more than could be shown when tracing ended", &Ledger::unread, true},
};

}  // namespace

std::vector<Ledger::Outcome> Ledger::outcomes() const {
  std::vector<Outcome> all{{"shown", shown}};
  for (int i = 0; i < LEDGER_CAUSES; i++)
    if (!kCauses[i].shown) all.push_back({kCauses[i].name, count[i]});
  for (auto& c : kCounted) all.push_back({c.name, this->*c.count, c.count == &Ledger::unread});
  return all;
}

std::uint64_t Ledger::seen() const {
  std::uint64_t all = 0;
  for (auto& outcome : outcomes()) all += outcome.count;
  return all;
}

void Ledger::user_stack(std::string_view cut, std::uint32_t guessed, std::uint64_t times) {
  if (guessed) count[LEDGER_STACK_GUESSED] += times;
  if (cut.empty()) return;
  count[LEDGER_STACK_CUT] += times;
  cut_by[cut] += times;
}

/// ": 12 no mapping, 3 exiting", the most frequent first.
std::string Ledger::reasons() const {
  std::vector<std::pair<std::uint64_t, std::string_view>> all;
  for (auto& [reason, times] : cut_by) all.emplace_back(times, reason);
  std::sort(all.rbegin(), all.rend());
  std::string text;
  for (auto& [times, reason] : all)
    text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", times, reason);
  return text;
}

bool Ledger::data_lost() const {
  for (int i = 0; i < LEDGER_CAUSES; i++)
    if (kCauses[i].loss && count[i]) return true;
  return std::ranges::any_of(kCounted, [&](auto& c) { return c.loss && this->*c.count; });
}

std::string Ledger::text(bool verbose, int fd) const {
  std::string text;
  for (int i = 0; i < LEDGER_CAUSES; i++)
    if (count[i]) {
      auto line = fmt::format("  {:>12}  {}{}\n", count[i], kCauses[i].meaning,
                              i == LEDGER_STACK_CUT ? reasons() : "");
      text += kCauses[i].loss ? painted(fd, Paint::loss, line) : line;
    }
  for (auto& c : kCounted)
    if (auto n = this->*c.count) {
      auto line = fmt::format("  {:>12}  {}\n", n, c.meaning);
      text += c.loss ? painted(fd, Paint::loss, line) : line;
    }
  if (text.empty() && !verbose) return {};
  return fmt::format("events: {} seen, {} shown\n{}", seen(), shown, text);
}

std::vector<std::string> Ledger::losses() const {
  std::vector<std::string> words;
  auto add = [&](std::uint64_t n, std::string_view meaning) {
    if (n) words.push_back(fmt::format("{} {} {}", n, n == 1 ? "event" : "events", meaning));
  };
  for (int i = 0; i < LEDGER_CAUSES; i++)
    if (i != LEDGER_FILTERED) add(count[i], kCauses[i].meaning);
  for (auto& c : kCounted) add(this->*c.count, c.meaning);
  return words;
}

void Ledger::json(JsonLine& line) const {
  line.number("seen", seen()).number("shown", shown);
  for (int i = 0; i < LEDGER_CAUSES; i++) line.number(kCauses[i].name, count[i]);
  for (auto& c : kCounted) line.number(c.name, this->*c.count);
  line.key("stacks_truncated_by").begin_object();
  for (auto& [reason, times] : cut_by) line.number(reason, times);
  line.end_object().boolean("data_lost", data_lost());
}

}  // namespace coretap
