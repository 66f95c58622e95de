// coretap doctor: tests what this kernel and these privileges permit.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include "text/errors.hpp"

#include "cli/naming.hpp"
#include "coretap/json.hpp"
#include "coretap/small_files.hpp"
#include "kernel/bpf_links.hpp"
#include "program/needed_capabilities.hpp"
#include "program/probe_target.hpp"
#include "program/session.hpp"
#include "run/commands.hpp"
#include "run/run.hpp"

namespace coretap {

namespace {

/// A check of the kernel, or a tool.
struct Finding {
  std::string name;
  std::string state;  ///< "yes", "no", or a value; of a tool "runs", "limited", "cannot"
  std::string note = {};

  std::string line() const {
    return fmt::format("{:<26} {}{}", name, state == "limited" ? "runs with limits" : state,
                       note.empty() ? "" : "  (" + note + ")");
  }
};

/// Closes the descriptor of something that was tried and returns 0; or returns the errno.
int tried(int fd) {
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

int perf_open(std::uint32_t type, std::uint64_t config, const char* name = nullptr) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.config1 = reinterpret_cast<std::uint64_t>(name);
  if (!name) attr.sample_period = 1'000'000'000;
  // This process on any CPU; for a tracepoint one CPU, all tasks.
  long fd = syscall(SYS_perf_event_open, &attr, type == PERF_TYPE_TRACEPOINT ? -1 : 0,
                    type == PERF_TYPE_TRACEPOINT ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
  return tried(static_cast<int>(fd));
}

/// `why_not`: empty: yes.
Finding yes_no(std::string name, std::string why_not) {
  return {std::move(name), why_not.empty() ? "yes" : "no", std::move(why_not)};
}
Finding yes_no(std::string name, int error) {
  return yes_no(std::move(name), error ? strerror(error) : "");
}

int load(bpf_prog_type type, bpf_attach_type attach, int btf_id) {
  const bpf_insn program[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                              {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = attach;
  options.attach_btf_id = static_cast<__u32>(std::max(0, btf_id));
  return tried(bpf_prog_load(type, "coretap_probe", "GPL", program, 2, &options));
}

std::vector<Finding> examine(Kernel& kernel) {
  auto missing = missing_capabilities();
  auto locked = lockdown();
  const int tracepoint_btf = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);
  auto id = tracepoint_id("sched", "sched_switch");
  auto uprobe = probe_event_type("uprobe");
  auto try_uprobe = [&] {
    return probes_by_file(kernel) ? load(BPF_PROG_TYPE_KPROBE, kUprobeMulti, 0)
                                  : perf_open(*uprobe, 0, "/proc/self/exe");
  };
  const bool counts = perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES) == 0;
  const auto page = static_cast<__u32>(sysconf(_SC_PAGESIZE));
  const bool storage = kernel.has_enumerator("bpf_func_id", "BPF_FUNC_task_storage_get");
  std::vector<Finding> all = {
      {"kernel", kernel_release()},
      yes_no("capabilities", missing.empty() ? "" : "missing " + missing),
      {"lockdown", locked.empty() ? "none" : locked,
       locked == "confidentiality" ? "BPF may not read kernel memory" : ""},
      yes_no("kernel types (BTF)",
             kernel.has_btf() ? "" : "no /sys/kernel/btf/vmlinux: no tool can run"),
      yes_no("BTF tracepoints", load(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, tracepoint_btf)),
      yes_no("raw tracepoints", load(BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_attach_type{}, 0)),
      id ? yes_no("tracepoints", perf_open(PERF_TYPE_TRACEPOINT, static_cast<std::uint64_t>(*id)))
         : Finding{"tracepoints", "no", id.error().why},
      yes_no("fentry and fexit", kernel.fentry_refusal()),
      yes_no("kprobes", kernel.kprobe_refusal("vfs_read")),
      uprobe ? yes_no("uprobes", try_uprobe()) : yes_no("uprobes", uprobe.error().why),
      yes_no("software perf events", perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK)),
      yes_no("hardware counters (PMU)", counts ? "" : "no PMU here (usual in virtual machines)"),
      yes_no("ring buffer",
             tried(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "coretap_probe", 0, 0, page, nullptr))),
      yes_no("task storage", storage ? "" : "a hash by thread id is used instead")};
  for (std::string name : {"perf_event_paranoid", "kptr_restrict", "unprivileged_bpf_disabled"}) {
    auto value = read_number("/proc/sys/kernel/" + name);
    const bool hidden = name == "kptr_restrict" && value == 2;
    all.push_back({name, value ? std::to_string(*value) : "?",
                   hidden ? "kernel stack frames have no names" : ""});
  }
  auto cgroup = cgroup2_mount();
  all.push_back(
      {"cgroup version 2", cgroup ? *cgroup : "no", cgroup ? "" : "--cgroup cannot be used"});
  auto trace = tracefs();
  all.push_back(yes_no("tracefs", trace ? "" : trace.error().why));
  return all;
}

using Tools = std::vector<const Registered*>;

/// The named tools, or all.
Tools tools_named(const std::vector<std::string>& names) {
  Tools tools;
  for (auto& entry : registry())
    if (names.empty() ||
        std::ranges::any_of(names, [&](auto& name) { return called(name).tool == &entry; }))
      tools.push_back(&entry);
  return tools;
}

Finding judge(const Tool& tool) {
  const std::string name(tool.name);
  Config config;
  Session session(tool, config);
  auto ready = prepare(session);
  if (ready && tool.look_up) ready = tool.look_up(config);
  if (!ready) return {name, "cannot", ready.error().what + ": " + ready.error().why};
  auto& limits = session.plan.limits;
  return {name, limits.empty() ? "runs" : "limited", fmt::format("{}", fmt::join(limits, "; "))};
}

/// For each capability: its use, the tools that need it, and whether this process has it.
void print_rights(Sink& out, const Tools& chosen) {
  struct Use {
    NeededCapability need;
    std::vector<std::string_view> tools;
  };
  std::vector<Use> uses;
  std::size_t tracing = 0;  // tools that load any program
  for (auto* entry : chosen) {
    auto needs = needed_capabilities(build(*entry));
    if (!needs.empty()) tracing++;
    for (auto& need : needs) {
      auto at = std::ranges::find(uses, need, &Use::need);
      if (at == uses.end()) at = uses.insert(at, {need, {}});
      at->tools.push_back(entry->name);
    }
  }
  std::stable_partition(uses.begin(), uses.end(), [](auto& use) { return use.need.always; });
  out.line("");
  auto mine = own_capabilities();
  for (auto& [need, tools] : uses) {
    auto who = tools.size() == tracing ? "all tools" : fmt::format("{}", fmt::join(tools, " "));
    out.line(fmt::format("{:<26} {:<4}{}{}: {}", name_of(need.capability),
                         mine.has(need.capability) ? "yes" : "no",
                         need.always ? "" : "optional: ", need.purpose, who));
  }
}

}  // namespace

int run_doctor(const Config& config, const std::vector<std::string>& words) {
  bool json = config.given("json");
  auto tools = tools_named(words);
  if (words.empty()) note_tools_in_build("doctor");
  Kernel kernel;
  Sink out;
  std::size_t run = 0;
  for (auto& f : examine(kernel)) {
    JsonLine line;
    line.text("type", "check").text("check", f.name).text("state", f.state).text("note", f.note);
    out.line(json ? line.finish() : f.line());
  }
  if (!json) out.line("");
  out.flush();  // loading every tool takes a while
  for (auto* entry : tools) {
    const auto built = build(*entry);
    auto tool = judge(built);
    // Tools without a program run everywhere, and are no answer to whether this kernel allows any.
    run += tool.state != "cannot" && (!words.empty() || built.report->has_program());
    JsonLine line;
    line.text("type", "tool").text("tool", tool.name).text("state", tool.state);
    line.text("why", tool.note).key("rights").begin_array();
    for (auto& need : needed_capabilities(built)) {
      line.begin_object().text("right", name_of(need.capability)).text("purpose", need.purpose);
      line.boolean("always", need.always).end_object();
    }
    line.end_array();
    out.line(json ? line.finish() : tool.line());
    out.flush();
  }
  if (!json) print_rights(out, tools);
  if (int status = end_of(out); status != kOk) return status;
  return run == tools.size() || (words.empty() && run) ? kOk : kUnsupported;
}

}  // namespace coretap
