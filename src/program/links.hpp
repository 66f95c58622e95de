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

}  // namespace coretap
