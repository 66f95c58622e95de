// Sizes of maps: scaled to the machine or set by an option, never a constant that silently drops.
#pragma once
#include <cstddef>
#include <functional>

#include "coretap/result.hpp"

struct bpf_map;

namespace coretap {

struct Session;

inline constexpr std::size_t kCacheLine = 64;  ///< alignment of per-CPU slots and rows, in bytes

void set_entries(bpf_map* map, std::uint64_t most);
/// Allocates on demand up to `most` entries, if the kernel can do that safely; else preallocates at
/// most `preallocated` entries.
void on_demand(Session& s, bpf_map* map, std::uint64_t most, std::uint64_t preallocated);
void size_maps(Session& session);

/// After load: maps that grow on demand allocate from small per-CPU caches, which hold one entry
/// until the first was taken (bpf_mem_alloc since 6.1). Without this, an event that needs two would
/// get only one.
void fill_stocks(Session& session);

/// After load: fills in the NUMA node of each CPU, for programs with bpf/cpu/node.bpf.h.
void fill_nodes(Session& session);

/// Values per entry: one, or one for each possible CPU, each rounded up to 64-bit words.
std::size_t values_of(const bpf_map* map);
/// The bytes of all values of an entry, as the kernel copies them.
std::size_t value_bytes(const bpf_map* map);

/// Calls back with each key and value (value_bytes()) of a hash map from which no entry is deleted
/// meanwhile, so that none is visited twice or left out. On failure some may be left out.
using VisitKeyed = std::function<void(const char* key, const char* value)>;
Result<void> each_entry(const bpf_map* map, const VisitKeyed& visit);

/// Removes a key from a hash map and returns its last value; false: no such key. An update by a
/// program within the same microsecond may be lost.
bool take_out(int map, const void* key, void* value);

/// For maps with an entry per key (--max-keys), or per stack (--stack-storage-size).
void size_for_keys(Session& s, bpf_map* map);
void size_for_stacks(Session& s, bpf_map* map);

}  // namespace coretap
