#include "tools/cpu/walltime/accounts.hpp"

#include <algorithm>
#include <utility>

namespace coretap {

namespace {

void add_cells(WallCells& to, const walltime_account& a) {
  for (std::uint64_t i = 0; i < WALL_STATES; i++)
    if (a.states[i].count) add(to[{i}], a.states[i]);
  for (auto& wait : a.waits)
    if (wait.witness) add(to[{wait.witness}], wait.sum);
  if (a.open_witness)
    add(to[{a.open_witness, a.open_stack, a.open_user}], {a.open_ns, 1, a.open_ns});
}

std::uint64_t total(const WallCells& cells) {
  std::uint64_t ns = 0;
  for (auto& [cell, sum] : cells) ns += sum.ns;
  return ns;
}

bool is_detail(std::uint64_t witness) {
  return witness < WALL_STATES || witness == WALL_IN_USER || witness == WALL_IN_KERNEL;
}

/// Takes this time away from the largest waits.
void take_away(WallCells& from, std::uint64_t ns) {
  std::vector<wall_sum*> sums;
  for (auto& [cell, sum] : from) sums.push_back(&sum);
  std::ranges::sort(sums, [](auto* a, auto* b) { return a->ns > b->ns; });
  for (auto* sum : sums) {
    auto part = std::min<std::uint64_t>(sum->ns, ns);
    sum->ns -= part;
    ns -= part;
  }
}

}  // namespace

void add(wall_sum& to, const wall_sum& more) {
  to.ns += more.ns;
  to.count += more.count;
  to.longest_ns = std::max<std::uint64_t>(to.longest_ns, more.longest_ns);
}

void Accounts::fold(Owner& owner, const walltime_account& account) {
  add_cells(owner.ended, account);
  owner.ended_ns += account.until_ns - account.begin_ns;
}

void Accounts::take(const walltime_account& account) {
  auto& owner = owners_[by_thread_ ? account.thread : account.process];
  if (!owner.who.known || account.who.tid == account.who.pid || !account.ended)
    owner.who = account.who;
  if (!account.ended) {
    owner.threads[account.thread] = {account, reports_};
    return;
  }
  owner.threads.erase(account.thread);
  fold(owner, account);
  owner.ended_threads++;
}

void Accounts::take_row(const walltime_row& row, const wall_sum& sum) {
  auto found = owners_.find(row.owner);
  // The row of a thread whose account comes with the next report.
  if (found == owners_.end()) return;
  const WallCell cell{row.witness, row.stack, row.user};
  if (is_detail(row.witness))
    found->second.details[cell] = sum;
  else
    add(found->second.rows[cell], sum);
}

/**
 * A wait that is under way may be known by other things than at its end, and the time on a CPU is
 * divided at its end: then a cell has less than was reported, and another one that much more.
 */
WallCells Accounts::changes(Owner& owner, const WallCells& now) {
  WallCells more;
  std::uint64_t less = 0;
  for (auto& [cell, sum] : owner.reported)
    if (auto found = now.find(cell); found == now.end() || found->second.ns < sum.ns)
      less += sum.ns - (found == now.end() ? 0 : found->second.ns);
  for (auto& [cell, sum] : now) {
    auto before = owner.reported[cell];
    if (sum.ns > before.ns || sum.count > before.count)
      more[cell] = {sum.ns > before.ns ? sum.ns - before.ns : 0,
                    sum.count > before.count ? sum.count - before.count : 0, sum.longest_ns};
  }
  take_away(more, less);
  return more;
}

std::vector<WallOwner> Accounts::report(bool closed) {
  std::vector<WallOwner> all;
  for (auto at = owners_.begin(); at != owners_.end();) {
    auto& [number, owner] = *at;
    auto now = owner.ended;
    auto now_ns = owner.ended_ns;
    for (auto& [cell, sum] : owner.rows) add(now[cell], sum);
    WallOwner shown{number, owner.who, owner.ended_threads, 0, {}, {}, false};
    for (auto thread = owner.threads.begin(); thread != owner.threads.end();) {
      auto& [account, seen] = thread->second;
      add_cells(now, account);
      now_ns += account.until_ns - account.begin_ns;
      if (seen == reports_) shown.threads++;
      // It has ended, and its last account was lost.
      if (seen + 1 >= reports_) {
        ++thread;
        continue;
      }
      fold(owner, account);
      thread = owner.threads.erase(thread);
    }
    shown.time_ns = now_ns - std::min(now_ns, owner.reported_ns);
    shown.cells = changes(owner, now);
    owner.reported = now;
    if (auto sum = total(shown.cells); !closed && sum > shown.time_ns) {
      auto before = shown.cells;
      take_away(shown.cells, sum - shown.time_ns);
      for (auto& [cell, left] : shown.cells) owner.reported[cell].ns -= before[cell].ns - left.ns;
    }
    owner.reported_ns = now_ns;
    for (auto& [cell, sum] : owner.details) {
      auto before = std::exchange(owner.reported_details[cell], sum);
      if (sum.count > before.count)
        shown.details[cell] = {sum.ns - before.ns, sum.count - before.count, sum.longest_ns};
    }
    owner.rows.clear();
    owner.ended_threads = 0;
    shown.ended = owner.threads.empty();
    all.push_back(std::move(shown));
    at = owner.threads.empty() ? owners_.erase(at) : std::next(at);
  }
  reports_++;
  return all;
}

}  // namespace coretap
