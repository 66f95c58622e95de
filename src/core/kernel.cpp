#include "core/kernel.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/config.hpp"
#include "core/files.hpp"

namespace coretap {

namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string reason(int error) { return strerror(error < 0 ? -error : error); }

/// The kernel writes spaces and the like in mountinfo as \040.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// An enum's values, whatever their size and sign.
std::vector<std::pair<std::string, std::int64_t>> values_of(const btf* types, const btf_type* type) {
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (int i = 0; i < btf_vlen(type); i++) {
    if (btf_is_enum64(type)) {
      auto& v = btf_enum64(type)[i];
      all.emplace_back(btf__name_by_offset(types, v.name_off),
                       static_cast<std::int64_t>(static_cast<std::uint64_t>(v.val_hi32) << 32 | v.val_lo32));
    } else {
      auto& v = btf_enum(type)[i];
      all.emplace_back(btf__name_by_offset(types, v.name_off),
                       btf_kflag(type) ? v.val : static_cast<std::int64_t>(static_cast<std::uint32_t>(v.val)));
    }
  }
  return all;
}

/// Fields may lie in unnamed members of a struct.
bool member_exists(const btf* types, const btf_type* type, std::string_view name, int depth) {
  if (depth > 8) return false;
  auto* members = btf_members(type);
  for (int i = 0; i < btf_vlen(type); i++) {
    std::string_view member = btf__name_by_offset(types, members[i].name_off);
    if (member == name) return true;
    if (!member.empty()) continue;
    auto* inner = btf__type_by_id(types, members[i].type);
    if (inner && btf_is_composite(inner) && member_exists(types, inner, name, depth + 1))
      return true;
  }
  return false;
}

}  // namespace

Kernel::~Kernel() { release(); }

void Kernel::release() {
  btf__free(btf_);
  btf_ = nullptr;
  tried_ = false;
}

btf* Kernel::types() {
  if (!tried_) {
    tried_ = true;
    btf_ = btf__load_vmlinux_btf();
    if (libbpf_get_error(btf_)) btf_ = nullptr;
  }
  return btf_;
}

bool Kernel::has_btf() { return types(); }

int Kernel::find(std::string_view name, unsigned kind) {
  if (!types()) return -1;
  return btf__find_by_name_kind(btf_, std::string(name).c_str(), kind);
}

const btf_type* Kernel::tracepoint_prototype(std::string_view tracepoint) {
  int id = find(fmt::format("btf_trace_{}", tracepoint), BTF_KIND_TYPEDEF);
  if (id < 0) return nullptr;
  auto* type = btf__type_by_id(btf_, btf__type_by_id(btf_, id)->type);
  if (!type || !btf_is_ptr(type)) return nullptr;
  type = btf__type_by_id(btf_, type->type);
  return type && btf_is_func_proto(type) ? type : nullptr;
}

int Kernel::tracepoint_args(std::string_view tracepoint) {
  auto* prototype = tracepoint_prototype(tracepoint);
  // The first parameter is the tracepoint's own data.
  return prototype ? btf_vlen(prototype) - 1 : -1;
}

bool Kernel::tracepoint_pointer(std::string_view tracepoint) {
  auto* prototype = tracepoint_prototype(tracepoint);
  if (!prototype || btf_vlen(prototype) < 2) return false;
  auto* type = btf__type_by_id(btf_, btf_params(prototype)[1].type);
  return type && btf_is_ptr(type);
}

bool Kernel::has_function(std::string_view function) { return find(function, BTF_KIND_FUNC) > 0; }

bool Kernel::has_field(std::string_view type, std::string_view member) {
  int id = find(type, BTF_KIND_STRUCT);
  return id > 0 && member_exists(btf_, btf__type_by_id(btf_, id), member, 0);
}

std::vector<std::pair<std::string, std::int64_t>> Kernel::enumerators(std::string_view type) {
  int id = find(type, BTF_KIND_ENUM);
  if (id <= 0) id = find(type, BTF_KIND_ENUM64);
  if (id <= 0) return {};
  return values_of(btf_, btf__type_by_id(btf_, id));
}

std::vector<std::pair<std::string, std::int64_t>> Kernel::enumerators_beside(
    std::string_view name) {
  if (!types()) return {};
  auto end = btf__type_cnt(btf_);
  for (__u32 id = 1; id < end; id++) {
    auto* t = btf__type_by_id(btf_, id);
    if (!btf_is_enum(t) || t->name_off) continue;
    auto* values = btf_enum(t);
    for (int i = 0; i < btf_vlen(t); i++)
      if (name == btf__name_by_offset(btf_, values[i].name_off)) return values_of(btf_, t);
  }
  return {};
}

bool Kernel::has_enumerator(std::string_view type, std::string_view name) {
  for (auto& [known, value] : enumerators(type))
    if (known == name) return true;
  return false;
}

const std::string& Kernel::fentry_refusal() {
  if (fentry_) return *fentry_;
  fentry_ = "";
  // A function that every kernel has and may be traced.
  int id = find("vfs_read", BTF_KIND_FUNC);
  if (id <= 0) return *(fentry_ = "no kernel type information");
  const bpf_insn program[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = BPF_TRACE_FENTRY;
  options.attach_btf_id = static_cast<__u32>(id);
  Fd fd(bpf_prog_load(BPF_PROG_TYPE_TRACING, "coretap_probe", "GPL", program, 2, &options));
  if (fd.get() < 0) {
    fentry_ = fmt::format("the kernel refuses to load it ({})", reason(errno));
    return *fentry_;
  }
  Fd link(bpf_raw_tracepoint_open(nullptr, fd.get()));
  if (link.get() < 0) fentry_ = fmt::format("the kernel refuses to attach it ({})", reason(errno));
  return *fentry_;
}

const std::string& Kernel::kprobe_refusal(std::string_view function) {
  if (kprobe_ && (kprobe_function_ == function || kprobe_->starts_with("this kernel")))
    return *kprobe_;
  kprobe_ = "";
  kprobe_function_ = function;
  auto type = read_number("/sys/bus/event_source/devices/kprobe/type");
  if (!type) return *(kprobe_ = "this kernel has no kprobes (CONFIG_KPROBES)");
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = static_cast<__u32>(*type);
  attr.kprobe_func = reinterpret_cast<__u64>(kprobe_function_.c_str());
  Fd fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (fd.get() < 0) kprobe_ = fmt::format("no such probe point ({})", reason(errno));
  return *kprobe_;
}

Rights rights() {
  std::uint64_t effective = 0;
  if (auto status = read_file("/proc/self/status")) {
    auto at = status->find("CapEff:");
    if (at != std::string::npos) effective = strtoull(status->c_str() + at + 7, nullptr, 16);
  }
  auto has = [&](int capability) { return (effective >> capability & 1) != 0; };
  Rights r{has(39), has(38), has(21), has(24), {}};
  if (!r.sys_admin) {
    if (!r.bpf) r.missing = "CAP_BPF";
    if (!r.perfmon) r.missing += r.missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  }
  return r;
}

std::string lockdown() {
  auto text = read_file("/sys/kernel/security/lockdown", 128);
  if (!text) return "";
  auto open = text->find('['), close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return text->substr(open + 1, close - open - 1);
}

std::string kernel_release() {
  utsname u{};
  uname(&u);
  return u.release;
}

int possible_cpus() {
  int n = libbpf_num_possible_cpus();
  return n > 0 ? n : 1;
}

std::uint64_t max_tasks() {
  auto pids = read_number("/proc/sys/kernel/pid_max").value_or(32768);
  auto threads = read_number("/proc/sys/kernel/threads-max").value_or(pids);
  return static_cast<std::uint64_t>(std::max(1024LL, std::min(pids, threads)));
}

Result<int> tracefs() {
  static int fd = -1;
  if (fd >= 0) return fd;
  for (auto* path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    struct statfs fs{};
    if (statfs(path, &fs) == 0 && fs.f_type == TRACEFS_MAGIC) {
      fd = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
      if (fd >= 0) return fd;
    }
  }
  // Not attached anywhere: seen by this process only, gone with it.
  Fd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (context.get() >= 0 &&
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
    fd = static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0));
  if (fd >= 0) return fd;
  return Error{"cannot read the kernel's tracepoints", "tracefs is not mounted, and mounting it failed: " + reason(errno),
               "mount -t tracefs tracefs /sys/kernel/tracing (needs CAP_SYS_ADMIN)", kUnsupported};
}

Result<int> tracepoint_id(std::string_view category, std::string_view name) {
  auto dir = tracefs();
  if (!dir) return dir.error();
  auto path = fmt::format("events/{}/{}/id", category, name);
  Fd fd(openat(*dir, path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32] = {};
  if (fd.get() < 0 || read(fd.get(), text, sizeof text - 1) <= 0)
    return Error{fmt::format("no tracepoint {}:{}", category, name), reason(errno), {}, kUnsupported};
  std::string_view digits = text;
  while (digits.ends_with('\n')) digits.remove_suffix(1);
  auto id = parse_unsigned(digits);
  if (!id || *id > INT32_MAX)
    return Error{fmt::format("tracepoint {}:{} has no usable id", category, name), {}, {}, kFailed};
  return static_cast<int>(*id);
}

Result<std::string> cgroup2_mount() {
  auto mounts = read_file("/proc/self/mountinfo", 4 << 20);
  std::string_view rest = mounts ? std::string_view(*mounts) : "";
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
    for (int skip = 0; skip < 4; skip++) line.remove_prefix(line.find(' ') + 1);
    return unescaped(line.substr(0, line.find(' ')));
  }
  return Error{"cannot filter by cgroup", "no cgroup version 2 hierarchy is mounted",
               "mount -t cgroup2 none /some/directory, or filter by --pid", kUnsupported};
}

Result<std::uint64_t> cgroup_id(std::string_view path_or_id) {
  if (auto id = parse_unsigned(path_or_id)) return *id;
  std::string path(path_or_id);
  struct statfs fs{};
  if (statfs(path.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
    auto mount = cgroup2_mount();
    if (!mount) return mount.error();
    auto below = *mount + (path.starts_with('/') ? "" : "/") + path;
    if (statfs(below.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
      return Error{fmt::format("'{}' is not a cgroup", path_or_id),
                   fmt::format("no such directory in the version 2 hierarchy at {}", *mount),
                   "give the path as in /proc/PID/cgroup behind 0::, or a directory of that mount",
                   kUsage};
    path = below;
  }
  // The inode number is the id; name_to_handle_at agrees but needs more.
  struct stat st{};
  if (stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    return Error{fmt::format("'{}' is not a cgroup", path), "not a directory", "a cgroup is a directory, not a file in it", kUsage};
  return static_cast<std::uint64_t>(st.st_ino);
}

}  // namespace coretap
