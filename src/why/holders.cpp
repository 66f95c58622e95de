#include "why/holders.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "why/members.hpp"

namespace coretap::why {

namespace {

std::string_view kind_of(std::string_view object) {
  if (object.starts_with("futex")) return "futex";
  if (object.starts_with("mmap_lock")) return "mmap_lock";
  if (object == "flock" || object == "fcntl" || object == "ofd") return "file_lock";
  return object == "thread" ? "" : "lock";
}

const std::pair<const std::string, std::uint64_t>* most(
    const std::map<std::string, std::uint64_t>& all) {
  auto found = std::ranges::max_element(all, {}, [](auto& one) { return one.second; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

void Holders::take(std::string_view text) {
  rapidjson::Document line;
  if (!read_object(line, text) || text_of(line, "type") != "wait") return;
  auto owners = line.FindMember("owners");
  if (owners == line.MemberEnd() || !owners->value.IsArray() || owners->value.Empty()) return;
  auto& owner = owners->value[0];
  auto object = text_of(line, "object");
  const auto kind = kind_of(object);
  // A task that ended the wait need not have held anything.
  if (kind.empty() || object.empty() || !owner.IsObject() || text_of(owner, "by") != "owner")
    return;
  const Account waiter{.pid = static_cast<std::uint32_t>(number_of(line, "pid")),
                       .comm = text_of(line, "comm")};
  if (target_.cgroup.empty() && !target_.has(waiter)) return;
  const auto ns = number_of(line, "total_ns");
  auto& held = held_[std::string(kind)];
  held.ns += ns;
  held.holders[fmt::format("{} (pid {})", text_of(owner, "comm"), number_of(owner, "pid"))] += ns;
  // The last of the chain.
  auto& last = owners->value[owners->value.Size() - 1];
  if (last.IsObject())
    if (auto reason = text_of(last, "reason"); !reason.empty()) held.their_waits[reason] += ns;
}

void Holders::add_to(Facts& facts, double seconds) const {
  for (auto& [kind, held] : held_) {
    if (!held.ns || seconds <= 0) continue;
    auto us = static_cast<double>(held.ns) / 1e3 * facts.seconds / seconds;
    facts.counters[fmt::format("held.{}_us", kind)] = us;
    auto name = fmt::format("holder.{}", kind);
    if (auto* holder = most(held.holders)) facts.texts[name] = holder->first;
    if (auto* wait = most(held.their_waits); wait && wait->second * 2 >= held.ns)
      facts.texts[name + ".waits"] = wait->first;
  }
}

}  // namespace coretap::why
