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

struct Finding {
  std::string name;
  std::string state;  ///< "yes", "no", or a value
  std::string note = {};
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

Finding yes_no(std::string name, int error, std::string note = {}) {
  if (!error) return {std::move(name), "yes", {}};
  return {std::move(name), "no", note.empty() ? strerror(error) : std::move(note)};
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
  std::vector<Finding> all;
  all.push_back({"kernel", kernel_release()});
  auto missing = missing_capabilities();
  all.push_back({"capabilities", missing.empty() ? "yes" : "no",
                 missing.empty() ? "" : "missing " + missing});
  auto locked = lockdown();
  all.push_back({"lockdown", locked.empty() ? "none" : locked,
                 locked == "confidentiality" ? "BPF may not read kernel memory" : ""});
  all.push_back({"kernel types (BTF)", kernel.has_btf() ? "yes" : "no",
                 kernel.has_btf() ? "" : "no /sys/kernel/btf/vmlinux: no tool can run"});
  int tracepoint_btf = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);
  all.push_back(
      yes_no("BTF tracepoints", load(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, tracepoint_btf)));
  all.push_back(
      yes_no("raw tracepoints", load(BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_attach_type{}, 0)));
  auto id = tracepoint_id("sched", "sched_switch");
  all.push_back(
      id ? yes_no("tracepoints", perf_open(PERF_TYPE_TRACEPOINT, static_cast<std::uint64_t>(*id)))
         : Finding{"tracepoints", "no", id.error().why});
  auto& fentry = kernel.fentry_refusal();
  all.push_back({"fentry and fexit", fentry.empty() ? "yes" : "no", fentry});
  auto& kprobe = kernel.kprobe_refusal("vfs_read");
  all.push_back({"kprobes", kprobe.empty() ? "yes" : "no", kprobe});
  auto uprobe = probe_event_type("uprobe");
  if (!uprobe)
    all.push_back({"uprobes", "no", uprobe.error().why});
  else
    all.push_back(yes_no("uprobes", probes_by_file(kernel)
                                        ? load(BPF_PROG_TYPE_KPROBE, kUprobeMulti, 0)
                                        : perf_open(*uprobe, 0, "/proc/self/exe")));
  all.push_back(
      yes_no("software perf events", perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK)));
  all.push_back(yes_no("hardware counters (PMU)",
                       perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
                       "no PMU here (usual in virtual machines)"));
  all.push_back(yes_no("ring buffer",
                       tried(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "coretap_probe", 0, 0,
                                            static_cast<__u32>(sysconf(_SC_PAGESIZE)), nullptr))));
  bool storage = kernel.has_enumerator("bpf_func_id", "BPF_FUNC_task_storage_get");
  all.push_back({"task storage", storage ? "yes" : "no",
                 storage ? "" : "a hash by thread id is used instead"});
  for (auto& [name, path] :
       {std::pair{"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"},
        {"kptr_restrict", "/proc/sys/kernel/kptr_restrict"},
        {"unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"}}) {
    auto value = read_number(path);
    all.push_back({name, value ? std::to_string(*value) : "?",
                   std::string_view(name) == "kptr_restrict" && value == 2
                       ? "kernel stack frames have no names"
                       : ""});
  }
  auto cgroup = cgroup2_mount();
  all.push_back(
      {"cgroup version 2", cgroup ? *cgroup : "no", cgroup ? "" : "--cgroup cannot be used"});
  auto trace = tracefs();
  all.push_back({"tracefs", trace ? "yes" : "no", trace ? "" : trace.error().why});
  return all;
}

using Tools = std::vector<const Registered*>;

/// The named tools, or all.
Tools tools_named(const std::vector<std::string>& names) {
  Tools tools;
  for (auto& entry : registry())
    if (names.empty() || std::any_of(names.begin(), names.end(),
                                     [&](auto& name) { return called(name).tool == &entry; }))
      tools.push_back(&entry);
  return tools;
}

struct Verdict {
  std::string tool;
  std::string state;  ///< "runs", "limited", "cannot"
  std::string why = {};
};

Verdict judge(const Registered& entry) {
  auto tool = build(entry);
  Config config;
  Session session(tool, config);
  auto cannot = [&](const Error& e) {
    return Verdict{std::string(tool.name), "cannot", e.what + ": " + e.why};
  };
  if (auto r = prepare(session); !r) return cannot(r.error());
  if (tool.look_up)
    if (auto r = tool.look_up(config); !r) return cannot(r.error());
  if (session.plan.limits.empty()) return {std::string(tool.name), "runs"};
  return {std::string(tool.name), "limited",
          fmt::format("{}", fmt::join(session.plan.limits, "; "))};
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
      auto at = std::find_if(uses.begin(), uses.end(), [&](auto& use) {
        return use.need.capability == need.capability && use.need.purpose == need.purpose &&
               use.need.always == need.always;
      });
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
    if (json) {
      JsonLine line;
      line.text("type", "check").text("check", f.name).text("state", f.state).text("note", f.note);
      out.line(line.finish());
    } else {
      out.line(
          fmt::format("{:<26} {}{}", f.name, f.state, f.note.empty() ? "" : "  (" + f.note + ")"));
    }
  }
  if (!json) out.line("");
  out.flush();  // loading every tool takes a while
  for (auto* entry : tools) {
    auto v = judge(*entry);
    run += v.state != "cannot";
    if (json) {
      JsonLine line;
      line.text("type", "tool").text("tool", v.tool).text("state", v.state).text("why", v.why);
      line.key("rights").begin_array();
      for (auto& need : needed_capabilities(build(*entry))) {
        line.begin_object().text("right", name_of(need.capability)).text("purpose", need.purpose);
        line.boolean("always", need.always).end_object();
      }
      line.end_array();
      out.line(line.finish());
    } else {
      auto words = v.state == "limited" ? "runs with limits" : v.state;
      out.line(fmt::format("{:<26} {}{}", v.tool, words, v.why.empty() ? "" : "  (" + v.why + ")"));
    }
    out.flush();
  }
  if (!json) print_rights(out, tools);
  out.flush();
  if (out.failed()) {
    print_error("coretap", out.error());
    return kFailed;
  }
  return run == tools.size() || (words.empty() && run) ? kOk : kUnsupported;
}

}  // namespace coretap
