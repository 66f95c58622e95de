#include "kernel/kernel.hpp"

#include <bpf/bpf.h>
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
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "base/recall.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/bpf_links.hpp"

namespace coretap {

namespace {

constexpr std::string_view kTypes = "/sys/kernel/btf", kOwnTypes = "vmlinux";

std::string reason(int error) {
  constexpr int kNotSupported = 524;  // ENOTSUPP, which user-space headers lack
  error = error < 0 ? -error : error;
  return error == kNotSupported ? "not supported" : strerror(error);
}

constexpr bpf_insn kReturn[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};

/// No descriptor, with errno: this kernel refuses a program of these instructions and kReturn.
Fd load(bpf_prog_type type, std::vector<bpf_insn> program,
        const bpf_prog_load_opts* options = nullptr) {
  program.insert(program.end(), std::begin(kReturn), std::end(kReturn));
  return Fd(bpf_prog_load(type, "coretap_probe", "GPL", program.data(), program.size(), options));
}

/// -1, if a recording has no answer.
template <class Live>
int recalled_fact(std::string_view kind, std::string_view name, Live live) {
  if (!recall) return live();
  const auto text = recalled(Ask::kernel_has, fmt::format("{} {}", kind, name),
                             [&] { return std::to_string(static_cast<int>(live())); });
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <class Live>
Btf::Enumerators recalled_enumerators(std::string_view type, Live live) {
  if (!recall) return live();
  const auto words = unpacked(recalled(Ask::enumerators, type, [&] {
    std::vector<std::string> each;
    for (auto& [name, value] : live()) {
      each.push_back(name);
      each.push_back(std::to_string(value));
    }
    return packed(each);
  }));
  Btf::Enumerators all;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    std::int64_t value = 0;
    std::from_chars(words[i + 1].data(), words[i + 1].data() + words[i + 1].size(), value);
    all.emplace_back(words[i], value);
  }
  return all;
}

}  // namespace

void Kernel::release() {
  modules_.clear();
  btf_.close();
  tried_ = false;
}

bool Kernel::types() {
  if (!tried_ && !btf_.open()) types_error_ = errno;
  tried_ = true;
  return btf_.is_open();
}

bool Kernel::has_btf() { return types(); }

const Btf& Kernel::all_types() {
  types();
  return btf_;
}

const Btf& Kernel::types_of(std::string_view module) {
  auto known = modules_.find(module);
  if (known != modules_.end()) return known->second;
  auto& btf = modules_[std::string(module)];
  if (types() && !module.empty() && module.find('/') == module.npos && module != kOwnTypes)
    btf.open(fmt::format("{}/{}", kTypes, module).c_str(), &btf_);
  return btf;
}

std::vector<std::string> modules_with_types() {
  std::vector<std::string> all;
  std::error_code error;
  for (std::filesystem::directory_iterator i(kTypes, error), end; !error && i != end;
       i.increment(error))
    if (auto name = i->path().filename().string(); name != kOwnTypes)
      all.push_back(std::move(name));
  std::sort(all.begin(), all.end());
  return all;
}

std::uint32_t Kernel::tracepoint_type(std::string_view tracepoint) {
  return types() ? btf_.find(fmt::format("btf_trace_{}", tracepoint), BTF_KIND_TYPEDEF) : 0;
}

std::uint32_t Kernel::function_type(std::string_view function) {
  return types() ? btf_.find(function, BTF_KIND_FUNC) : 0;
}

std::uint32_t Kernel::function_type(std::string_view function, std::string_view module) {
  auto& types = types_of(module);
  return types.is_open() ? types.find(function, BTF_KIND_FUNC) : 0;
}

namespace {

Result<Fd> find_module_object(std::string_view module) {
  for (__u32 id = 0; !bpf_btf_get_next_id(id, &id);) {
    Fd types(bpf_btf_get_fd_by_id(id));
    char name[64] = {};
    bpf_btf_info info{};
    info.name = reinterpret_cast<std::uintptr_t>(name);
    info.name_len = sizeof name;
    __u32 length = sizeof info;
    if (!types || bpf_obj_get_info_by_fd(types.get(), &info, &length)) continue;
    if (info.kernel_btf && module == name) return types;
  }
  return Error{fmt::format("no types of module {}", module), strerror(errno)};
}

}  // namespace

Result<int> Kernel::module_object(std::string_view module) {
  auto known = module_objects_.find(module);
  if (known == module_objects_.end())
    known = module_objects_.emplace(module, find_module_object(module)).first;
  auto& object = known->second;
  if (!object) return object.error();
  return object->get();
}

const btf_type* Kernel::tracepoint_prototype(std::string_view tracepoint) {
  auto* type = btf_.type(tracepoint_type(tracepoint));
  type = type ? btf_.type(type->type) : nullptr;
  if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_PTR) return nullptr;
  type = btf_.type(type->type);
  return type && BTF_INFO_KIND(type->info) == BTF_KIND_FUNC_PROTO ? type : nullptr;
}

int Kernel::tracepoint_args(std::string_view tracepoint) {
  return recalled_fact("tracepoint", tracepoint, [&] {
    auto* prototype = tracepoint_prototype(tracepoint);
    // The first parameter is the tracepoint's private data.
    return prototype ? static_cast<int>(BTF_INFO_VLEN(prototype->info)) - 1 : -1;
  });
}

bool Kernel::has_function(std::string_view function) {
  return recalled_fact("function", function, [&] { return function_type(function) != 0; }) > 0;
}

bool Kernel::has_field(std::string_view type, std::string_view member) {
  return recalled_fact(type, member, [&] {
           return types() && btf_.has_member(btf_.type(btf_.find(type, BTF_KIND_STRUCT)), member);
         }) > 0;
}

Btf::Enumerators Kernel::enumerators(std::string_view type) {
  return recalled_enumerators(type, [&] { return enumerators_of_type(type); });
}

Btf::Enumerators Kernel::enumerators_of_type(std::string_view type) {
  if (!types()) return {};
  auto id = btf_.find(type, BTF_KIND_ENUM);
  return btf_.enumerators(btf_.type(id ? id : btf_.find(type, BTF_KIND_ENUM64)));
}

Btf::Enumerators Kernel::enumerators_beside(std::string_view name) {
  return recalled_enumerators(
      name, [&] { return types() ? btf_.enumerators(btf_.enum_with(name)) : Btf::Enumerators{}; });
}

bool Kernel::has_enumerator(std::string_view type, std::string_view name) {
  return recalled_fact(type, name, [&] {
           for (auto& [known, value] : enumerators_of_type(type))
             if (known == name) return true;
           return false;
         }) > 0;
}

const std::string& Kernel::fentry_refusal() {
  if (fentry_) return *fentry_;
  fentry_ = "";
  // This function exists in every kernel and may be traced.
  auto id = function_type("vfs_read");
  if (!id) return *(fentry_ = "no kernel type information");
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = BPF_TRACE_FENTRY;
  options.attach_btf_id = id;
  auto fd = load(BPF_PROG_TYPE_TRACING, {}, &options);
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
  auto type = probe_event_type("kprobe");
  if (!type) return *(kprobe_ = type.error().why);
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = *type;
  attr.kprobe_func = reinterpret_cast<__u64>(kprobe_function_.c_str());
  Fd fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (fd.get() < 0 && !lacks_descriptors(errno))
    kprobe_ = fmt::format("no such probe point ({})", reason(errno));
  return *kprobe_;
}

const std::string& Kernel::kprobe_multi_refusal() {
  if (kprobe_multi_) return *kprobe_multi_;
  kprobe_multi_ = "";
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = kKprobeMulti;
  auto fd = load(BPF_PROG_TYPE_KPROBE, {}, &options);
  const char* function = "vfs_read";  // exists in every kernel
  KprobeMulti wish{};
  wish.program = static_cast<std::uint32_t>(fd.get());
  wish.attach_type = kKprobeMulti;
  wish.symbols = reinterpret_cast<std::uintptr_t>(&function);
  wish.count = 1;
  // The enum exists in kernels without the feature it needs, too (CONFIG_FPROBE): try it.
  Fd link(fd ? static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &wish, sizeof wish)) : -1);
  if (!link)
    kprobe_multi_ =
        fmt::format("the kernel refuses one link to many functions ({})", reason(errno));
  return *kprobe_multi_;
}

bool Kernel::has_exchange() {
  if (exchange_) return *exchange_;
  auto fd =
      load(BPF_PROG_TYPE_KPROBE, {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                  {BPF_STX | BPF_DW | BPF_MEM, BPF_REG_10, 0, -8, 0},
                                  {BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_10, 0, -8, BPF_XCHG}});
  return *(exchange_ = static_cast<bool>(fd));
}

Kernel::Preemption Kernel::preemption(bool at_functions) {
  Preemption found;
  if (!types()) return found;
  // Tracepoints are protected by SRCU instead: 7.0. Older kernels have this per-CPU variable, too,
  // for idle CPUs; they lack the functions.
  found.at_tracepoints = btf_.find("tracepoint_srcu_srcu_data", BTF_KIND_VAR);
  if (!found.at_tracepoints && !at_functions) return found;
  // Kernels that have bpf_preempt_disable(), but not the third, refuse global functions between
  // the calls: 6.15 ("bpf: Summarize sleepable global subprogs").
  auto ids =
      btf_.find({"bpf_preempt_disable", "bpf_preempt_enable", "bpf_res_spin_lock"}, BTF_KIND_FUNC);
  if (!ids[0] || !ids[1] || !ids[2]) return {};
  found.disable = ids[0];
  found.enable = ids[1];
  return found;
}

std::vector<std::uint32_t> Kernel::structures(const std::vector<std::string_view>& names) {
  return types() ? btf_.find(names, BTF_KIND_STRUCT) : std::vector<std::uint32_t>(names.size());
}

Kernel::Casts Kernel::casts(const std::vector<std::string_view>& names) {
  auto function = static_cast<std::int32_t>(function_type("bpf_rdonly_cast"));
  if (!function) return {};
  auto ids = structures(names);
  auto known = std::find_if(ids.begin(), ids.end(), [](auto id) { return id != 0; });
  if (known == ids.end()) return {};
  // Calls of kernel functions depend on the JIT compiler, too: load a program.
  auto fd = load(BPF_PROG_TYPE_KPROBE,
                 {{BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 0},
                  {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, static_cast<std::int32_t>(*known)},
                  {BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, function}});
  return fd ? Casts{static_cast<std::uint32_t>(function), std::move(ids)} : Casts{};
}

Result<std::uint32_t> probe_event_type(std::string_view kind) {
  const auto path = fmt::format("/sys/bus/event_source/devices/{}/type", kind);
  errno = 0;
  if (auto type = read_number(path)) return static_cast<std::uint32_t>(*type);
  if (errno && errno != ENOENT) {
    auto failed = system_error({}, errno);
    failed.why = fmt::format("cannot read {}: {}", path, failed.why);
    return failed;
  }
  return Error{{},
               fmt::format("this kernel has no {}s ({})", kind,
                           kind == "uprobe" ? "CONFIG_UPROBE_EVENTS" : "CONFIG_KPROBES"),
               {},
               kUnsupported};
}

std::string lockdown() {
  auto text = read_file("/sys/kernel/security/lockdown", 128);
  if (!text) return "";
  auto open = text->find('['), close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return text->substr(open + 1, close - open - 1);
}

std::string kernel_release() {
  return recalled(Ask::kernel, "", [] {
    utsname u{};
    uname(&u);
    return std::string(u.release);
  });
}

std::string user_name(std::uint32_t uid) {
  const auto number = std::to_string(uid);
  return recalled(Ask::user, number, [&] {
    static const auto kUsers = [] {
      std::map<std::string, std::string, std::less<>> all;
      const auto text = read_file("/etc/passwd").value_or("");
      for (std::string_view rest = text; !rest.empty();) {
        auto line = take_until(rest, '\n');
        const auto name = take_until(line, ':');
        take_until(line, ':');
        all.emplace(take_until(line, ':'), name);
      }
      return all;
    }();
    const auto known = kUsers.find(number);
    return known == kUsers.end() ? number : known->second;
  });
}

std::uint64_t page_bytes() {
  static const auto kHere = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (!recall) return kHere;
  return parse_unsigned(recalled(Ask::page_bytes, "", [] { return std::to_string(kHere); }))
      .value_or(kHere);
}

int possible_cpus() {
  const int here = std::max(1, libbpf_num_possible_cpus());
  if (!recall) return here;
  constexpr std::uint64_t kMost = 1 << 16;
  const auto number = parse_unsigned(recalled(Ask::possible_cpus, "", [&] {
                        return std::to_string(here);
                      })).value_or(1);
  return static_cast<int>(std::clamp<std::uint64_t>(number, 1, kMost));
}

std::vector<int> parse_cpus(std::string_view list) {
  std::vector<int> cpus;
  while (!list.empty()) {
    auto range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    unsigned first = 0, last = 0;
    auto [end, error] = std::from_chars(range.data(), range.data() + range.size(), first);
    if (error != std::errc()) continue;
    last = first;
    if (end != range.data() + range.size() && *end == '-' &&
        std::from_chars(end + 1, range.data() + range.size(), last).ec != std::errc())
      continue;
    constexpr unsigned kMost = 1 << 16;
    for (auto cpu = first; cpu <= last && cpu < kMost && cpus.size() < kMost; cpu++)
      cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

namespace {

std::vector<int> last_online{0};

bool read_online() {
  auto text = read_file("/sys/devices/system/cpu/online");
  auto cpus = parse_cpus(text.value_or(""));
  if (!cpus.empty()) last_online = std::move(cpus);
  return text.has_value();
}

}  // namespace

Result<void> read_cpus() {
  // libbpf caches the number.
  auto print = libbpf_set_print(nullptr);
  const int possible = libbpf_num_possible_cpus();
  libbpf_set_print(print);
  if (possible > 0 && read_online()) return {};
  return system_error("cannot read the lists of CPUs in /sys/devices/system/cpu",
                      possible > 0 ? errno : -possible);
}

std::vector<int> online_cpus() {
  if (!recall) {
    read_online();
    return last_online;
  }
  return parse_cpus(recalled(Ask::online_cpus, "", [] {
    read_online();
    return fmt::to_string(fmt::join(last_online, ","));
  }));
}

std::vector<int> nodes_of_cpus(int cpus, const std::string& directory) {
  std::vector<int> nodes(static_cast<std::size_t>(cpus), -1);
  auto online = read_file(directory + "/online");
  // Kernels without NUMA lack this directory; all CPUs are on one node then.
  if (!online) nodes.assign(nodes.size(), 0);
  for (int node : parse_cpus(online.value_or("")))
    for (std::size_t cpu = 0; cpu < nodes.size(); cpu++)
      if (access(fmt::format("{}/node{}/cpu{}", directory, node, cpu).c_str(), F_OK) == 0)
        nodes[cpu] = node;
  return nodes;
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
    struct statfs fs {};
    if (statfs(path, &fs) == 0 && fs.f_type == TRACEFS_MAGIC) {
      fd = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
      if (fd >= 0) return fd;
    }
  }
  // A detached mount: only this process sees it, and it ends with the process.
  Fd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (context.get() >= 0 &&
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
    fd = static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0));
  if (fd >= 0) return fd;
  return Error{"cannot read the kernel's tracepoints",
               "tracefs is not mounted, and mounting it failed: " + reason(errno),
               "mount -t tracefs tracefs /sys/kernel/tracing (needs CAP_SYS_ADMIN)", kUnsupported};
}

Result<std::vector<std::string>> tracepoint_names() {
  auto directory = tracefs();
  if (!directory) return directory.error();
  auto text = read_file_at(*directory, "available_events", 16 << 20);
  if (!text)
    return Error{"cannot read the kernel's tracepoints",
                 "tracefs has no readable available_events (it asks for CAP_DAC_READ_SEARCH)",
                 "run as root", kUnsupported};
  std::vector<std::string> events;
  for (std::string_view rest = *text; !rest.empty();) {
    auto line = take_until(rest, '\n');
    if (line.find(':') != line.npos) events.emplace_back(line);
  }
  std::sort(events.begin(), events.end());
  return events;
}

Result<std::string> tracepoint_file(std::string_view category, std::string_view name,
                                    std::string_view file) {
  auto dir = tracefs();
  if (!dir) return dir.error();
  auto text = read_file_at(*dir, fmt::format("events/{}/{}/{}", category, name, file));
  if (!text || text->empty()) {
    const int error = text ? ENOENT : errno;
    const bool refused = error == EACCES || error == EPERM;
    auto e = system_error(
        fmt::format("{} tracepoint {}:{}", error == ENOENT ? "no" : "cannot read", category, name),
        error, error == ENOENT || refused ? kUnsupported : kFailed);
    if (refused) e.why += ": tracefs asks for CAP_DAC_READ_SEARCH";
    return e;
  }
  return *text;
}

Result<int> tracepoint_id(std::string_view category, std::string_view name) {
  auto text = tracepoint_file(category, name, "id");
  if (!text) return text.error();
  std::string_view digits = *text;
  while (digits.ends_with('\n')) digits.remove_suffix(1);
  auto id = parse_unsigned(digits);
  if (!id || *id > INT32_MAX)
    return Error{fmt::format("tracepoint {}:{} has no usable id", category, name), {}, {}, kFailed};
  return static_cast<int>(*id);
}

std::vector<std::pair<std::string, std::int64_t>> enumerators_of(std::string_view type) {
  return Kernel().enumerators(type);
}

bool kernel_has_field(std::string_view type, std::string_view member) {
  return Kernel().has_field(type, member);
}

}  // namespace coretap
