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
#include "kernel/kernel.hpp"
#include "lib/targets/expression.h"
#include "program/attach.hpp"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/plan.hpp"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

using Points = std::span<const TargetPoint* const>;

constexpr std::size_t kNamedRefusals = 5;
constexpr std::size_t kMostTries = 2000;  // until the refused places are found among many

/// Loads a copy of the program with this id in place of the mark.
Result<Fd> copy_of(const Session& s, const bpf_program* program, std::uint32_t id) {
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
  if (auto& facts = s.loader->programs[program]; !facts.records.empty()) {
    options.prog_btf_fd = facts.btf;
    options.func_info = facts.records.data();
    options.func_info_rec_size = facts.record_size;
    options.func_info_cnt = static_cast<__u32>(facts.records.size() / facts.record_size);
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
    if (is_call(p.kind)) continue;
    auto kind = program_kind(p.kind);
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
        copied_(s.plan.means.copied.at(program_kind(kind))),
        whose_(probed_processes(s.config)) {
    for (auto& p : s.plan.targets.points)
      if (p.kind == kind) points_.push_back(&p);
  }

  Result<void> run() {
    if (is_call(kind_)) {
      auto* link = bpf_program__attach_trace(program_);
      if (!link) return refused_all(system_error({}, errno, kUnsupported));
      s_.links.emplace_back(link);
      return {};
    }
    for (auto& round : rounds()) attach_all(round);
    if (attached_ == 0) return refused_all(last_);
    if (refused_.empty()) return {};
    const std::span named(refused_.data(), std::min(refused_.size(), kNamedRefusals));
    s_.plan.limits.push_back(
        fmt::format("{} of {} refused by the kernel ({}{}{}): {}{}", refused_.size(),
                    points_.size(), last_.why, last_.hint.empty() ? "" : "; ", last_.hint,
                    fmt::join(named, ", "), named.size() < refused_.size() ? ", ..." : ""));
    return {};
  }

 private:
  /// A link has no place twice: if several words name a place, each goes into a separate round.
  std::vector<std::vector<const TargetPoint*>> rounds() const {
    auto place = [](const TargetPoint* p) {
      const bool by_name = !p->address && !p->file;
      return std::make_tuple(p->address, p->file.get(), p->probed.offset,
                             std::string_view(by_name ? p->symbol : std::string_view()));
    };
    auto sorted = points_;
    std::ranges::stable_sort(sorted, {}, place);
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
    std::vector<unsigned long> addresses;
    std::vector<__u64> cookies;
    std::vector<const char*> symbols;
    for (auto* p : part) {
      addresses.push_back(p->address);
      symbols.push_back(p->symbol.c_str());
      cookies.push_back(p->id);
    }
    LIBBPF_OPTS(bpf_link_create_opts, options);
    options.kprobe_multi.flags = at_return_ ? kKprobeMultiReturn : 0;
    options.kprobe_multi.cnt = static_cast<__u32>(part.size());
    if (std::ranges::find(addresses, 0) == addresses.end())
      options.kprobe_multi.addrs = addresses.data();
    else
      options.kprobe_multi.syms = symbols.data();
    options.kprobe_multi.cookies = cookies.data();
    return link_of(bpf_link_create(bpf_program__fd(program_), 0, kKprobeMulti, &options));
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
      probes.offsets.push_back(p->probed.offset);
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
    Fd copy;  // its links hold references
    if (copied_) {
      auto made = copy_of(s_, program_, point.id);
      if (!made) {
        last_ = made.error();
        return refuse(point);
      }
      copy = std::move(*made);
      program = copy.get();
    }
    if (kind_ == TargetPoint::tracepoint) {
      if (!take(raw_tracepoint(program, point), 1)) refuse(point);
      // Their missed runs are read at the end; kernels that need copies count none for others.
      if (copy) s_.copies.push_back(std::move(copy));
      return;
    }
    for (auto pid : point.file ? whose_ : std::set<pid_t>{-1})
      if (!take(perf_event(program, point, pid), 1)) return refuse(point);
  }

  Result<Link> raw_tracepoint(int program, const TargetPoint& point) const {
    RawTracepoint wish{};
    wish.name = reinterpret_cast<std::uintptr_t>(point.symbol.c_str());
    wish.program = static_cast<std::uint32_t>(program);
    wish.cookie = copied_ ? 0 : point.id;
    return link_of(static_cast<int>(syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &wish, sizeof wish)));
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
        attr.probe_offset = point.probed.offset;
        attr.config |= point.semaphore << 32;  // PERF_UPROBE_REF_CTR_OFFSET_SHIFT
      } else if (point.address) {
        attr.kprobe_addr = point.address;
      } else {
        attr.kprobe_func = reinterpret_cast<std::uintptr_t>(point.symbol.c_str());
      }
    }
    Fd event(static_cast<int>(
        syscall(SYS_perf_event_open, &attr, pid, pid == -1 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event && point.within && errno == EILSEQ)
      return Error{{}, "no instruction begins there", {}, kUsage};
    if (!event) return event_refused({}, errno, point.file != nullptr);
    Fd link;  // if there is one, it owns the event
    if (!copied_) {
      LIBBPF_OPTS(bpf_link_create_opts, options);
      options.perf_event.bpf_cookie = point.id;
      link.reset(bpf_link_create(program, event.get(), kPerfEventAttach, &options));
    }
    const bool failed = copied_ ? ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) != 0 : !link;
    if (failed || ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0))
      return system_error({}, errno, kUnsupported);
    return Link(std::move(copied_ ? event : link));
  }

  Session& s_;
  bpf_program* program_;
  TargetPoint::Kind kind_;
  bool at_return_, copied_;
  std::vector<const TargetPoint*> points_;
  std::set<pid_t> whose_;
  std::size_t attached_ = 0, tries_ = 0;
  std::vector<std::string> refused_;
  Error last_{{}, {}, {}, kUnsupported};  ///< why a place was refused
};

}  // namespace

void configure_targets(Session& s) {
  auto& targets = s.plan.targets;
  if (targets.points.empty()) return;
  s.names.targets = targets.names;
  set_variable(s, "target_count", targets.names.size());
  set_variable(s, "target_copied", s.plan.means.copied.data(), TARGET_KINDS);
  auto only = only_numbers(targets, s.plan.means);
  set_variable(s, "target_only", only.data(), sizeof only);
  std::array<std::uint32_t, CALLS_COMPAT> entries{}, ends{};
  for (auto& p : targets.points) {
    if (!is_call(p.kind)) continue;
    auto& ids = p.kind == TargetPoint::call_entry ? entries : ends;
    if (p.address < ids.size()) ids.at(p.address) = p.id + 1;
  }
  set_variable(s, "walks_at_entries", std::ranges::all_of(targets.points, [](auto& p) {
                 return p.kind == TargetPoint::user ? !p.within : p.instruction;
               }));
  set_variable(s, "target_entries", entries.data(), sizeof entries);
  set_variable(s, "target_ends", ends.data(), sizeof ends);
  std::array<bool, EXPRESSION_PAIRED> paired{};
  std::copy_n(targets.paired.begin(), std::min(targets.paired.size(), paired.size()),
              paired.begin());
  if (std::ranges::find(paired, true) != paired.end()) {
    set_variable(s, "expression_pairs", 1);
    set_variable(s, "expression_paired", paired.data(), paired.size());
  }
  for (auto* map : maps_of(s.object.get())) {  // TARGET_SLOTS
    if (bpf_map__is_internal(map) || bpf_map__btf_value_type_id(map) ||
        !(bpf_map__map_flags(map) & BPF_F_MMAPABLE))
      continue;
    auto bytes = bpf_map__value_size(map) * targets.names.size();
    bpf_map__set_value_size(map,
                            static_cast<__u32>((bytes + kCacheLine - 1) / kCacheLine * kCacheLine));
  }
}

Result<void> attach_targets(Session& s, bpf_program* program, TargetPoint::Kind kind) {
  return Attacher(s, program, kind).run();
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
