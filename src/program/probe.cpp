#include "program/probe.hpp"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/section.hpp"
#include "text/sanitize.hpp"

namespace coretap {

namespace {

/// The kernel's words (include/uapi/linux/bpf.h), which older headers do not have.
constexpr std::uint32_t kAtReturn = 1;  // BPF_F_UPROBE_MULTI_RETURN
struct UprobeMulti {                    // bpf_attr's link_create
  std::uint32_t program, target, attach_type, link_flags;
  std::uint64_t path, offsets, reference_counters, cookies;
  std::uint32_t count, flags, pid, unused;
};

/// All places in one file. `pid` -1: of all processes.
Result<Link> attach_file(bpf_program* program, const std::string& path, pid_t pid, bool at_return,
                         const std::vector<std::uint64_t>& offsets) {
  UprobeMulti wish{};
  wish.program = static_cast<std::uint32_t>(bpf_program__fd(program));
  wish.attach_type = kUprobeMulti;
  wish.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  wish.offsets = reinterpret_cast<std::uintptr_t>(offsets.data());
  wish.count = static_cast<std::uint32_t>(offsets.size());
  wish.flags = at_return ? kAtReturn : 0;
  wish.pid = pid > 0 ? static_cast<std::uint32_t>(pid) : 0;
  Fd link(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &wish, sizeof wish)));
  if (!link) return Error{{}, strerror(errno)};
  return Link(std::move(link));
}

/// One place by a perf event.
Result<Link> attach_place(bpf_program* program, const std::string& path, pid_t pid, bool at_return,
                          std::uint64_t offset) {
  LIBBPF_OPTS(bpf_uprobe_opts, options);
  options.retprobe = at_return;
  auto* link = bpf_program__attach_uprobe_opts(program, pid, path.c_str(), offset, &options);
  if (link) return Link(link);
  const int error = errno;  // which looking for what is missing may change
  return Error{{}, strerror(error) + perf_capability_missing(error, true)};
}

}  // namespace

bool is_probe(std::string_view section) {
  auto kind = split_section(section).kind;
  return kind == "uprobe" || kind == "uretprobe";
}

bool probes_by_file(Kernel& kernel) {
  // The first ones took a process for its main thread (46ba0e49b642 in 6.10, whose other new kind
  // of link tells it from them).
  return kernel.has_enumerator("bpf_attach_type", "BPF_TRACE_KPROBE_SESSION");
}

Result<Links> attach_probes(bpf_program* program, const std::vector<std::uint32_t>& pids,
                            const ProbePoints& places) {
  const bool at_return = split_section(bpf_program__section_name(program)).kind == "uretprobe";
  std::set<pid_t> whose(pids.begin(), pids.end());
  if (whose.empty()) whose.insert(-1);
  const bool by_file = bpf_program__expected_attach_type(program) == kUprobeMulti;
  std::map<const Fd*, std::vector<std::uint64_t>> offsets;
  for (auto& point : places.points) offsets[point.file.get()].push_back(point.offset);
  Links links;
  for (auto& point : places.points) {
    auto& in_file = offsets[point.file.get()];
    if (by_file && point.offset != in_file.front()) continue;  // came with the file's first
    auto path = point.open_path();
    for (auto pid : whose) {
      auto link = by_file ? attach_file(program, path, pid, at_return, in_file)
                          : attach_place(program, path, pid, at_return, point.offset);
      if (!link)
        return Error{fmt::format("cannot probe {} in {}", point.symbol, printable(point.path)),
                     link.error().why,
                     {},
                     kUnsupported};
      links.push_back(std::move(*link));
    }
  }
  return links;
}

}  // namespace coretap
