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
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/min_core_btf.hpp"
#include "program/instructions.hpp"
#include "program/maps.hpp"
#include "program/probe_target.hpp"
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

Loader* loader = nullptr;  ///< the last one made

int libbpf_print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || !loader) return 0;
  if (!loader->words)
    return loader->s.config.given("verbose") ? vfprintf(stderr, format, arguments) : 0;
  char* text = nullptr;
  if (vasprintf(&text, format, arguments) < 0) return 0;
  loader->words->append(text);
  free(text);
  return 0;
}

/// Changes the program just before libbpf loads it. `attach_type`: of tracing programs; 0: others.
int prepare_load(bpf_program* program, bpf_prog_load_opts* options, long attach_type) {
  if (!loader) return -ESRCH;
  auto& facts = loader->programs[program];
  if (attach_type) {
    options->attach_btf_id = facts.target;
    options->attach_btf_obj_fd = static_cast<__u32>(facts.module_object);
    options->expected_attach_type = static_cast<bpf_attach_type>(attach_type);
    bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
  }
  facts.btf = options->prog_btf_fd;
  facts.record_size = options->func_info_rec_size;
  if (auto* bytes = static_cast<const char*>(options->func_info))
    facts.records.assign(bytes, bytes + std::size_t{options->func_info_cnt} * facts.record_size);

  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  fill_pads(code, loader->s.pads);
  if (loader->no_exchange) take_out_exchanges(code);
  complete_casts(code, loader->cast);
  complete_preemption(code, section_of(program), loader->preemption);
  bpf_program__set_insns(program, code.data(), code.size());
  return 0;
}

void take_over_libbpf() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  libbpf_set_print(libbpf_print);
  struct {
    const char* section;
    bpf_prog_type type;
    bpf_attach_type tracing = {};
  } const kinds[] = {{"tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP},
                     {"fentry+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FENTRY},
                     {"fexit+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FEXIT},
                     {"iter+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER},
                     {"target/kernel", BPF_PROG_TYPE_KPROBE},
                     {"target/kernel.return", BPF_PROG_TYPE_KPROBE},
                     {"target/user", BPF_PROG_TYPE_KPROBE},
                     {"target/user.return", BPF_PROG_TYPE_KPROBE},
                     {"target/usdt", BPF_PROG_TYPE_KPROBE},
                     {"target/tracepoint", BPF_PROG_TYPE_RAW_TRACEPOINT},
                     {"target/event", BPF_PROG_TYPE_TRACEPOINT},
                     {"run/each_cpu", BPF_PROG_TYPE_RAW_TRACEPOINT},
                     {"run/asked", BPF_PROG_TYPE_RAW_TRACEPOINT},
                     {"tracepoint+", BPF_PROG_TYPE_TRACEPOINT},
                     {"raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT},
                     {"kprobe+", BPF_PROG_TYPE_KPROBE},
                     {"kretprobe+", BPF_PROG_TYPE_KPROBE},
                     {"uprobe+", BPF_PROG_TYPE_KPROBE},
                     {"uretprobe+", BPF_PROG_TYPE_KPROBE},
                     // libbpf allows no target here; --explain shows it (the clock).
                     {"perf_event+", BPF_PROG_TYPE_PERF_EVENT}};
  for (auto& kind : kinds) {
    LIBBPF_OPTS(libbpf_prog_handler_opts, options);
    options.cookie = kind.tracing;
    options.prog_prepare_load_fn = prepare_load;
    libbpf_register_prog_handler(kind.section, kind.type, kind.tracing, &options);
  }
}

/// Sets the BTF ids and attach types of the programs before their load.
void set_attach_types(Session& s) {
  for (auto* program : programs_of(s.object.get())) {
    if (!bpf_program__autoload(program)) continue;
    const auto section = section_of(program);
    auto& [kind, target] = section;
    auto& facts = s.loader->programs[program];
    if (kind == "tp_btf") {
      facts.target = s.kernel.tracepoint_type(target);
    } else if (kind == "fentry" || kind == "fexit") {
      auto [function, module] = s.plan.function(program);
      facts.target = s.kernel.function_type(function);
      if (facts.target || module.empty()) continue;
      facts.target = s.kernel.function_type(function, module);
      if (auto types = s.kernel.module_object(module)) facts.module_object = *types;
    } else if (kind == "iter") {
      facts.target = s.kernel.function_type(fmt::format("bpf_iter_{}", target));
    } else if (kind == "target" && s.plan.means.kernel_multi && target.starts_with("kernel")) {
      bpf_program__set_expected_attach_type(program, kKprobeMulti);
    } else if ((is_probe(section) && probes_by_file(s.kernel)) ||
               (kind == "target" && s.plan.means.user_multi && target.starts_with("us"))) {
      bpf_program__set_expected_attach_type(program, kUprobeMulti);
    }
  }
}

/// A file in memory, which exists while its descriptor is open; none: failure.
Fd memory_file(std::string_view bytes) {
  Fd file(memfd_create("coretap-types", MFD_CLOEXEC));
  while (file && !bytes.empty()) {
    auto n = write(file.get(), bytes.data(), bytes.size());
    if (n <= 0) return Fd();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return file;
}

/// Since 5.11 memory of maps is charged to the cgroup (80ee81e0403c).
bool counts_locked_memory(Kernel& kernel) { return kernel.has_field("bpf_map", "memory"); }

/// The error whose number libbpf has put behind `mark` and `before`, in one line; 0: none.
int said_error(std::string_view words, std::string_view mark, std::string_view before) {
  auto at = words.find(mark);
  if (at == words.npos) return 0;
  const auto line = words.substr(at, words.find('\n', at) - at);
  at = line.find(before, mark.size());
  if (at == line.npos) return 0;
  int error = 0;
  std::from_chars(line.data() + at + before.size(), line.data() + line.size(), error);
  return std::max(error, 0);
}

/// Why the kernel has no types of the program, which libbpf goes on without until something needs
/// them; 0: it has them.
int types_refusal(const Session& s) {
  if (bpf_object__btf_fd(s.object.get()) >= 0) return 0;
  if (auto error = said_error(s.loader->words.value_or(""), "BTF into kernel", ": -")) return error;
  // libbpf's own test whether the kernel takes any types has failed, and it says only that.
  std::unique_ptr<btf, decltype(&btf__free)> one(btf__new_empty(), btf__free);
  errno = ENOMEM;
  if (one && btf__add_int(one.get(), "int", 4, BTF_INT_SIGNED) > 0 &&
      btf__load_into_kernel(one.get()) == 0)
    return EAGAIN;  // it does by now
  return errno;
}

struct RefusedMap {
  std::string name;
  int error;
};

/// The map that libbpf tried again without its types, which local storage needs: so it ends with
/// EINVAL, whatever the first error was.
std::optional<RefusedMap> refused_map(const Session& s) {
  constexpr std::string_view kSaid = "Error in bpf_create_map_xattr(";
  const auto words = s.loader->words.value_or("");
  const auto last = words.rfind(kSaid);
  if (last == words.npos) return {};
  const auto line = words.substr(last);
  const auto error = said_error(line, kSaid, "(-");
  if (!error) return {};
  return RefusedMap{line.substr(kSaid.size(), line.find(')') - kSaid.size()), error};
}

Error load_error(Session& s, int error) {
  error = error < 0 ? -error : error;
  const int types = types_refusal(s);
  const auto map = types ? std::nullopt : refused_map(s);
  if (types) error = types;
  if (map && error == EINVAL) error = map->error;
  auto e =
      system_error(types ? "cannot load the program's type information (BTF)"
                   : map ? fmt::format("the kernel refuses the map {} of the program", map->name)
                         : "the kernel refuses the program",
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

/// After a failure.
void show_words(const Session& s) {
  if (s.config.given("verbose")) fputs(s.loader->words->c_str(), stderr);
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
  for (auto* program : programs_of(object.get()))
    parts.programs.push_back({bpf_program__name(program), bpf_program__section_name(program)});
  for (auto* map : maps_of(object.get())) parts.maps.emplace_back(bpf_map__name(map));
  return parts;
}

Loader::Loader(Session& session) : s(session) {
  take_over_libbpf();
  loader = this;
}

Loader::~Loader() {
  if (loader == this) loader = nullptr;
}

Result<void> open_object(Session& s) {
  s.loader = std::make_shared<Loader>(s);
  auto bytes = s.tool.object.bytes();  // libbpf copies what it needs
  LIBBPF_OPTS(bpf_object_open_opts, options);
  auto name = std::string(s.tool.name);
  options.object_name = name.c_str();
  // If this fails, libbpf reads all types itself.
  auto types = trimmed_types(s.kernel.all_types(), bytes.data(), bytes.size());
  s.types = types.empty() ? Fd() : memory_file(types);
  auto path = fmt::format("/proc/self/fd/{}", s.types.get());
  if (s.types && access(path.c_str(), R_OK) == 0) options.btf_custom_path = path.c_str();
  s.object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (s.object) return {};
  auto error = system_error("cannot open the kernel program", errno);
  show_words(s);
  return error;
}

Result<void> load(Session& s) {
  set_attach_types(s);
  s.loader->no_exchange = !exchange_fits(s);
  s.loader->cast = tell_types(s);
  s.loader->preemption = preemption_of(s);
  s.kernel.release();
  // libbpf raises RLIMIT_MEMLOCK where the kernel still accounts BPF memory by it (before 5.11).
  int error = bpf_object__load(s.object.get());
  s.kernel.close_module_objects();
  s.types.reset();
  if (error) {
    auto refused = load_error(s, error);
    show_words(s);
    return refused;
  }
  s.loader->words.reset();
  fill_stocks(s);
  fill_nodes(s);
  return open_live(s);
}

}  // namespace coretap
