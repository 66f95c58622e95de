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

#include "base/descriptors.hpp"
#include "coretap/sanitize.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/section.hpp"

namespace coretap {

namespace {

/// Attaches to one place with a perf event.
Result<Link> attach_place(bpf_program* program, const std::string& path, pid_t pid, bool at_return,
                          std::uint64_t offset) {
  LIBBPF_OPTS(bpf_uprobe_opts, options);
  options.retprobe = at_return;
  auto* link = bpf_program__attach_uprobe_opts(program, pid, path.c_str(), offset, &options);
  if (link) return Link(link);
  const int error = errno;  // the checks below may change errno
  auto refused = system_error({}, error, kUnsupported);
  refused.why += perf_capability_missing(error, true);
  return refused;
}

}  // namespace

Result<Link> attach_file(int program, const FileProbes& probes, pid_t pid) {
  auto address = [](const std::vector<std::uint64_t>& list) {
    return list.empty() ? 0 : reinterpret_cast<std::uintptr_t>(list.data());
  };
  UprobeMulti wish{};
  wish.program = static_cast<std::uint32_t>(program);
  wish.attach_type = kUprobeMulti;
  wish.path = reinterpret_cast<std::uintptr_t>(probes.path.c_str());
  wish.offsets = address(probes.offsets);
  wish.reference_counters = address(probes.semaphores);
  wish.cookies = address(probes.cookies);
  wish.count = static_cast<std::uint32_t>(probes.offsets.size());
  wish.flags = probes.at_return ? kUprobeMultiReturn : 0;
  wish.pid = pid > 0 ? static_cast<std::uint32_t>(pid) : 0;
  Fd link(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &wish, sizeof wish)));
  if (!link) return system_error({}, errno, kUnsupported);
  return Link(std::move(link));
}

bool is_probe(std::string_view section) {
  auto kind = split_section(section).kind;
  return kind == "uprobe" || kind == "uretprobe";
}

bool probes_by_file(Kernel& kernel) {
  // The first versions filtered by the main thread instead of the process (46ba0e49b642 in 6.10,
  // which also added this link type).
  return kernel.has_enumerator("bpf_attach_type", "BPF_TRACE_KPROBE_SESSION");
}

Result<Links> attach_probes(bpf_program* program, const std::vector<std::uint32_t>& pids,
                            const ProbePoints& places) {
  const bool returns = split_section(bpf_program__section_name(program)).kind == "uretprobe";
  std::set<pid_t> whose(pids.begin(), pids.end());
  if (whose.empty()) whose.insert(-1);
  const bool by_file = bpf_program__expected_attach_type(program) == kUprobeMulti;
  std::map<std::pair<const Fd*, bool>, std::pair<const ProbePoint*, FileProbes>> all;
  for (auto& point : places.points) {
    const bool at_return = returns && point.returns.empty();
    auto& [first, probes] = all[{point.file.get(), at_return}];
    if (!first) first = &point, probes = {point.open_path(), at_return, {}};
    auto offsets = returns && !at_return ? point.returns : std::vector{point.offset};
    probes.offsets.insert(probes.offsets.end(), offsets.begin(), offsets.end());
  }
  Links links;
  auto take = [&](Result<Link> link, const ProbePoint& point) -> Result<void> {
    if (!link) {
      link.error().what = fmt::format("cannot probe {} in {}", point.symbol, printable(point.path));
      return link.error();
    }
    links.push_back(std::move(*link));
    return {};
  };
  for (auto& [key, file] : all) {
    auto& [point, probes] = file;
    for (auto pid : whose) {
      if (by_file)
        if (auto r = take(attach_file(bpf_program__fd(program), probes, pid), *point); !r)
          return r.error();
      for (auto offset : by_file ? std::vector<std::uint64_t>() : probes.offsets)
        if (auto r =
                take(attach_place(program, probes.path, pid, probes.at_return, offset), *point);
            !r)
          return r.error();
    }
  }
  return links;
}

}  // namespace coretap
