// Sizes of maps: from the machine or an option, never a constant that silently drops.
#pragma once
#include <cstddef>
#include <functional>

#include "coretap/result.hpp"

struct bpf_map;

namespace coretap {

struct Session;

inline constexpr std::size_t kCacheLine = 64;  ///< what slots of CPUs and rows are aligned to

/// Takes memory as it is used, up to `most` entries, where the kernel can do that safely; else
/// `preallocated` ones at most.
void on_demand(Session& s, bpf_map* map, std::uint64_t most, std::uint64_t preallocated);
void size_maps(Session& session);

/// After load: maps that grow on demand allocate from small stocks of each CPU, which hold one
/// entry until the first was taken (bpf_mem_alloc since 6.1). An event that needs two would go
/// without.
void fill_stocks(Session& session);

/// After load: the NUMA nodes of CPUs, for programs with bpf/lib/node.bpf.h.
void fill_nodes(Session& session);

/// How many values an entry has: one, or one for each possible CPU, each of whole 64-bit words.
std::size_t values_of(const bpf_map* map);
/// The bytes of all of them, as the kernel copies them.
std::size_t value_bytes(const bpf_map* map);

/// Calls back with each key and value (value_bytes()) of a hash map whose entries are not deleted
/// meanwhile, so that none is visited twice or left out. A failure: some may be left out.
using VisitKeyed = std::function<void(const char* key, const char* value)>;
Result<void> each_entry(const bpf_map* map, const VisitKeyed& visit);

/// Takes a key out of a hash map, with its last value; false: it was not there. A program that adds
/// to it in the same microsecond loses that.
bool take_out(int map, const void* key, void* value);

/// For maps with an entry for each key (--max-keys), or for each stack (--stack-storage-size).
void size_for_keys(Session& s, bpf_map* map);
void size_for_stacks(Session& s, bpf_map* map);

}  // namespace coretap
