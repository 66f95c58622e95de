// Triggers, at which a flight recorder saves what it has: pressure, load, events.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.hpp"
#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "record/store.hpp"

namespace coretap {

struct TriggerRule {
  enum Kind { pressure, load, event, rate } kind = pressure;
  std::string text;  ///< as given, with single spaces
  std::string of;    ///< pressure: "memory"; events: the tool
  bool full = false;
  double limit = 0;   ///< pressure: seconds of `window`; load; events per second
  double window = 0;  ///< seconds
};

/// "psi memory some 150ms/1s", "load > 4/cpu", "oomkill", "execsnoop > 500/s". A limit per CPU
/// becomes one of the machine.
Result<TriggerRule> parse_trigger(std::string_view text);
/// Splits at commas.
Result<void> add_triggers(std::vector<TriggerRule>& to, std::string_view list);
/// The forms of parse_trigger(), for help.
inline constexpr std::string_view kTriggerForms =
    "psi cpu|memory|io some|full STALL/WINDOW; load > N or load > N/cpu; TOOL (each event of it); "
    "TOOL > N/s";

/// Watches while the loop runs.
class Triggers {
 public:
  /// `counted`: events that a tool has shown until now.
  using Counted = std::function<std::uint64_t(const std::string& tool)>;
  using Fire = std::function<void(const record::Trigger&)>;

  Result<void> begin(Loop& loop, const std::vector<TriggerRule>& rules, Counted counted, Fire fire);
  /// Looks at events; call it when tools have reported some.
  void look();

 private:
  struct Watched {
    TriggerRule rule;
    Fd fd;
    std::uint64_t seen = 0;
    bool over = false;
  };
  void each_second();

  std::vector<Watched> all_;
  Counted counted_;
  Fire fire_;
};

}  // namespace coretap
