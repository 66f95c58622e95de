#include "stacks/stack_group.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/nearest.hpp"
#include "program/variables.hpp"
#include "stacks/stack_view.hpp"

namespace coretap {

struct StackGroup::Word {
  std::string_view word;
  Kind kind;
};

const StackGroup::Word StackGroup::kWords[] = {
    {"comm", comm},           {"pid", pid},       {"tid", tid},
    {"object", object},       {"caller", caller}, {"cgroup", cgroup},
    {"container", container}, {"pod", pod},       {"unit", unit},
};

std::string StackGroup::words() {
  std::string all;
  for (auto& w : kWords) all += fmt::format("{}{}", all.empty() ? "" : ", ", w.word);
  return all;
}

Result<void> StackGroup::check(const Config& config) {
  auto& keys = config.rows.by;
  if (keys.size() > 1)
    return usage("--by: stacks are added up by one key", fmt::format("one of {}", words()));
  std::vector<std::string_view> known;
  for (auto& w : kWords) known.push_back(w.word);
  return keys.empty() ? Result<void>() : check_key("--by", keys.front(), known);
}

void StackGroup::configure(Session& s) {
  kind_ = none;
  for (auto& key : s.config.rows.by) kind_ = std::ranges::find(kWords, key, &Word::word)->kind;
  set_variable(s, "stack_by_task", kind_ != none && kind_ != object && kind_ != caller);
  set_variable(s, "stack_by_cgroup", kind_ >= cgroup);
}

std::string_view StackGroup::word() const {
  return kind_ == none ? "" : std::ranges::find(kWords, kind_, &Word::kind)->word;
}

namespace {

/// Of glibc or musl; before glibc 2.34 threads had a separate library.
bool is_c_library(std::string_view object) {
  for (std::string_view start :
       {"libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl", "[vdso"})
    if (object.starts_with(start)) return true;
  return false;
}

}  // namespace

std::string StackGroup::name(const Session& s, const StackParty& p) const {
  auto named = [&](CgroupName which) {
    // Interrupts and the idle task belong to no cgroup.
    auto& name_of = s.names.context.cgroup_name;
    auto name = name_of && p.who.cgroup ? name_of(p.who.cgroup, which) : std::string();
    return name.empty() ? std::string("-") : name;
  };
  if (context_of(p.who.state) != context_of(STACK_TASK)) return {};
  switch (kind_) {
    case pid:
      return fmt::format("{} ({})", p.name(), p.who.tgid);
    case tid:
      return fmt::format("{} ({})", p.name(), p.who.tid);
    case object: {
      static const FramePlace kNone;
      const bool kernel = !p.kernel.empty();
      auto& places = kernel ? p.kernel_places : p.user_places;
      auto name = object_of(places.empty() ? kNone : places.front(), kernel);
      return name.empty() ? "[unknown]" : name;
    }
    case caller:
      for (auto& place : p.user_places)
        if (auto name = object_of(place, false); !name.empty() && !is_c_library(name)) return name;
      return p.user_places.empty() ? "[kernel]" : "[unknown]";
    case cgroup:
      return named(CgroupName::path);
    case container:
      return named(CgroupName::container);
    case pod:
      return named(CgroupName::pod);
    case unit:
      return named(CgroupName::unit);
    default:
      return {};
  }
}

}  // namespace coretap
