#include "program/links.hpp"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/descriptors.hpp"
#include "coretap/parse.hpp"

namespace coretap {

Result<Link> link_of(int fd) {
  if (fd < 0) return system_error({}, errno, kUnsupported);
  return Link(Fd(fd));
}

bool Link::ends_alone() const {
  bpf_link_info info{};
  __u32 size = sizeof info;
  // Before 5.15 (b89fbfbb854c) the descriptor is that of the perf event, which has no such
  // information.
  return fd() >= 0 &&
         (bpf_obj_get_info_by_fd(fd(), &info, &size) != 0 || info.type == BPF_LINK_TYPE_PERF_EVENT);
}

void detach(Links& links) {
  constexpr std::size_t kMostAtOnce = 32;
  const auto at_once = std::min(links.size(), kMostAtOnce);
  auto end_share = [&](std::size_t first) {
    for (auto i = first; i < links.size(); i += at_once) links[i] = Link(nullptr);
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t first = 1; first < at_once; first++) others.emplace_back(end_share, first);
    } catch (const std::system_error&) {
      // The limit of threads is reached (ulimit -u): links.clear() below ends the rest one by one.
    }
    end_share(0);
  }
  links.clear();
}

namespace {

/// Closes pipes, sockets and files, whose end other processes wait for; keeps kernel objects (BPF).
void close_files() {
  std::vector<int> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    auto target = std::filesystem::read_symlink(at->path(), gone).string();
    auto fd = parse_unsigned(at->path().filename().string());
    if (fd && !target.starts_with("anon_inode:")) files.push_back(static_cast<int>(*fd));
  }
  for (int fd : files) ::close(fd);
}

}  // namespace

void leave(Links& links) {
  int alone = 0;
  const bool several = std::ranges::any_of(
      links, [&](const Link& link) { return link.ends_alone() && ++alone == 2; });
  if (!several) return detach(links);
  const pid_t child = ::fork();
  if (child < 0) return detach(links);
  if (child == 0) {
    ::prctl(PR_SET_NAME, "coretap-detach");
    close_files();
    detach(links);
    ::_exit(0);
  }
  links.clear();
  // Waits for an RCU grace period: then no CPU is in a program that started before.
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

}  // namespace coretap
