#include "program/maps.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "coretap/disks.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"
#include "lib/stack/unwind.h"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kPreallocatedStacks = 1 << 14;
constexpr std::uint64_t kPreallocatedCalls = 1 << 9;
constexpr std::uint64_t kObjects = 1 << 20;  // allocated on demand
constexpr std::uint64_t kLastObjects = 1 << 16;

/// Hash maps without preallocation are safe in all tracing programs since 6.1 (7c8199e24fa0).
bool safe_without_prealloc(Session& s) { return s.kernel.has_field("bpf_mem_alloc", "cache"); }

bool is_hash(const bpf_map* map) {
  return bpf_map__type(map) == BPF_MAP_TYPE_HASH || bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_HASH;
}

}  // namespace

std::size_t values_of(const bpf_map* map) {
  return bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_HASH ? static_cast<std::size_t>(possible_cpus())
                                                        : 1;
}

std::size_t value_bytes(const bpf_map* map) {
  auto values = values_of(map), size = std::size_t{bpf_map__value_size(map)};
  return values == 1 ? size : values * ((size + 7) / 8 * 8);
}

void set_entries(bpf_map* map, std::uint64_t most) {
  bpf_map__set_max_entries(map, static_cast<__u32>(most));
}

void on_demand(Session& s, bpf_map* map, std::uint64_t most, std::uint64_t preallocated) {
  if (!safe_without_prealloc(s)) return set_entries(map, std::min(most, preallocated));
  bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
  set_entries(map, most);
}

namespace {

/// One for each 64 KB of memory, which is more than a socket in use takes.
std::uint64_t most_sockets() {
  return std::clamp<std::uint64_t>(memory_kb("MemTotal") / 64, 4096, 1 << 18);
}

/// The number of slab caches of the kernel, counting all their names.
std::uint64_t slab_caches() {
  std::uint64_t caches = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/sys/kernel/slab", error), end; !error && at != end;
       at.increment(error))
    caches++;
  return caches;
}

/// Preallocated, as allocations by the map itself would be traced.
void preallocate(bpf_map* map, std::uint64_t entries) {
  bpf_map__set_map_flags(map, bpf_map__map_flags(map) & ~BPF_F_NO_PREALLOC);
  set_entries(map, entries);
}

void size_by(Session& s, bpf_map* map, MapSize::By by, MapSize::Entries entries) {
  const auto keys = s.config.rows.max_keys, stacks = s.config.stacks.most;
  auto set = [&](std::uint64_t most, std::uint64_t preallocated) {
    if (entries == MapSize::preallocated)
      preallocate(map, preallocated);
    else
      on_demand(s, map, most, preallocated);
  };
  switch (by) {
    case MapSize::block_requests: {
      // Requests come from fixed sets of tags; disks that appear later add their own.
      auto entries = std::bit_ceil(std::clamp<std::uint64_t>(2 * block_requests(), 16384, 1 << 20));
      set_entries(map, entries);
      set_variable(s, "requests_mask", entries - 1);
      break;
    }
    case MapSize::cached_pages:
      set(std::clamp<std::uint64_t>(memory_kb("MemTotal") / 16, 1 << 14, 1 << 20), 1 << 15);
      break;
    case MapSize::block_bios:
      if (s.kernel.tracepoint_args("block_io_start") <= 0)
        size_by(s, map, MapSize::block_requests, entries);
      break;
    case MapSize::disks:
      set_entries(map, std::max<std::uint64_t>(4 * disks(), 1024));
      break;
    case MapSize::slab_caches:
      preallocate(map, keys ? keys : std::max<std::uint64_t>(2 * slab_caches(), 1024));
      break;
    case MapSize::stacks:
      if (entries == MapSize::preallocated)
        preallocate(map, stacks ? stacks : kPreallocatedStacks);
      else
        size_for_stacks(s, map);
      break;
    case MapSize::objects: {
      // A block takes an eighth of a kilobyte; limits the map to a 16th of the memory.
      auto ready = std::clamp<std::uint64_t>(memory_kb("MemTotal") / 2, 1 << 15, 1 << 20);
      if (bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH)  // allocates all entries at creation
        set_entries(map, keys ? keys : std::min(ready, kLastObjects));
      else
        set(keys ? keys : kObjects, keys ? keys : ready);
      break;
    }
    case MapSize::sockets:
      set(most_sockets(), most_sockets());
      break;
    case MapSize::per_cpu:
      set_entries(map, std::clamp<std::uint64_t>(1024ULL * static_cast<unsigned>(possible_cpus()),
                                                 8192, 1 << 20));
      break;
  }
}

}  // namespace

void size_for_keys(Session& s, bpf_map* map) {
  if (s.config.rows.max_keys)
    set_entries(map, s.config.rows.max_keys);
  else
    on_demand(s, map, max_tasks(), 8192);
}

void size_for_stacks(Session& s, bpf_map* map) {
  if (s.config.stacks.most) {
    set_entries(map, s.config.stacks.most);
    return;
  }
  // Limits the map, if it were full, to a 64th of the memory.
  auto fits =
      memory_kb("MemTotal") * 1024 / 64 / std::max<std::uint64_t>(bpf_map__value_size(map), 64);
  on_demand(s, map, std::clamp<std::uint64_t>(fits, 4096, 1 << 17), 8192);
}

void fill_stocks(Session& s) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before)) return;
  for (int cpu : online_cpus()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) continue;
    for (auto* map : maps_of(s.object.get())) {
      if (!is_hash(map) || bpf_map__fd(map) < 0 || !(bpf_map__map_flags(map) & BPF_F_NO_PREALLOC))
        continue;
      std::string key(bpf_map__key_size(map), '\0'), value(value_bytes(map), '\0');
      int fd = bpf_map__fd(map);
      if (bpf_map_update_elem(fd, key.data(), value.data(), BPF_NOEXIST) == 0)
        bpf_map_delete_elem(fd, key.data());
    }
  }
  sched_setaffinity(0, sizeof before, &before);
}

void fill_nodes(Session& s) {
  auto* map = s.map(MapName("cpu_nodes"));
  if (!map) return;
  auto nodes = nodes_of_cpus(possible_cpus());
  for (std::uint32_t cpu = 0; cpu < nodes.size(); cpu++) {
    std::vector<std::uint64_t> slot((bpf_map__value_size(map) + 7) / 8);
    slot[0] = static_cast<std::uint64_t>(nodes[cpu]) + 1;  // node -1 (unknown) is stored as 0
    bpf_map_update_elem(bpf_map__fd(map), &cpu, slot.data(), BPF_ANY);
  }
}

namespace {

/// Visits the entries after this key one by one.
Result<void> each_after(const bpf_map* map, const std::string* after, const VisitKeyed& visit) {
  const int fd = bpf_map__fd(map);
  int failed = 0;
  std::string key(bpf_map__key_size(map), '\0'), next = key, value(value_bytes(map), '\0');
  while (bpf_map_get_next_key(fd, after ? after->data() : nullptr, next.data()) == 0) {
    key.swap(next);
    after = &key;
    if (bpf_map_lookup_elem(fd, key.data(), value.data()) == 0)
      visit(key.data(), value.data());
    else if (errno != ENOENT)
      failed = errno;
  }
  if (errno != ENOENT) failed = errno;
  if (!failed) return {};
  return Error{fmt::format("cannot read the whole map {}", bpf_map__name(map)), strerror(failed)};
}

/// Reads whole buckets of a hash map at once: visits no entry twice and leaves none out, even if
/// some are deleted meanwhile. If a bucket cannot be read (ENOMEM), reads the rest one by one.
Result<void> each_batch(const bpf_map* map, const VisitKeyed& visit) {
  const int fd = bpf_map__fd(map);
  const std::size_t key_size = bpf_map__key_size(map), value_size = value_bytes(map);
  std::uint32_t in = 0, out = 0, room = 1024;
  std::string keys, values, last;
  for (bool first = true;;) {
    keys.resize(room * key_size);
    values.resize(room * value_size);
    std::uint32_t count = room;
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    int error = bpf_map_lookup_batch(fd, first ? nullptr : &in, &out, keys.data(), values.data(),
                                     &count, &options);
    if (error == -ENOSPC && room < 1 << 20) {  // a bucket has more entries than that
      room *= 4;
      continue;
    }
    // Batches follow the order of get_next_key: entries after the last key have not been visited.
    if (error && error != -ENOENT) return each_after(map, last.empty() ? nullptr : &last, visit);
    for (std::uint32_t i = 0; i < count; i++)
      visit(keys.data() + i * key_size, values.data() + i * value_size);
    if (error) return {};
    if (count) last = keys.substr((count - 1) * key_size, key_size);
    in = out;
    first = false;
  }
}

}  // namespace

Result<void> each_entry(const bpf_map* map, const VisitKeyed& visit) {
  if (!map) return {};
  return is_hash(map) ? each_batch(map, visit) : each_after(map, nullptr, visit);
}

bool take_out(int map, const void* key, void* value) {
  // Hash maps can do both in one call since 5.14 (3e87f192b405).
  if (bpf_map_lookup_and_delete_elem(map, key, value) == 0) return true;
  return bpf_map_lookup_elem(map, key, value) == 0 && bpf_map_delete_elem(map, key) == 0;
}

void size_maps(Session& s) {
  for (auto* slots : maps_of(s.object.get()))  // CPU_SLOTS
    if (!bpf_map__is_internal(slots) && bpf_map__map_flags(slots) & BPF_F_MMAPABLE &&
        bpf_map__max_entries(slots) == 1)
      set_entries(slots, static_cast<std::uint64_t>(possible_cpus()));
  const bool storage = s.kernel.has_enumerator("bpf_func_id", "BPF_FUNC_task_storage_get");
  for (auto* map : maps_of(s.object.get()))
    if (auto type = bpf_map__type(map);
        type == BPF_MAP_TYPE_TASK_STORAGE || type == BPF_MAP_TYPE_SK_STORAGE)
      bpf_map__set_autocreate(map, storage);
  // Programs that can be preempted share some walks (task_walk.bpf.h).
  if (auto* map = s.map(MapName("walk_scratch")); map && s.map(MapName("task_walks")))
    set_entries(map, static_cast<std::uint64_t>(possible_cpus()) + WALKS_SHARED);
  if (auto* map = s.map(MapName("task_slots_hash")); map && !storage)
    on_demand(s, map, max_tasks(), max_tasks());
  if (auto* map = s.map(MapName("sock_slots_hash")); map && !storage)
    set_entries(map, most_sockets());
  // If the tracepoint indicates the last thread, the map is not used (process_end.bpf.h).
  if (auto* map = s.map(MapName("ended_processes"));
      map && s.kernel.tracepoint_args("sched_process_exit") < 2)
    set_entries(map, 8192);
  if (auto* map = s.map(MapName("acceptors"))) on_demand(s, map, most_sockets(), 8192);
  // Per-thread entries, which exist while a thread has a lot to keep.
  for (auto name : {MapName("long_records"), MapName("call_values")})
    if (auto* map = s.map(name)) on_demand(s, map, max_tasks(), kPreallocatedCalls);
  // One for each pending io_uring request, if its completion needs that (ring_io.bpf.h).
  if (auto* map = s.map(MapName("ring_requests"));
      map && (s.kernel.tracepoint_args("io_uring_complete") == 4 ||
              bpf_object__find_program_by_name(s.object.get(), ProgramName("on_ring_req").c_str())))
    on_demand(s, map, 1 << 14, 1 << 13);
  if (auto* map = s.map(MapName("events"))) {
    auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    auto bytes = s.config.events.ring_bytes ? s.config.events.ring_bytes
                                            : s.tool.report->ring_bytes(s.config);
    bytes = std::bit_ceil(std::max(bytes, page));
    set_entries(map, bytes);
    // The reader polls ten times a second; it is woken earlier when the buffer is half full.
    set_variable(s, "emit_wake_bytes", bytes / 2);
  }
  for (auto& size : s.tool.maps)
    if (auto* map = s.map(size.map); map && s.config.holds(size.when))
      size_by(s, map, size.by, size.entries);
}

}  // namespace coretap
