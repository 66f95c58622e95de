#include "program/load.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/min_core_btf.hpp"
#include "program/casts.hpp"
#include "program/exchange.hpp"
#include "program/maps.hpp"
#include "program/probe.hpp"
#include "program/section.hpp"
#include "program/variables.hpp"

namespace coretap {

std::string KernelObject::bytes() const {
  auto size = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return {};
  auto dictionary = model.empty() ? std::string() : KernelObject{model}.bytes();
  std::string file(size, '\0');
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  auto got = ZSTD_decompress_usingDict(context.get(), file.data(), size, compressed.data(),
                                       compressed.size(), dictionary.data(), dictionary.size());
  return got == size ? file : std::string();
}

namespace {

/// State for libbpf's callbacks, which take no argument of the caller; reset for each object.
struct Loader {
  bool talks = false;
  /// Set until the programs are loaded; shown with --verbose if that fails.
  std::optional<std::string> words = {};
  /// Tracing programs need the BTF id of their target, for which libbpf reads all BTF types. Here
  /// the plan knows the id. Until just before its load such a program is declared as a type that
  /// needs no id.
  std::map<const bpf_program*, std::uint32_t> tracing_ids = {};
  /// For programs on functions of a module: descriptor of the module's BTF.
  std::map<const bpf_program*, int> module_objects = {};
  std::map<const bpf_program*, FunctionInfo> function_infos = {};
  const Pads* pads = nullptr;
  bool no_exchange = false;
  std::uint32_t cast = 0;  ///< result of tell_types()
};
Loader loader;

int libbpf_print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  if (!loader.words) return loader.talks ? vfprintf(stderr, format, arguments) : 0;
  char* text = nullptr;
  if (vasprintf(&text, format, arguments) < 0) return 0;
  loader.words->append(text);
  free(text);
  return 0;
}

void print_libbpf_words() {
  if (loader.words && loader.talks) fputs(loader.words->c_str(), stderr);
  loader.words.reset();
}

/// Changes the instructions just before libbpf loads them.
void change_instructions(bpf_program* program) {
  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  if (loader.pads) fill_pads(code, *loader.pads);
  if (loader.no_exchange) take_out_exchanges(code);
  complete_casts(code, loader.cast);
  bpf_program__set_insns(program, code.data(), code.size());
}

int make_tracing(bpf_program* program, bpf_prog_load_opts* options, long attach_type) {
  auto id = loader.tracing_ids.find(program);
  if (id == loader.tracing_ids.end()) return -ESRCH;
  options->attach_btf_id = id->second;
  if (auto module = loader.module_objects.find(program); module != loader.module_objects.end())
    options->attach_btf_obj_fd = static_cast<__u32>(module->second);
  options->expected_attach_type = static_cast<bpf_attach_type>(attach_type);
  bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
  change_instructions(program);
  return 0;
}

int keep_functions(bpf_program* program, bpf_prog_load_opts* options, long) {
  FunctionInfo info{options->prog_btf_fd, options->func_info_rec_size};
  auto* bytes = static_cast<const char*>(options->func_info);
  if (bytes)
    info.records.assign(bytes,
                        bytes + std::size_t{options->func_info_cnt} * options->func_info_rec_size);
  loader.function_infos[program] = std::move(info);
  change_instructions(program);
  return 0;
}

int prepare_other(bpf_program* program, bpf_prog_load_opts*, long) {
  change_instructions(program);
  return 0;
}

void prepare_by(libbpf_prog_prepare_load_fn_t prepare,
                std::initializer_list<std::pair<const char*, bpf_prog_type>> sections) {
  LIBBPF_OPTS(libbpf_prog_handler_opts, options);
  options.prog_prepare_load_fn = prepare;
  for (auto& [section, type] : sections)
    libbpf_register_prog_handler(section, type, bpf_attach_type{}, &options);
}

void take_over_tracing() {
  static bool done = false;
  if (done) return;
  done = true;
  libbpf_set_print(libbpf_print);
  const std::pair<const char*, bpf_attach_type> kinds[] = {{"tp_btf+", BPF_TRACE_RAW_TP},
                                                           {"fentry+", BPF_TRACE_FENTRY},
                                                           {"fexit+", BPF_TRACE_FEXIT},
                                                           {"iter+", BPF_TRACE_ITER}};
  for (auto [section, attach_type] : kinds) {
    LIBBPF_OPTS(libbpf_prog_handler_opts, options);
    options.cookie = attach_type;
    options.prog_prepare_load_fn = make_tracing;
    libbpf_register_prog_handler(section, BPF_PROG_TYPE_RAW_TRACEPOINT, attach_type, &options);
  }
  prepare_by(keep_functions, {{"target/kernel", BPF_PROG_TYPE_KPROBE},
                              {"target/kernel.return", BPF_PROG_TYPE_KPROBE},
                              {"target/user", BPF_PROG_TYPE_KPROBE},
                              {"target/user.return", BPF_PROG_TYPE_KPROBE},
                              {"target/usdt", BPF_PROG_TYPE_KPROBE},
                              {"target/tracepoint", BPF_PROG_TYPE_RAW_TRACEPOINT},
                              {"target/event", BPF_PROG_TYPE_TRACEPOINT},
                              {"run/each_cpu", BPF_PROG_TYPE_RAW_TRACEPOINT},
                              {"run/asked", BPF_PROG_TYPE_RAW_TRACEPOINT}});
  prepare_by(prepare_other, {{"tracepoint+", BPF_PROG_TYPE_TRACEPOINT},
                             {"raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT},
                             {"kprobe+", BPF_PROG_TYPE_KPROBE},
                             {"kretprobe+", BPF_PROG_TYPE_KPROBE},
                             {"uprobe+", BPF_PROG_TYPE_KPROBE},
                             {"uretprobe+", BPF_PROG_TYPE_KPROBE},
                             // libbpf allows no target here; --explain shows it (the clock).
                             {"perf_event+", BPF_PROG_TYPE_PERF_EVENT}});
}

void set_function(Session& s, const bpf_program* program) {
  auto place = s.plan.function(bpf_program__name(program), bpf_program__section_name(program));
  loader.tracing_ids[program] = s.kernel.function_type(place.function);
  if (loader.tracing_ids[program] || place.module.empty()) return;
  loader.tracing_ids[program] = s.kernel.function_type(place.function, place.module);
  if (auto types = s.kernel.module_object(place.module)) loader.module_objects[program] = *types;
}

/// Sets the BTF ids and attach types of the programs before their load.
void set_attach_types(Session& s) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s.object.get()) {
    if (!bpf_program__autoload(program)) continue;
    auto [kind, target] = split_section(bpf_program__section_name(program));
    if (kind == "tp_btf")
      loader.tracing_ids[program] = s.kernel.tracepoint_type(target);
    else if (kind == "fentry" || kind == "fexit")
      set_function(s, program);
    else if (kind == "iter")
      loader.tracing_ids[program] = s.kernel.function_type(fmt::format("bpf_iter_{}", target));
    else if (kind == "target" && s.plan.means.kernel_multi && target.starts_with("kernel"))
      bpf_program__set_expected_attach_type(program, kKprobeMulti);
    else if ((is_probe(kind) && probes_by_file(s.kernel)) ||
             (kind == "target" && s.plan.means.user_multi && target.starts_with("us")))
      bpf_program__set_expected_attach_type(program, kUprobeMulti);
  }
}

/// A file that exists while its descriptor is open; -1: failure.
int memory_file(const std::string& bytes) {
  int fd = memfd_create("coretap-types", MFD_CLOEXEC);
  for (std::size_t done = 0; fd >= 0 && done < bytes.size();) {
    auto n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) {
      close(fd);
      fd = -1;
    } else {
      done += static_cast<std::size_t>(n);
    }
  }
  return fd;
}

/// Since 5.11 memory of maps is charged to the cgroup (80ee81e0403c).
bool counts_locked_memory(Kernel& kernel) { return kernel.has_field("bpf_map", "memory"); }

/// Why the kernel has no types of the program, which libbpf goes on without until something needs
/// them; 0: it has them.
int types_refusal(const bpf_object* object) {
  if (bpf_object__btf_fd(object) >= 0) return 0;
  constexpr std::string_view kSaid = "BTF into kernel: -";
  const std::string_view words = loader.words ? *loader.words : std::string_view();
  if (auto at = words.find(kSaid); at != words.npos)
    if (auto error = strtol(words.data() + at + kSaid.size(), nullptr, 10); error > 0)
      return static_cast<int>(error);
  // libbpf's own test whether the kernel takes any types has failed, and it says only that.
  std::unique_ptr<btf, decltype(&btf__free)> one(btf__new_empty(), btf__free);
  errno = ENOMEM;
  if (one && btf__add_int(one.get(), "int", 4, BTF_INT_SIGNED) > 0 &&
      btf__load_into_kernel(one.get()) == 0)
    return EAGAIN;  // it does by now
  return errno;
}

Error load_error(Session& s, int error) {
  error = error < 0 ? -error : error;
  const int types = types_refusal(s.object.get());
  if (types) error = types;
  auto e = system_error(
      types ? "cannot load the program's type information (BTF)" : "the kernel refuses the program",
      error, kUnsupported);
  if (e.hint.empty()) e.hint = "see its reasons with --verbose";
  auto state = lockdown();
  if (error == EPERM && state == "confidentiality") {
    e.why = "kernel lockdown is 'confidentiality', which forbids BPF to read kernel memory";
    e.hint = "boot with lockdown=integrity or none";
  } else if (error == EPERM && counts_locked_memory(s.kernel) &&
             !own_capabilities().has(Capability::sys_resource)) {
    e.why = "maps count as locked memory on this kernel, and missing CAP_SYS_RESOURCE";
    e.hint = "run as root, give that capability, or raise ulimit -l";
  } else if (error == EPERM) {
    e.hint = "a security policy (LSM, seccomp) may forbid bpf(); coretap doctor tells more";
  } else if (!types && (error == ENOMEM || error == E2BIG)) {
    e.hint = "give smaller limits: --max-keys, --stack-storage-size";
  }
  return e;
}

}  // namespace

std::string KernelParts::section(std::string_view program) const {
  for (auto& p : programs)
    if (p.name == program) return p.section;
  return {};
}

KernelParts kernel_parts(const Tool& tool) {
  KernelParts parts;
  if (tool.object.compressed.empty()) return parts;
  auto bytes = tool.object.bytes();
  auto before = libbpf_set_print(nullptr);
  std::unique_ptr<bpf_object, ObjectDeleter> object(
      bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
  libbpf_set_print(before);
  if (!object) return parts;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get())
      parts.programs.push_back({bpf_program__name(program), bpf_program__section_name(program)});
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) parts.maps.emplace_back(bpf_map__name(map));
  return parts;
}

Result<void> open_object(Session& s) {
  loader = {.talks = s.config.given("verbose"), .words = std::string()};
  take_over_tracing();
  auto bytes = s.tool.object.bytes();  // libbpf copies what it needs
  LIBBPF_OPTS(bpf_object_open_opts, options);
  auto name = std::string(s.tool.name);
  options.object_name = name.c_str();
  // If this fails, libbpf reads all types itself.
  auto types = trimmed_types(s.kernel.all_types(), bytes.data(), bytes.size());
  s.types.reset(types.empty() ? -1 : memory_file(types));
  auto path = fmt::format("/proc/self/fd/{}", s.types.get());
  if (s.types.get() >= 0 && access(path.c_str(), R_OK) == 0) options.btf_custom_path = path.c_str();
  s.object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (!s.object) {
    auto error = system_error("cannot open the kernel program", errno);
    print_libbpf_words();
    return error;
  }
  return {};
}

FunctionInfo functions_of(const bpf_program* program) {
  auto known = loader.function_infos.find(program);
  return known == loader.function_infos.end() ? FunctionInfo{} : known->second;
}

Result<void> load(Session& s) {
  set_attach_types(s);
  loader.no_exchange = !exchange_fits(s);
  loader.cast = tell_types(s);
  s.kernel.release();
  loader.pads = &s.pads;
  // libbpf raises RLIMIT_MEMLOCK where the kernel still accounts BPF memory by it (before 5.11).
  int error = bpf_object__load(s.object.get());
  loader.pads = nullptr;
  s.kernel.close_module_objects();
  s.types.reset(-1);
  if (error) {
    auto refused = load_error(s, error);
    print_libbpf_words();
    return refused;
  }
  loader.words.reset();
  fill_stocks(s);
  fill_nodes(s);
  return open_live(s);
}

}  // namespace coretap
