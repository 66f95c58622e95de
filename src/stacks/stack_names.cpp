#include "stacks/stack_names.hpp"

#include <vector>

#include <fmt/format.h>

#include "program/variables.hpp"

namespace coretap {

namespace {
constexpr std::size_t kManyNames = 2048;  // a few megabytes
}

Frames kernel_frames(Session& s, Stacks& stacks, const stack& found,
                     std::vector<FramePlace>* places) {
  auto frames = stacks.kernel(found, places);
  if (auto why = stacks.take_kernel_failure()) s.note("kernel functions have no names", *why);
  return frames;
}

void StackNames::next_report() {
  if (known_.size() > kManyNames)
    std::erase_if(known_, [&](auto& entry) { return entry.second.asked < reports_; });
  reports_++;
}

void StackNames::configure(Session& s, Stacks::Style style, bool user) {
  set_variable(s, "stack_depth", s.stack_depth());
  set_variable(s, "stack_user_depth", s.user_stack_depth());
  style.interpreted_only = s.config.stacks.code == Config::Stacks::interpreted;
  stacks_ = std::make_unique<Stacks>(style);
  if (user)
    s.retained.add(
        {Capability::sys_ptrace, Capability::dac_read_search, Capability::checkpoint_restore});
  walker_ = unwind::make_walker(s.config.stacks.unwind, user && s.map(MapName("unwind_rows")));
  walker_->remapped = [this](pid_t tgid, std::uint32_t image) {
    stacks_->remember(tgid, 0, image, 0);
  };
  walker_->configure(s);
}

bool StackNames::take(Session& s, const void* record, std::size_t size) {
  if (!walker_) return false;
  auto& process = *static_cast<const stack_process*>(record);
  if (size < sizeof process || process.mark != STACK_PROCESS)
    return !replaying() && walker_->take(record, size);
  meet(s, process);
  return true;
}

/// The process is alive now, but may have ended when its symbols are needed.
void StackNames::meet(Session& s, const stack_process& process) {
  if (replaying()) return;
  if (process.news == STACK_PROCESS_MET)
    stacks_->remember(static_cast<pid_t>(process.tgid), static_cast<pid_t>(process.forked_from),
                      walker_->image(process), process.stack_begin);
  walker_->meet(s, process);
}

const StackNames::Named& StackNames::find(Session& s, std::uint64_t id, pid_t tgid, bool kernel) {
  auto [at, is_new] = known_.try_emplace({id, tgid});
  auto& named = at->second;
  named.asked = reports_;
  if (!is_new || !id) return named;
  auto* places = stacks_->keeps_places() ? &named.places : nullptr;
  stack found{};
  if (!s.source->stack_of(id, found)) {
    named.missed = true;
    named.frames = {kernel ? "[Missed Kernel Stack]" : "[Missed User Stack]"};
  } else if (kernel) {
    named.frames = kernel_frames(s, *stacks_, found, places);
  } else {
    Symbol outermost;
    std::vector<std::uint64_t> frames;
    const bool whole = add_parts(
        found, [&](std::uint64_t key, stack& part) { return s.source->stack_of(key, part); },
        frames);
    named.frames = stacks_->user(tgid, {frames, found.image}, {walker_->files(), walker_->codes()},
                                 &outermost, places);
    if (!whole) {
      named.frames.emplace_back("[Missed User Stack]");
      if (places) places->emplace_back();
    }
    for (auto uid : stacks_->take_given_up())
      s.note(fmt::format("functions of user {}'s programs have no names", uid),
             {{}, "reading the files takes too long"});
    if (stacks_->take_lines_given_up())
      s.note("the rest of the frames has no source lines",
             {{}, "reading the debug information takes too long"});
    named.cut = walk_cut(found, outermost);
    named.guessed = found.guessed;
  }
  return named;
}

void tell_interrupts(Session& s) {
  auto code = interrupt_code();
  set_variable(s, "irq_code_begin", code.irq_begin);
  set_variable(s, "irq_code_end", code.irq_end);
  set_variable(s, "softirq_code_begin", code.softirq_begin);
  set_variable(s, "softirq_code_end", code.softirq_end);
  if (!code.irq_end)
    s.limits.emplace_back(
        "interrupts that wake a task cannot be distinguished from the tasks they interrupt "
        "(/proc/kallsyms hides addresses; CAP_SYSLOG or root sees them)");
}

}  // namespace coretap
