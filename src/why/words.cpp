#include "why/words.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"

namespace coretap::why {

namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

double of_thread(std::uint64_t ns, const Facts& facts) {
  return static_cast<double>(ns) / 1e9 / facts.seconds;
}

std::string state_words(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '.');
  return name;
}

/// The classes of lost time that no finding is about, each below a hundredth.
std::string not_causes(const Facts& facts) {
  constexpr std::pair<std::string_view, std::string_view> kSubjects[] = {{"queue.", "CPUs"},
                                                                         {"disk.", "disks"},
                                                                         {"fs.", "file systems"},
                                                                         {"mem.", "memory"},
                                                                         {"lock.", "locks"}};
  std::vector<std::string_view> none;
  auto full = rank(facts, {}, true);
  for (auto& [prefix, words] : kSubjects) {
    double share = 0;
    for (auto& f : full.findings)
      if (f.rule->id.starts_with(prefix)) share += f.share;
    if (share < 0.01) none.push_back(words);
  }
  return none.empty() ? ""
                      : fmt::format("Not the cause: {} (each below 1 %).\n", fmt::join(none, ", "));
}

std::string of_finding(const Finding& f, std::size_t number) {
  auto text = fmt::format("{}. {}: {} of its time{}.\n", number, f.rule->says, percent(f.share),
                          f.below ? ", which is below the thresholds" : "");
  std::vector<std::string> evidence, culprits;
  for (auto& e : f.evidence) evidence.push_back(fmt::format("{} {}", e.name, printable(e.value)));
  for (auto& c : f.culprits) culprits.push_back(fmt::format("{} {}", c.kind, printable(c.name)));
  std::vector<std::string> losers;
  for (auto& name : f.losers) losers.push_back(printable(name));
  if (!losers.empty()) text += wrap(fmt::format("Lost by {}.", fmt::join(losers, ", ")), 3);
  if (!evidence.empty()) text += wrap(fmt::format("{}.", fmt::join(evidence, "; ")), 3);
  if (!culprits.empty()) text += wrap(fmt::format("By {}.", fmt::join(culprits, ", ")), 3);
  if (!f.through.empty())
    text += wrap(fmt::format("It is also the cause of: {}.", fmt::join(f.through, ", ")), 3);
  return text + fmt::format("   See: coretap {}\n", printable(f.command));
}

}  // namespace

std::string in_words(const Facts& facts, const Answer& answer, std::size_t most) {
  auto text = fmt::format(
      "{:.1f} of {:.0f} threads were busy on average, {:.1f} of them on a CPU; {} CPUs; {:.1f} s.\n\n",
      of_thread(answer.busy_ns, facts), answer.threads, of_thread(answer.cpu_ns, facts), facts.cpus,
      facts.seconds);
  std::size_t number = 0;
  for (auto& f : answer.findings) {
    if (number == most) break;
    text += of_finding(f, ++number);
  }
  for (auto& [note, count, command] : answer.notes)
    text +=
        fmt::format("Also: {}: {:.0f}. See: coretap {}\n", note->says, count, printable(command));
  if (!answer.silent.empty()) text += fmt::format("Nothing found: {}.\n", answer.silent);
  text += not_causes(facts);
  if (!answer.certain)
    text += "Not certain: it is not known where 1 % of the time went, or more.\n";
  return text;
}

std::string in_json(const Facts& facts, const Answer& answer, std::size_t most) {
  std::string lines;
  JsonLine head("answer", "why");
  head.text("subject", facts.subject).text("target", facts.target);
  head.key("seconds").real(facts.seconds).number("cpus", facts.cpus);
  head.key("threads").real(answer.threads).number("time_ns", answer.time_ns);
  head.number("busy_ns", answer.busy_ns).number("cpu_ns", answer.cpu_ns);
  head.boolean("certain", answer.certain);
  lines += fmt::format(
      "{}\n", head.text_if(!answer.silent.empty(), "nothing_found", answer.silent).finish());
  std::size_t number = 0;
  for (auto& f : answer.findings) {
    if (number == most) break;
    JsonLine line("finding", "why");
    line.number("rank", ++number).text("id", f.rule->id);
    line.text("text", fmt::format("{}: {} of its time", f.rule->says, percent(f.share)));
    line.key("share").real(f.share).number("lost_ns", f.lost_ns);
    line.boolean("below_thresholds", f.below);
    line.texts("losers", f.losers).key("evidence").begin_array();
    for (auto& e : f.evidence)
      line.begin_object()
          .text("name", e.name)
          .text("value", e.value)
          .text("source", e.source)
          .end_object();
    line.end_array().key("culprits").begin_array();
    for (auto& c : f.culprits)
      line.begin_object().text("kind", c.kind).text("name", c.name).end_object();
    line.end_array().texts("through", f.through);
    lines += fmt::format("{}\n", line.text("command", "coretap " + f.command).finish());
  }
  for (auto& [note, count, command] : answer.notes) {
    JsonLine line("note", "why");
    line.text("id", note->id).text("text", note->says).key("count").real(count);
    lines += fmt::format("{}\n", line.text("command", "coretap " + command).finish());
  }
  return lines;
}

std::string rules_in_words(const Thresholds& t) {
  auto text = wrap(
      fmt::format("A finding costs at least {} of the busy time and {} of the time of one thread, "
                  "in the whole run and in two of its three parts. Busy time is all time but that "
                  "in which threads have nothing to do, or in which that is not known. A state's "
                  "time belongs to the first rule whose condition holds.",
                  percent(t.share), percent(t.pressure)),
      0);
  for (auto& rule : rules()) {
    std::vector<std::string> states;
    for (auto state : rule.states) states.push_back(state_words(state));
    text += fmt::format("\n{}: {}\n", rule.id, rule.says);
    if (!states.empty()) text += wrap(fmt::format("time in {}", fmt::join(states, ", ")), 2);
    if (!rule.condition.empty()) text += wrap(fmt::format("if {}", rule.condition), 2);
    if (rule.needs_target) text += "  only of a named target\n";
    text += fmt::format("  See: coretap {}\n", rule.command);
  }
  text += "\n" + wrap("Notes: they are printed whatever they cost, and are no findings.", 0);
  for (auto& note : notes()) text += fmt::format("{}: {}\n", note.id, note.says);
  return text;
}

}  // namespace coretap::why
