#include "tools/memory/memleak/allocation_tracker.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace coretap {

namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

}  // namespace

void AllocationTracker::note(const alloc_note& note) {
  if (note.kind == ALLOC_UNMAPPED) {
    if (note.address + note.bytes < note.address) return;
    unmapped_[note.owner].all.push_back(
        {note.address, note.address + note.bytes, note.time_ns, false});
    ranges_kept_++;
    return;
  }
  ended_[note.owner] = {note.time_ns, note.kind == ALLOC_OWNER_EXITED};
}

void AllocationTracker::begin_to_forget() {
  for (auto& [owner, ranges] : unmapped_) {
    std::sort(ranges.all.begin(), ranges.all.end(),
              [](auto& a, auto& b) { return a.begin < b.begin; });
    ranges.reach.clear();
    std::uint64_t reach = 0;
    for (auto& r : ranges.all) {
      r.used = false;
      ranges.reach.push_back(reach = std::max(reach, r.end));
    }
  }
}

void AllocationTracker::begin(Want want) {
  want_ = want;
  rows_.clear();
  begin_to_forget();
}

/// The parts of an allocation that are left: removes ranges that were unmapped after it was made.
std::vector<Allocation> AllocationTracker::left_of(const alloc_key& key, const alloc_info& value) {
  std::vector<Allocation> left{{key.address, value.bytes, value.time_ns}};
  auto found = value.mapping ? unmapped_.find(key.owner) : unmapped_.end();
  if (found == unmapped_.end()) return left;
  auto& [all, reach] = found->second;
  auto begin = key.address, end = begin + whole_pages(value.bytes);
  auto behind =
      std::partition_point(all.begin(), all.end(), [&](auto& r) { return r.begin < end; });
  for (auto i = behind - all.begin() - 1; i >= 0 && reach[static_cast<std::size_t>(i)] > begin;
       i--) {
    auto& range = all[static_cast<std::size_t>(i)];
    if (range.end <= begin || range.time_ns <= value.time_ns) continue;
    range.used = true;
    std::vector<Allocation> rest;
    for (auto& b : left) {
      auto b_end = b.address + b.bytes, b_pages_end = b.address + whole_pages(b.bytes);
      if (range.end <= b.address || range.begin >= b_pages_end) {
        rest.push_back(b);
        continue;
      }
      if (range.begin > b.address) rest.push_back({b.address, range.begin - b.address, b.time_ns});
      if (range.end < b_end) rest.push_back({range.end, b_end - range.end, b.time_ns});
    }
    left = std::move(rest);
  }
  return left;
}

const AllocationTracker::OwnerEnd* AllocationTracker::end_of(std::uint32_t owner,
                                                             std::uint64_t time_ns) const {
  auto found = owner ? ended_.find(owner) : ended_.end();
  return found != ended_.end() && time_ns < found->second.time_ns ? &found->second : nullptr;
}

OutstandingRow& AllocationTracker::row(std::uint64_t stack, std::uint32_t owner, bool exited) {
  auto [at, is_new] = rows_.try_emplace({stack, owner, exited});
  if (is_new) {
    at->second.stack = stack;
    at->second.owner = owner;
    at->second.exited = exited;
  }
  return at->second;
}

/// Kernel memory with the same stack may have been allocated for several processes.
void AllocationTracker::attribute(OutstandingRow& row, std::uint32_t tgid, const char* comm) {
  bool first = row.count == 0;
  if (!first && row.tgid != tgid) {
    row.tgid = 0;
    row.comm.clear();
  } else if (first) {
    row.tgid = tgid;
    row.comm.assign(comm, strnlen(comm, COMM_LEN));
  }
}

bool AllocationTracker::add(const alloc_key& key, const alloc_info& value) {
  auto* end = end_of(key.owner, value.time_ns);
  if (end && !end->exited) return false;
  auto left = left_of(key, value);
  if (left.empty()) return false;
  if (value.time_ns <= want_.until_ns) {
    auto& r = row(value.stack, key.owner, end);
    attribute(r, value.tgid, value.comm);
    for (auto& b : left) {
      r.bytes += b.bytes;
      r.count++;
    }
    r.oldest_ns = r.oldest_ns ? std::min<std::uint64_t>(r.oldest_ns, value.time_ns) : value.time_ns;
    r.newest_ns = std::max<std::uint64_t>(r.newest_ns, value.time_ns);
    if (want_.blocks) r.blocks.insert(r.blocks.end(), left.begin(), left.end());
  }
  return !end;
}

bool AllocationTracker::add(const alloc_site& site, const alloc_sum& sum) {
  auto* end = end_of(site.owner, sum.newest_ns);
  if (end && !end->exited) return false;
  auto bytes = static_cast<std::int64_t>(sum.bytes), count = static_cast<std::int64_t>(sum.count);
  if (count > 0 && bytes >= 0) {
    auto& r = row(site.stack, site.owner, end);
    attribute(r, sum.tgid, sum.comm);
    r.bytes += sum.bytes;
    r.count += sum.count;
    r.newest_ns = sum.newest_ns;
  }
  return !end;
}

std::vector<OutstandingRow> AllocationTracker::finish() {
  for (auto& [owner, end] : ended_) unmapped_.erase(owner);
  ended_.clear();
  forget_notes();
  std::vector<OutstandingRow> rows;
  rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) {
    // The map has no order.
    std::ranges::sort(row.blocks, {}, [](auto& b) { return std::pair(b.time_ns, b.address); });
    rows.push_back(std::move(row));
  }
  rows_.clear();
  return rows;
}

void AllocationTracker::keep_notes_of(const alloc_key& key, const alloc_info& value) {
  left_of(key, value);
}

void AllocationTracker::forget_notes() {
  ranges_kept_ = 0;
  for (auto at = unmapped_.begin(); at != unmapped_.end();) {
    std::erase_if(at->second.all, [](auto& r) { return !r.used; });
    ranges_kept_ += at->second.all.size();
    at = at->second.all.empty() ? unmapped_.erase(at) : std::next(at);
  }
  most_ = std::max(kMostNotes, 2 * ranges_kept_);
}

}  // namespace coretap
