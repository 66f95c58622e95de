#include "reports/held.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace coretap {

namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

}  // namespace

void HeldBook::note(const held_note& note) {
  if (note.kind == HELD_UNMAPPED) {
    if (note.address + note.bytes < note.address) return;
    holes_[note.owner].all.push_back(
        {note.address, note.address + note.bytes, note.time_ns, false});
    holes_kept_++;
    return;
  }
  gone_[note.owner] = {note.time_ns, note.kind == HELD_EXITED};
}

void HeldBook::begin_to_forget() {
  for (auto& [owner, holes] : holes_) {
    std::sort(holes.all.begin(), holes.all.end(),
              [](auto& a, auto& b) { return a.begin < b.begin; });
    holes.reach.clear();
    std::uint64_t reach = 0;
    for (auto& h : holes.all) {
      h.used = false;
      holes.reach.push_back(reach = std::max(reach, h.end));
    }
  }
}

void HeldBook::begin(Want want) {
  want_ = want;
  rows_.clear();
  begin_to_forget();
}

/// What was unmapped of a mapping since it was made is taken out of it.
std::vector<HeldBlock> HeldBook::left_of(const held_key& key, const held& value) {
  std::vector<HeldBlock> left{{key.address, value.bytes, value.time_ns}};
  auto found = value.mapping ? holes_.find(key.owner) : holes_.end();
  if (found == holes_.end()) return left;
  auto& [all, reach] = found->second;
  auto begin = key.address, end = begin + whole_pages(value.bytes);
  auto behind =
      std::partition_point(all.begin(), all.end(), [&](auto& h) { return h.begin < end; });
  for (auto i = behind - all.begin() - 1; i >= 0 && reach[static_cast<std::size_t>(i)] > begin;
       i--) {
    auto& hole = all[static_cast<std::size_t>(i)];
    if (hole.end <= begin || hole.time_ns <= value.time_ns) continue;
    hole.used = true;
    std::vector<HeldBlock> rest;
    for (auto& b : left) {
      auto b_end = b.address + b.bytes, b_pages_end = b.address + whole_pages(b.bytes);
      if (hole.end <= b.address || hole.begin >= b_pages_end) {
        rest.push_back(b);
        continue;
      }
      if (hole.begin > b.address) rest.push_back({b.address, hole.begin - b.address, b.time_ns});
      if (hole.end < b_end) rest.push_back({hole.end, b_end - hole.end, b.time_ns});
    }
    left = std::move(rest);
  }
  return left;
}

const HeldBook::Gone* HeldBook::gone(std::uint32_t owner, std::uint64_t time_ns) const {
  auto found = owner ? gone_.find(owner) : gone_.end();
  return found != gone_.end() && time_ns < found->second.time_ns ? &found->second : nullptr;
}

HeldRow& HeldBook::row(std::uint64_t stack, std::uint32_t owner, bool exited) {
  auto [at, is_new] = rows_.try_emplace({stack, owner, exited});
  if (is_new) {
    at->second.stack = stack;
    at->second.owner = owner;
    at->second.exited = exited;
  }
  return at->second;
}

/// What the kernel holds from one stack may have been taken for several processes.
void HeldBook::meet(HeldRow& row, std::uint32_t tgid, const char* comm) {
  bool first = row.count == 0;
  if (!first && row.tgid != tgid) {
    row.tgid = 0;
    row.comm.clear();
  } else if (first) {
    row.tgid = tgid;
    row.comm.assign(comm, strnlen(comm, COMM_LEN));
  }
}

bool HeldBook::add(const held_key& key, const held& value) {
  auto* end = gone(key.owner, value.time_ns);
  if (end && !end->exited) return false;
  auto left = left_of(key, value);
  if (left.empty()) return false;
  if (value.time_ns <= want_.until_ns) {
    auto& r = row(value.stack, key.owner, end);
    meet(r, value.tgid, value.comm);
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

bool HeldBook::add(const held_place& place, const held_sum& sum) {
  auto* end = gone(place.owner, sum.newest_ns);
  if (end && !end->exited) return false;
  auto bytes = static_cast<std::int64_t>(sum.bytes), count = static_cast<std::int64_t>(sum.count);
  if (count > 0 && bytes >= 0) {
    auto& r = row(place.stack, place.owner, end);
    meet(r, sum.tgid, sum.comm);
    r.bytes += sum.bytes;
    r.count += sum.count;
    r.newest_ns = sum.newest_ns;
  }
  return !end;
}

std::vector<HeldRow> HeldBook::finish() {
  for (auto& [owner, end] : gone_) holes_.erase(owner);
  gone_.clear();
  forget_notes();
  std::vector<HeldRow> rows;
  rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) rows.push_back(std::move(row));
  rows_.clear();
  return rows;
}

void HeldBook::keep_notes_of(const held_key& key, const held& value) { left_of(key, value); }

void HeldBook::forget_notes() {
  holes_kept_ = 0;
  for (auto at = holes_.begin(); at != holes_.end();) {
    std::erase_if(at->second.all, [](auto& h) { return !h.used; });
    holes_kept_ += at->second.all.size();
    at = at->second.all.empty() ? holes_.erase(at) : std::next(at);
  }
  most_ = std::max(kMostNotes, 2 * holes_kept_);
}

}  // namespace coretap
