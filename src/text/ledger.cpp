#include "text/ledger.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/colour.hpp"

namespace coretap {

namespace {

struct Cause {
  std::string_view name, meaning, doc;
  bool loss = true;     ///< makes --strict fail
  bool shown = false;   ///< the event is shown, with incomplete data
  bool at_end = false;  ///< Ledger::Outcome::at_end
};
constexpr Cause kCauses[LEDGER_CAUSES] = {
    {"filtered", "excluded by filters", "events excluded by filters", false},
    {"lost", "lost: ring buffer full (raise --ring-size)",
     "events lost because the ring buffer was full"},
    {"untracked", "not tracked: map full (raise --max-keys), or storage refused for a moment",
     "events not tracked because a map was full, or the kernel refused storage for a moment"},
    {"unmatched", "unmatched: start or end not seen", "start or end not seen"},
    {"truncated", "shown, but shortened", "shown, but shortened", true, true},
    {"stacks_failed",
     "shown without their stack (raise --stack-storage-size), or storage refused for a moment",
     "shown without their stack: storage was full, or refused for a moment", true, true},
    {"stacks_truncated", "shown with a truncated user stack",
     "shown with a user stack that ends too early, and is marked", false, true},
    {"stacks_guessed", "shown with frames inferred from frame pointers",
     "shown with frames of the user stack that were inferred from frame pointers", false, true},
    {"overwritten", "overwritten before the dump (raise --size)",
     "events that a flight recorder overwrote before the dump", false},
    {"missed", "missed: BPF program already running on that CPU (recursion, or a preempted task)",
     "events for which the kernel skipped the program, as it was running on that CPU"},
    {"unjudged", "not judged: a filter expression read memory that was not accessible",
     "events that a filter expression could not judge: it reads memory that is not there"},
};
constexpr Cause kLimited{"limited", "limited: above --max-rate", "events above --max-rate", false};
constexpr Cause kUnread{
    "unread",
    "not read: more than could be shown when tracing ended",
    "events that were in the ring buffer when tracing ended, too many to be shown",
    true,
    false,
    true};

/// Calls back for each cause with its count.
template <class Visit>
void each_cause(const Ledger& ledger, Visit visit) {
  for (int i = 0; i < LEDGER_CAUSES; i++) visit(kCauses[i], ledger.count[i]);
  visit(kLimited, ledger.limited);
  visit(kUnread, ledger.unread);
}

}  // namespace

std::vector<Ledger::Outcome> Ledger::outcomes() const {
  std::vector<Outcome> all{{"shown", shown}};
  each_cause(*this, [&](const Cause& cause, std::uint64_t n) {
    if (!cause.shown) all.push_back({cause.name, n, cause.at_end});
  });
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
  bool lost = false;
  each_cause(*this, [&](const Cause& cause, std::uint64_t n) { lost |= cause.loss && n; });
  return lost;
}

std::string Ledger::text(bool verbose, int fd) const {
  std::string text;
  each_cause(*this, [&](const Cause& cause, std::uint64_t n) {
    if (!n) return;
    auto line = fmt::format("  {:>12}  {}{}\n", n, cause.meaning,
                            &cause == &kCauses[LEDGER_STACK_CUT] ? reasons() : "");
    text += cause.loss ? painted(fd, Paint::loss, line) : line;
  });
  if (text.empty() && !verbose) return {};
  return fmt::format("events: {} seen, {} shown\n{}", seen(), shown, text);
}

std::vector<std::string> Ledger::losses() const {
  std::vector<std::string> words;
  each_cause(*this, [&](const Cause& cause, std::uint64_t n) {
    if (n && &cause != &kCauses[LEDGER_FILTERED])
      words.push_back(fmt::format("{} {} {}", n, n == 1 ? "event" : "events", cause.meaning));
  });
  return words;
}

void Ledger::json(JsonLine& line) const {
  line.number("seen", seen()).number("shown", shown);
  each_cause(*this, [&](const Cause& cause, std::uint64_t n) { line.number(cause.name, n); });
  line.key("stacks_truncated_by").begin_object();
  for (auto& [reason, times] : cut_by) line.number(reason, times);
  line.end_object().boolean("data_lost", data_lost());
}

std::vector<OutputKey> Ledger::keys() {
  std::vector<OutputKey> all = {
      type_key("ledger"),
      key("seen", "integer",
          "events: shown, filtered, lost, untracked, unmatched, overwritten, missed, unjudged, "
          "limited and unread together"),
      key("shown", "integer", "events in the output")};
  each_cause({}, [&](const Cause& cause, std::uint64_t) {
    all.push_back(key(std::string(cause.name), "integer", std::string(cause.doc)));
  });
  all.push_back(key("stacks_truncated_by", "object",
                    "the reasons for which user stacks end too early, how often each"));
  all.push_back(
      key("data_lost", "boolean",
          "any of the above but filtered, stacks_truncated, stacks_guessed, overwritten and "
          "limited: --strict ends with status 4"));
  return all;
}

}  // namespace coretap
