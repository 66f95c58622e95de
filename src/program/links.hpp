// What holds programs where they are attached.
#pragma once
#include <bpf/libbpf.h>

#include <memory>
#include <vector>

#include "base/fd.hpp"

namespace coretap {

/// Attached as long as it lives: by libbpf, or by the library itself (the kernel's descriptor).
class Link {
 public:
  explicit Link(bpf_link* link) : link_(link) {}  ///< null: attached nowhere
  explicit Link(Fd fd) : fd_(std::move(fd)) {}

  /// The kernel ends such links one after another, each in 10 to 100 ms, with PREEMPT_RT in some
  /// 500 ms: perf_trace_destroy() holds event_mutex while it waits for all CPUs, and since 6.13 and
  /// stable releases (ef1b808e3b7c) perf_event_detach_bpf_prog() holds bpf_event_mutex so.
  bool ends_alone() const;

  /// The kernel's; -1: none.
  int fd() const { return link_ ? bpf_link__fd(link_.get()) : fd_.get(); }

 private:
  struct Destroy {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };
  std::unique_ptr<bpf_link, Destroy> link_;
  Fd fd_;
};

using Links = std::vector<Link>;

/// Ends all of them. The kernel waits at each until no CPU runs its program any longer; here these
/// waits pass at once.
void detach(Links& links);
/// The same at the end of a run, when programs have been told to stop: where links end one by one,
/// a child ends them, which keeps no file and pipe open, and this returns when no CPU is in a
/// program.
void leave(Links& links);

}  // namespace coretap
