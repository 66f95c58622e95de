// Links: they keep programs attached.
#pragma once
#include <bpf/libbpf.h>

#include <memory>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// Attached while the object exists: a libbpf link, or a descriptor of the kernel.
class Link {
 public:
  explicit Link(bpf_link* link) : link_(link) {}  ///< null: not attached
  explicit Link(Fd fd) : fd_(std::move(fd)) {}

  /// The kernel ends such links one after another, each in 10 to 100 ms, with PREEMPT_RT in about
  /// 500 ms: perf_trace_destroy() holds event_mutex while it waits for all CPUs, and since 6.13 and
  /// stable releases (ef1b808e3b7c) perf_event_detach_bpf_prog() holds bpf_event_mutex likewise.
  bool ends_alone() const;

  /// The descriptor of the link; -1: none.
  int fd() const { return link_ ? bpf_link__fd(link_.get()) : fd_.get(); }

 private:
  struct Destroy {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };
  std::unique_ptr<bpf_link, Destroy> link_;
  Fd fd_;
};

using Links = std::vector<Link>;

/// Of a descriptor that the kernel has returned; fails with errno if that is -1.
Result<Link> link_of(int fd);

/// Ends all links. For each, the kernel waits until no CPU runs its program; these waits run in
/// parallel here.
void detach(Links& links);
/// The same at the end of a run, after programs were stopped (tracing_stopped). If the kernel would
/// end links one by one, a child process ends them, which keeps no file or pipe open; this returns
/// when no CPU is in a program.
void leave(Links& links);

}  // namespace coretap
