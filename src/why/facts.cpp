#include "why/facts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/json.hpp"
#include "coretap/parse.hpp"
#include "why/members.hpp"

namespace coretap::why {

namespace {

using Object = rapidjson::Value;

Account account_of(const Object& line) {
  Account account{.pid = static_cast<std::uint32_t>(number_of(line, "pid")),
                  .comm = text_of(line, "comm"),
                  .cgroup = text_of(line, "cgroup"),
                  .threads = number_of(line, "threads"),
                  .time_ns = number_of(line, "time_ns"),
                  .target = flag_of(line, "target"),
                  .kernel = flag_of(line, "kernel"),
                  .own = flag_of(line, "own"),
                  .background = flag_of(line, "background")};
  if (auto* states = member(line, "states"); states && states->IsObject())
    for (auto& state : states->GetObject())
      if (state.value.IsUint64()) account.ns[state.name.GetString()] = state.value.GetUint64();
  return account;
}

}  // namespace

std::uint64_t Account::in(std::string_view state) const {
  auto found = ns.find(state);
  return found == ns.end() ? 0 : found->second;
}

std::vector<OfProcess> Facts::by_process(
    const std::function<std::uint64_t(const Account&)>& ns) const {
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint64_t> sums;
  for (auto& part : parts)
    for (auto& account : part.accounts)
      if (auto more = ns(account)) sums[{account.pid, account.comm}] += more;
  std::vector<OfProcess> all;
  all.reserve(sums.size());
  for (auto& [who, sum] : sums)
    all.push_back({fmt::format("{} (pid {})", who.second, who.first), sum});
  std::ranges::sort(all, std::greater<>(), &OfProcess::ns);
  return all;
}

double Facts::counter(std::string_view name) const {
  auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

std::string_view Facts::text(std::string_view name) const {
  auto found = texts.find(name);
  return found == texts.end() ? std::string_view() : found->second;
}

std::string to_lines(const Facts& facts) {
  std::string lines;
  auto add = [&](JsonLine& line) { lines += fmt::format("{}\n", line.finish()); };
  JsonLine head("facts", "why");
  head.text("target", facts.target).text("subject", facts.subject);
  head.key("seconds").real(facts.seconds).number("cpus", facts.cpus);
  add(head.boolean("certain", facts.certain));
  for (std::size_t i = 0; i < facts.parts.size(); i++) {
    JsonLine part("part", "why");
    add(part.number("part", i).key("seconds").real(facts.parts[i].seconds));
    for (auto& a : facts.parts[i].accounts) {
      JsonLine line("account", "why");
      line.number("pid", a.pid).text("comm", a.comm).text("cgroup", a.cgroup);
      line.number("threads", a.threads).number("time_ns", a.time_ns);
      line.boolean("target", a.target).boolean("kernel", a.kernel);
      line.boolean("own", a.own).boolean("background", a.background).key("states").begin_object();
      for (auto& [state, ns] : a.ns) line.number(state, ns);
      add(line.end_object());
    }
  }
  for (auto& [name, value] : facts.counters) {
    JsonLine line("counter", "why");
    add(line.text("name", name).key("value").real(value));
  }
  for (auto& [name, value] : facts.texts) {
    JsonLine line("setting", "why");
    add(line.text("name", name).text("value", value));
  }
  return lines;
}

Result<Facts> from_lines(std::string_view lines, std::string_view where) {
  Facts facts;
  std::size_t number = 0;
  bool headed = false;
  while (!lines.empty()) {
    auto text = take_until(lines, '\n');
    number++;
    if (text.empty()) continue;
    rapidjson::Document line;
    if (!read_object(line, text))
      return Error{fmt::format("{}:{}: not a line of JSON", where, number),
                   {},
                   "give a file that coretap why --raw has written"};
    auto type = text_of(line, "type");
    if (type == "facts") {
      headed = true;
      facts.target = text_of(line, "target");
      facts.subject = text_of(line, "subject");
      facts.seconds = real_of(line, "seconds");
      facts.cpus = static_cast<unsigned>(number_of(line, "cpus"));
      facts.certain = flag_of(line, "certain");
    } else if (type == "part") {
      facts.parts.push_back({.seconds = real_of(line, "seconds")});
    } else if (type == "account" && !facts.parts.empty()) {
      facts.parts.back().accounts.push_back(account_of(line));
    } else if (type == "counter") {
      facts.counters[text_of(line, "name")] = real_of(line, "value");
    } else if (type == "setting") {
      facts.texts[text_of(line, "name")] = text_of(line, "value");
    }
  }
  if (!headed || facts.parts.empty() || facts.seconds <= 0)
    return Error{fmt::format("{}: has no facts", where),
                 {},
                 "give a file that coretap why --raw has written"};
  return facts;
}

}  // namespace coretap::why
