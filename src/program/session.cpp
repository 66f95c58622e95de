#include "program/session.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "kernel/containers.hpp"
#include "text/errors.hpp"

namespace coretap {

void ObjectDeleter::operator()(bpf_object* object) const { bpf_object__close(object); }

Result<void> map_memory(Mapped& memory, const bpf_map* map, std::size_t bytes, int rights) {
  if (memory.open(bpf_map__fd(map), bytes, rights)) return {};
  return Error{fmt::format("cannot read the map {}", bpf_map__name(map)), strerror(errno)};
}

Result<void> CpuSlots::open(bpf_map* map) {
  slot_ = (bpf_map__value_size(map) + 7) / 8 * 8;
  cpus_ = bpf_map__max_entries(map);
  return map_memory(slots_, map, slot_ * cpus_, PROT_READ);
}

void CpuSlots::sum(std::uint64_t* sum, std::size_t counters) const {
  for (std::uint32_t cpu = 0; cpu < cpus_; cpu++) {
    auto* slot = reinterpret_cast<const std::uint64_t*>(of_cpu(cpu));
    for (std::size_t i = 0; i < counters; i++)
      sum[i] += __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
  }
}

Session::Session(const Tool& t, const Config& c) : tool(t), config(c), source(live_source(*this)) {
  names.context.config = &c;
  // Cgroups are read when the first one is requested.
  names.context.cgroup_name = [containers = std::make_shared<Containers>(),
                               asked = std::make_shared<std::unordered_set<std::uint64_t>>()](
                                  std::uint64_t cgroup, CgroupName which) {
    static constexpr std::string CgroupNames::*kByWhich[] = {
        &CgroupNames::path, &CgroupNames::container, &CgroupNames::container_id, &CgroupNames::pod,
        &CgroupNames::unit};
    const auto number = static_cast<std::size_t>(which);
    // Names do not change once they are known: they are recorded then, and not again.
    if (!recall || (!replaying() && asked->contains(cgroup)))
      return containers->of(cgroup).*kByWhich[number];
    const auto all = unpacked(recalled(Ask::cgroup, std::to_string(cgroup), [&] {
      std::vector<std::string> each;
      for (auto name : kByWhich) each.push_back(containers->of(cgroup).*name);
      return packed(each);
    }));
    if (!all.empty() && !all[0].empty()) asked->insert(cgroup);
    return number < all.size() ? all[number] : std::string();
  };
}

bpf_map* Session::map_named(const char* name) const {
  return object ? bpf_object__find_map_by_name(object.get(), name) : nullptr;
}

void Session::say(std::string_view message) const {
  if (quiet) return;
  auto text = fmt::format("{}: {}\n", tool.shown_name(), message);
  fputs(text.c_str(), stderr);
}

void Session::note(std::string_view what, const Error& why) const {
  say(fmt::format("note: {}: {}{}{}", what, why.why, why.hint.empty() ? "" : "; ", why.hint));
}

bool Session::complete(const Result<void>& reading) {
  if (reading) return true;
  incomplete = true;
  print_error(tool.shown_name(), reading.error());
  return false;
}

void Session::verbose(std::string_view message) const {
  if (config.given("verbose")) say(message);
}

}  // namespace coretap
