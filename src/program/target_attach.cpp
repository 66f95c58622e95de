#include "program/target_attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "coretap/sanitize.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "lib/targets/expression.h"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/plan.hpp"
#include "program/probe.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

using Points = std::span<const TargetPoint* const>;

constexpr std::size_t kNamedRefusals = 5;
constexpr std::size_t kMostTries = 2000;  // until the refused places are found among many

template <class Wish>
Result<Link> create_link(Wish& wish) {
  Fd link(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &wish, sizeof wish)));
  if (!link) return system_error({}, errno, kUnsupported);
  return Link(std::move(link));
}

target_kind kind_of_point(TargetPoint::Kind kind) {
  switch (kind) {
    case TargetPoint::kernel:
    case TargetPoint::kernel_return:
      return TARGET_KERNEL;
    case TargetPoint::tracepoint:
      return TARGET_TRACEPOINT;
    case TargetPoint::event:
      return TARGET_EVENT;
    default:
      return TARGET_USER;
  }
}

/// Loads a copy of the program with this id in place of the mark.
Result<Fd> copy_of(const bpf_program* program, std::uint32_t id) {
  auto* first = bpf_program__insns(program);
  std::vector<bpf_insn> code(first, first + bpf_program__insn_cnt(program));
  bool marked = false;
  for (auto& insn : code)
    if ((BPF_CLASS(insn.code) == BPF_ALU64 || BPF_CLASS(insn.code) == BPF_ALU) &&
        BPF_OP(insn.code) == BPF_MOV && BPF_SRC(insn.code) == BPF_K && insn.imm == TARGET_MARK) {
      insn.imm = static_cast<__s32>(id);
      marked = true;
    }
  if (!marked) return Error{{}, "the program has no place for its number"};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = bpf_program__expected_attach_type(program);
  auto functions = functions_of(program);
  if (!functions.records.empty()) {
    options.prog_btf_fd = functions.btf;
    options.func_info = functions.records.data();
    options.func_info_rec_size = functions.record_size;
    options.func_info_cnt = static_cast<__u32>(functions.records.size() / functions.record_size);
  }
  Fd fd(bpf_prog_load(bpf_program__type(program), bpf_program__name(program), "Dual BSD/GPL",
                      code.data(), code.size(), &options));
  if (!fd) return system_error({}, errno, kUnsupported);
  return fd;
}

/// By kind: the id that all targets share, plus one; 0: they have several ids, or copies.
std::array<std::uint32_t, TARGET_KINDS> only_numbers(const Targets& targets,
                                                     const TargetMeans& means) {
  std::array<std::uint32_t, TARGET_KINDS> only{};
  auto several = means.copied;
  for (auto& p : targets.points) {
    if (p.kind == TargetPoint::call_entry || p.kind == TargetPoint::call_end) continue;
    auto kind = kind_of_point(p.kind);
    several.at(kind) |= only.at(kind) && only.at(kind) != p.id + 1;
    only.at(kind) = p.id + 1;
  }
  for (std::size_t kind = 0; kind < only.size(); kind++)
    if (several.at(kind)) only.at(kind) = 0;
  return only;
}

class Attacher {
 public:
  Attacher(Session& s, bpf_program* program, TargetPoint::Kind kind)
      : s_(s),
        program_(program),
        kind_(kind),
        at_return_(kind == TargetPoint::kernel_return || kind == TargetPoint::user_return),
        copied_(s.plan.means.copied.at(kind_of_point(kind))) {
    for (auto& p : s.plan.targets.points)
      if (p.kind == kind) points_.push_back(&p);
    whose_.insert(s.config.tasks.pids.begin(), s.config.tasks.pids.end());
    if (whose_.empty()) whose_.insert(-1);
  }

  Result<void> run() {
    if (kind_ == TargetPoint::call_entry || kind_ == TargetPoint::call_end) {
      auto* link = bpf_program__attach_trace(program_);
      if (!link) return refused_all(system_error({}, errno, kUnsupported));
      s_.links.emplace_back(link);
      return {};
    }
    for (auto& round : rounds()) attach_all(round);
    if (attached_ == 0) return refused_all(last_);
    if (!refused_.empty()) {
      auto words = fmt::format(
          "{} of {} refused by the kernel ({}{}{}): {}{}", refused_.size(), points_.size(),
          last_.why, last_.hint.empty() ? "" : "; ", last_.hint,
          fmt::join(refused_.begin(),
                    refused_.begin() +
                        static_cast<std::ptrdiff_t>(std::min(refused_.size(), kNamedRefusals)),
                    ", "),
          refused_.size() > kNamedRefusals ? ", ..." : "");
      s_.plan.limits.push_back(std::move(words));
    }
    return {};
  }

 private:
  /// A link has no place twice: if several words name a place, each goes into a separate round.
  std::vector<std::vector<const TargetPoint*>> rounds() const {
    auto place = [](const TargetPoint* p) {
      const bool by_name = !p->address && !p->file;
      return std::make_tuple(p->address, p->file.get(), p->offset,
                             std::string_view(by_name ? p->symbol : std::string_view()));
    };
    auto sorted = points_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](auto* a, auto* b) { return place(a) < place(b); });
    std::vector<std::vector<const TargetPoint*>> all;
    std::size_t round = 0;
    for (std::size_t i = 0; i < sorted.size(); i++) {
      round = i && place(sorted[i]) == place(sorted[i - 1]) ? round + 1 : 0;
      if (round >= all.size()) all.emplace_back();
      all[round].push_back(sorted[i]);
    }
    return all;
  }

  void attach_all(Points points) {
    if (!s_.plan.means.one_link(kind_))
      for (auto* point : points) single(*point);
    else if (kind_ <= TargetPoint::kernel_return)
      in_parts(points, [&](Points part) { return kernel_functions(part); });
    else
      by_file(points);
  }

  bool by_trampoline(const TargetPoint& point) const { return at_return_ && !point.instruction; }

  std::string name_of(const TargetPoint& point) const {
    return printable(point.within ? s_.plan.targets.names.at(point.id) : point.symbol);
  }

  Result<void> refused_all(Error error) const {
    error.what =
        fmt::format("cannot attach to {}{}", points_.empty() ? "" : name_of(*points_.front()),
                    points_.size() > 1 ? fmt::format(" and {} more", points_.size() - 1) : "");
    return error;
  }

  void refuse(const TargetPoint& point) { refused_.push_back(name_of(point)); }

  bool take(Result<Link> link, std::size_t places) {
    if (!link) {
      last_ = link.error();
      return false;
    }
    s_.links.push_back(std::move(*link));
    attached_ += places;
    return true;
  }

  /// A link fails as a whole if one of its places is refused: bisects to find that place.
  void in_parts(Points part, const std::function<Result<Link>(Points)>& attach) {
    if (part.empty()) return;
    if (tries_++ >= kMostTries) {
      for (auto* point : part) refuse(*point);
      return;
    }
    if (take(attach(part), part.size())) return;
    if (part.size() == 1) return refuse(*part.front());
    in_parts(part.first(part.size() / 2), attach);
    in_parts(part.subspan(part.size() / 2), attach);
  }

  Result<Link> kernel_functions(Points part) const {
    std::vector<std::uint64_t> addresses, cookies;
    std::vector<const char*> symbols;
    const bool by_address =
        std::all_of(part.begin(), part.end(), [](auto* p) { return p->address != 0; });
    for (auto* p : part) {
      if (by_address)
        addresses.push_back(p->address);
      else
        symbols.push_back(p->symbol.c_str());
      cookies.push_back(p->id);
    }
    KprobeMulti wish{};
    wish.program = static_cast<std::uint32_t>(bpf_program__fd(program_));
    wish.attach_type = kKprobeMulti;
    wish.flags = at_return_ ? kKprobeMultiReturn : 0;
    wish.count = static_cast<std::uint32_t>(part.size());
    if (by_address)
      wish.addresses = reinterpret_cast<std::uintptr_t>(addresses.data());
    else
      wish.symbols = reinterpret_cast<std::uintptr_t>(symbols.data());
    wish.cookies = reinterpret_cast<std::uintptr_t>(cookies.data());
    return create_link(wish);
  }

  void by_file(Points all) {
    std::map<std::pair<const Fd*, bool>, std::vector<const TargetPoint*>> files;
    for (auto* p : all) files[{p->file.get(), p->instruction}].push_back(p);
    for (auto& [file, points] : files)
      for (auto pid : whose_) in_parts(points, [&](Points part) { return file_places(part, pid); });
  }

  Result<Link> file_places(Points part, pid_t pid) const {
    FileProbes probes{fmt::format("/proc/self/fd/{}", part.front()->file->get()),
                      by_trampoline(*part.front()),
                      {}};
    for (auto* p : part) {
      probes.offsets.push_back(p->offset);
      probes.cookies.push_back(p->id);
      if (p->semaphore || !probes.semaphores.empty()) {
        probes.semaphores.resize(probes.offsets.size() - 1);
        probes.semaphores.push_back(p->semaphore);
      }
    }
    return attach_file(bpf_program__fd(program_), probes, pid);
  }

  void single(const TargetPoint& point) {
    int program = bpf_program__fd(program_);
    if (copied_) {
      auto copy = copy_of(program_, point.id);
      if (!copy) {
        last_ = copy.error();
        return refuse(point);
      }
      program = copy->get();
      copies_.push_back(std::move(*copy));
    }
    if (kind_ == TargetPoint::tracepoint) {
      // Their missed runs are read at the end; kernels that need copies count none for others.
      if (copied_) s_.copies.push_back(std::move(copies_.back()));
      copies_.clear();
      if (!take(raw_tracepoint(program, point), 1)) refuse(point);
      return;
    }
    const bool in_file = point.file != nullptr;
    for (auto pid : in_file ? whose_ : std::set<pid_t>{-1})
      if (!take(perf_event(program, point, pid), 1)) {
        refuse(point);
        break;
      }
    copies_.clear();  // the links hold references
  }

  Result<Link> raw_tracepoint(int program, const TargetPoint& point) const {
    RawTracepoint wish{};
    wish.name = reinterpret_cast<std::uintptr_t>(point.symbol.c_str());
    wish.program = static_cast<std::uint32_t>(program);
    wish.cookie = copied_ ? 0 : point.id;
    Fd link(static_cast<int>(syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &wish, sizeof wish)));
    if (!link) return system_error({}, errno, kUnsupported);
    return Link(std::move(link));
  }

  Result<Link> perf_event(int program, const TargetPoint& point, pid_t pid) const {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    std::string path;
    if (kind_ == TargetPoint::event) {
      auto id = listed_tracepoint_id(point.symbol);
      if (!id) return id.error();
      attr.type = PERF_TYPE_TRACEPOINT;
      attr.config = static_cast<__u64>(*id);
    } else {
      auto type = probe_event_type(point.file ? "uprobe" : "kprobe");
      if (!type) return type.error();
      attr.type = *type;
      attr.config = by_trampoline(point) ? 1 : 0;  // format/retprobe: bit 0 on every kernel
      if (point.file) {
        path = fmt::format("/proc/self/fd/{}", point.file->get());
        attr.uprobe_path = reinterpret_cast<std::uintptr_t>(path.c_str());
        attr.probe_offset = point.offset;
        attr.config |= point.semaphore << 32;  // PERF_UPROBE_REF_CTR_OFFSET_SHIFT
      } else if (point.address) {
        attr.kprobe_addr = point.address;
      } else {
        attr.kprobe_func = reinterpret_cast<std::uintptr_t>(point.symbol.c_str());
      }
    }
    Fd event(static_cast<int>(
        syscall(SYS_perf_event_open, &attr, pid, pid == -1 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event) {
      const int error = errno;  // the checks below may change errno
      if (point.within && error == EILSEQ)
        return Error{{}, "no instruction begins there", {}, kUsage};
      auto refused = system_error({}, error, kUnsupported);
      refused.why += perf_capability_missing(error, point.file != nullptr);
      return refused;
    }
    if (!copied_) {
      PerfEventLink wish{static_cast<std::uint32_t>(program),
                         static_cast<std::uint32_t>(event.get()), kPerfEventAttach, 0, point.id};
      auto link = create_link(wish);
      if (link && ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0))
        return system_error({}, errno, kUnsupported);
      return link;  // the link owns the event
    }
    if (ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) ||
        ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0))
      return system_error({}, errno, kUnsupported);
    return Link(std::move(event));
  }

  Session& s_;
  bpf_program* program_;
  TargetPoint::Kind kind_;
  bool at_return_, copied_;
  std::vector<const TargetPoint*> points_;
  std::set<pid_t> whose_;
  std::size_t attached_ = 0, tries_ = 0;
  std::vector<Fd> copies_;
  std::vector<std::string> refused_;
  Error last_{{}, {}, {}, kUnsupported};  ///< why a place was refused
};

}  // namespace

void configure_targets(Session& s) {
  auto& targets = s.plan.targets;
  if (targets.points.empty()) return;
  s.names.targets = targets.names;
  set_variable(s, "target_count", targets.names.size());
  std::array<std::uint8_t, TARGET_KINDS> copied{};
  std::copy(s.plan.means.copied.begin(), s.plan.means.copied.end(), copied.begin());
  set_variable(s, "target_copied", copied.data(), copied.size());
  auto only = only_numbers(targets, s.plan.means);
  set_variable(s, "target_only", only.data(), sizeof only);
  std::array<std::uint32_t, CALLS_COMPAT> entries{}, ends{};
  for (auto& p : targets.points) {
    if (p.kind != TargetPoint::call_entry && p.kind != TargetPoint::call_end) continue;
    auto& ids = p.kind == TargetPoint::call_entry ? entries : ends;
    if (p.address < ids.size()) ids.at(p.address) = p.id + 1;
  }
  set_variable(s, "walks_at_entries",
               std::all_of(targets.points.begin(), targets.points.end(), [](auto& p) {
                 return p.kind == TargetPoint::user ? !p.within : p.instruction;
               }));
  set_variable(s, "target_entries", entries.data(), sizeof entries);
  set_variable(s, "target_ends", ends.data(), sizeof ends);
  std::array<std::uint8_t, EXPRESSION_PAIRED> paired{};
  for (std::size_t id = 0; id < targets.paired.size() && id < paired.size(); id++)
    paired.at(id) = targets.paired[id];
  if (std::find(paired.begin(), paired.end(), 1) != paired.end()) {
    set_variable(s, "expression_pairs", 1);
    set_variable(s, "expression_paired", paired.data(), paired.size());
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, s.object.get()) {  // TARGET_SLOTS
    if (bpf_map__is_internal(map) || bpf_map__btf_value_type_id(map) ||
        !(bpf_map__map_flags(map) & BPF_F_MMAPABLE))
      continue;
    auto bytes = bpf_map__value_size(map) * targets.names.size();
    bpf_map__set_value_size(map,
                            static_cast<__u32>((bytes + kCacheLine - 1) / kCacheLine * kCacheLine));
  }
}

bool is_target(const bpf_program* program) {
  return kind_of(bpf_program__section_name(program)) &&
         std::string_view(bpf_program__name(program)).starts_with("target_");
}

Result<void> attach_targets(Session& s, bpf_program* program) {
  auto kind = kind_of(bpf_program__section_name(program));
  return Attacher(s, program, kind.value_or(TargetPoint::kernel)).run();
}

std::uint64_t missed_at(const Links& links) {
  std::uint64_t missed = 0;
  for (auto& link : links) {
    LinkInfo info{};
    __u32 size = sizeof info;
    if (link.fd() < 0 ||
        bpf_obj_get_info_by_fd(link.fd(), reinterpret_cast<bpf_link_info*>(&info), &size))
      continue;
    if (info.type == kLinkKprobeMulti)
      missed += info.of.kprobe_multi.missed;
    else if (info.type == kLinkPerfEvent &&
             (info.of.perf_event.type == kPerfKprobe || info.of.perf_event.type == kPerfKretprobe))
      missed += info.of.perf_event.missed;
  }
  return missed;
}

}  // namespace coretap
