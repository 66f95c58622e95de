#include "tools/cpu/walltime/graph.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/config.hpp"
#include "program/session.hpp"
#include "tools/cpu/walltime/states.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kScale = 1000;  // ns in a microsecond

const StackReport& stack_report() {
  static const StackReport report{"microseconds"};
  return report;
}

bool is_sample(std::uint64_t witness) {
  return witness == WALL_IN_USER || witness == WALL_IN_KERNEL;
}

/// part * number / all, of large numbers.
std::uint64_t share(std::uint64_t part, std::uint64_t number, std::uint64_t all) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(part) * number / all);
}

/// The frame of a state.
StackWord state_word(std::string_view name, wall::Column column) {
  static_assert(wall::kOther - wall::kCpu == StackWord::other - StackWord::cpu);  // the same order
  if (name.starts_with("wait.")) name.remove_prefix(5);
  return {static_cast<StackWord::Kind>(static_cast<int>(StackWord::cpu) + static_cast<int>(column)),
          false, fmt::format("[{}]", name)};
}

}  // namespace

void WallGraph::configure(Session& s) {
  auto& c = s.config;
  wanted_ = c.holds("svg|pprof|folded|diff");
  diff_ = c.given("diff");
  by_state_ = c.given("by-state");
  work_ = c.given("work");
  kernel_ = !c.given("user-stacks-only");
  by_thread_ = wall::By(c.rows.by).thread;
  layout_.emplace(stack_report(), StackLayout::Style{.annotated = c.given("annotations"),
                                                     .delimited = c.given("delimited"),
                                                     .tool = s.tool.name});
}

Result<void> WallGraph::ready(Session& s) {
  if (!diff_) return {};
  const auto& given = s.config.given_options();
  if (auto r = comparison_.read(given.find("diff")->second); !r) return r;
  if (work_ && !comparison_.has_work()) {
    work_ = false;
    s.say(
        "--diff: the file has no time in which there was nothing to do: it is left out here, too "
        "('--work' when it was recorded)");
  }
  files_.draw_by([this](auto& title) { return comparison_.svg(title); });
  return {};
}

Result<void> WallGraph::open(Session& s) {
  if (auto r = files_.open(s, {{{"waits", "count"}, {"time", "nanoseconds"}}}); !r) return r;
  return {};
}

void WallGraph::add(const WallOwner& owner, const std::string& title) {
  thread_ns_ += owner.time_ns;
  if (diff_) slices_.add(owner);
  auto& to = owners_[owner.owner];
  to.who = owner.who;
  to.title = title;
  to.ended = owner.ended;
  for (auto& [cell, sum] : owner.cells) coretap::add(to.cells[cell], sum);
  for (auto& [cell, sum] : owner.details) coretap::add(to.details[cell], sum);
}

void WallGraph::draw(Session& s, StackNames& names, const StateOf& state_of, bool all) {
  session_ = &s;
  names_ = &names;
  if (!drawn_ns_ && !left_out_ns_) files_.begin(kScale);
  // A comparison divides the time of all of them by the same scale, which is known at the end.
  if (diff_ && !all) return;
  std::vector<WallSlice> slices;
  if (diff_) {
    slices = slices_.take();
    comparison_.begin(slices, thread_ns_, work_);
  }
  draw_all(state_of, all);
  if (!all) return;
  files_.ends();
  files_.note(thread_time_note(thread_ns_, monotonic_ns() - s.began_ns));
  if (left_out_ns_)
    s.plan.limits.push_back(fmt::format(
        "{:.1f} % of the time is left out: it had nothing to do (--work shows it)",
        100 * static_cast<double>(left_out_ns_) / static_cast<double>(left_out_ns_ + drawn_ns_)));
  if (!diff_) return;
  comparison_.add_recorded();
  for (std::size_t i = 0; i < slices.size(); i++) {
    slice_ = i;
    for (auto& [number, part] : slices[i].owners)
      owners_[number] = {part.who, {}, std::move(part.cells), std::move(part.details), false};
    draw_all(state_of, true);
  }
  slice_.reset();
}

void WallGraph::draw_all(const StateOf& state_of, bool all) {
  groups_.clear();
  auto drawn = [&](auto& owner) { return all || owner.ended; };
  for (auto& [number, owner] : owners_) {
    if (!drawn(owner)) continue;
    auto& group = groups_[owner.name()];
    auto samples = owner.samples();
    group.samples += samples;
    group.sampled |= samples != 0;
    if (auto cpu = owner.cells.find({WALL_CPU}); !samples && cpu != owner.cells.end())
      coretap::add(group.rest, cpu->second);
  }
  std::erase_if(owners_, [&](auto& entry) {
    if (!drawn(entry.second)) return false;
    draw(entry.second, state_of);
    return true;
  });
}

void WallGraph::draw(const Owner& owner, const StateOf& state_of) {
  for (auto& [cell, sum] : owner.cells) {
    if (!sum.ns) continue;
    if (cell.witness == WALL_CPU) {
      draw_cpu(owner, sum);
    } else if (cell.witness >= WALL_BUSY && cell.witness <= WALL_LIMIT) {
      draw_queue(owner, cell.witness, sum);
    } else {
      auto state = state_of(cell);
      bool wait = cell.witness >= WALL_STATES;
      put(owner, {cell, state, wall::states()[state].name, wait && !cell.stack, sum});
    }
  }
}

std::uint64_t WallGraph::Owner::samples() const {
  std::uint64_t all = 0;
  for (auto& [cell, sampled] : details)
    if (is_sample(cell.witness)) all += sampled.count;
  return all;
}

/// The exact time is divided by the samples; that of an owner without samples by those of others
/// with its name.
void WallGraph::draw_cpu(const Owner& owner, const wall_sum& sum) {
  auto& group = groups_[owner.name()];
  auto rest = owner.samples();
  std::uint64_t left = sum.ns;
  if (!rest) {
    if (!group.sampled) put(owner, {{}, WALL_CPU, "cpu", false, sum});
    return;
  }
  auto others = share(group.rest.ns, rest, group.samples);
  group.rest.ns -= others;
  group.samples -= rest;
  left += others;
  for (auto& [cell, sampled] : owner.details) {
    if (!is_sample(cell.witness)) continue;
    auto ns = share(left, sampled.count, rest);
    left -= ns;
    rest -= sampled.count;
    put(owner, {cell,
                WALL_CPU,
                cell.witness == WALL_IN_USER ? "cpu.user" : "cpu.kernel",
                false,
                {ns, sampled.count, 0}});
  }
}

void WallGraph::draw_queue(const Owner& owner, std::size_t state, const wall_sum& sum) {
  auto name = std::string_view(wall::states()[state].name);
  auto left = sum;
  for (auto& [cell, part] : owner.details) {
    if (cell.witness != state) continue;
    auto ns = std::min(part.ns, left.ns);
    left.ns -= ns;
    left.count -= std::min(part.count, left.count);
    put(owner, {cell, state, name, false, {ns, part.count, 0}});
  }
  put(owner, {{}, state, name, true, left});
}

void WallGraph::put(const Owner& owner, const Piece& piece) {
  if (!piece.sum.ns) return;
  auto column = wall::states()[piece.state].column;
  const bool left_out = column == wall::kWork && !work_;
  if (!slice_) (left_out ? left_out_ns_ : drawn_ns_) += piece.sum.ns;
  if (left_out) return;
  StackParty party;
  memcpy(party.who.comm, owner.who.comm, sizeof party.who.comm);
  party.who.tgid = owner.who.pid;
  party.who.tid = owner.who.tid;
  bool missed = false;
  if (piece.stacks.stack && kernel_) {
    auto& kernel = names_->kernel(*session_, piece.stacks.stack);
    party.kernel = kernel.frames;
    party.kernel_places = kernel.places;
    missed |= kernel.missed;
  }
  if (piece.stacks.user) {
    auto& user = names_->user(*session_, piece.stacks.user, static_cast<pid_t>(owner.who.pid));
    party.user = user.frames;
    party.user_places = user.places;
    party.cut = user.cut;
    party.guessed = user.guessed;
    missed |= user.missed;
  }
  if (!slice_) {
    session_->ledger.user_stack(party.cut, party.guessed, piece.sum.count);
    if (missed) session_->ledger.count[LEDGER_STACK_FAILED] += piece.sum.count;
  }

  auto path = layout_->path({party});
  if (diff_) {
    auto bare = path;
    if (piece.is_short) bare.push_back({StackWord::mark, false, "[short waits]"});
    bare.push_back(state_word(piece.leaf, column));
    if (slice_) return comparison_.add_slice(*slice_, bare, piece.sum.ns);
    comparison_.add(bare, piece.sum.ns);
  }
  if (by_thread_) path.front().text += fmt::format("/{}", owner.who.tid);
  if (piece.is_short) path.push_back({StackWord::mark, false, "[short waits]"});
  if (!owner.title.empty())
    path.insert(path.begin(), StackWord{StackWord::task, false, owner.title});
  path.insert(by_state_ ? path.begin() : path.end(), state_word(piece.leaf, column));
  files_.add(path, {party.name(), owner.who.pid}, piece.sum.ns, {piece.sum.count, piece.sum.ns});
  if (!session_->config.given("folded")) return;
  folded_[layout_->folded(path)] += piece.sum.ns;
}

void WallGraph::fold(Session& s) {
  for (auto& [stack, ns] : std::exchange(folded_, {}))
    s.out.line(fmt::format("{} {}", stack, ns / kScale));
  if (diff_) comparison_.show(s);
}

}  // namespace coretap
