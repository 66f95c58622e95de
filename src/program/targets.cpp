#include "program/targets.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/read_failures.hpp"
#include "coretap/config.hpp"
#include "coretap/hooks.hpp"
#include "coretap/nearest.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "coretap/syscalls.hpp"
#include "kernel/kernel.hpp"
#include "lib/targets/expression.h"
#include "program/function_returns.hpp"
#include "program/kernel_functions.hpp"
#include "program/probe_target.hpp"
#include "program/section.hpp"
#include "program/target.hpp"
#include "program/uprobe_proof.hpp"
#include "symbols/code_place.hpp"
#include "symbols/demangle.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/instructions.hpp"
#include "symbols/usdt.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kMostSingle = 1000;
constexpr std::size_t kMost = 200'000;
constexpr std::size_t kAlike = 3;
constexpr std::size_t kMostInHint = 12;  // libraries
/// A function that every kernel has: checks whether functions can be probed at all.
constexpr std::string_view kAnyFunction = "vfs_read";

struct Shape {
  std::string_view section, noun;
  target_kind program = TARGET_USER;
  TargetPoint::Kind entry, end;  ///< of a call with such an entry or end; else the kind itself
};
using Point = TargetPoint;
constexpr std::array<Shape, TargetPoint::kinds> kShapes = {{
    {"target/kernel", "kernel functions", TARGET_KERNEL, Point::kernel, Point::kernel_return},
    {"target/kernel.return", "returns of kernel functions", TARGET_KERNEL, Point::kernel,
     Point::kernel_return},
    {"target/user", "user functions", TARGET_USER, Point::user, Point::user_return},
    {"target/user.return", "returns of user functions", TARGET_USER, Point::user,
     Point::user_return},
    {"target/usdt", "USDT probes", TARGET_USER, Point::usdt, Point::usdt},
    {"target/tracepoint", "tracepoints", TARGET_TRACEPOINT, Point::tracepoint, Point::tracepoint},
    {"target/event", "tracepoints by perf events", TARGET_EVENT, Point::event, Point::event},
    {"tp_btf/sys_enter", "system call entries", TARGET_USER, Point::call_entry, Point::call_end},
    {"tp_btf/sys_exit", "system call exits", TARGET_USER, Point::call_entry, Point::call_end},
}};

std::string in_quotes(std::string_view word) { return fmt::format("'{}'", printable(word)); }

/// "did you mean ...?"; empty: no similar name.
std::string suggest(std::string_view word, const std::vector<std::string>& known) {
  auto words = did_you_mean(word, {known.begin(), known.end()});
  return words.empty() ? words : printable(words);
}

/// Names of the kernel's events, "category:name".
const Result<std::vector<std::string>>& kernel_events() {
  static const auto all = tracepoint_names();
  return all;
}

/// The words of a name with underscores; '*' separates, too.
std::set<std::string_view> words_of(std::string_view name) {
  std::set<std::string_view> words;
  while (!name.empty()) {
    auto word = name.substr(0, name.find_first_of("_*"));
    name.remove_prefix(std::min(name.size(), word.size() + 1));
    if (word.size() > 2) words.insert(word);
  }
  return words;
}

/// Tracepoints of the subsystem that the function's name has, and that share another word with it,
/// the most similar first.
std::vector<std::string> tracepoints_like(std::string_view function) {
  auto& events = kernel_events();
  if (!events) return {};
  const auto wanted = words_of(function.substr(0, 64));
  std::vector<std::tuple<std::size_t, std::size_t, std::string>> found;
  for (auto& event : *events) {
    const std::string_view name = event;
    auto words = words_of(name.substr(name.find(':') + 1));
    words.insert(name.substr(0, name.find(':')));
    const auto shared = std::ranges::count_if(wanted, [&](auto w) { return words.contains(w); });
    if (shared > 1) found.emplace_back(SIZE_MAX - shared, event.size(), "t:" + event);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [shared, size, name] : found)
    if (names.size() < kAlike) names.push_back(name);
  return names;
}

/// System calls whose name is a word of the function's: "sys_read" for vfs_read.
std::vector<std::string> calls_like(std::string_view function) {
  std::vector<std::string> names;
  for (auto word : words_of(function.substr(0, 64)))
    if (auto& events = kernel_events();
        events && names.size() < kAlike &&
        std::ranges::binary_search(*events, fmt::format("syscalls:sys_enter_{}", word)))
      names.push_back(fmt::format("sys_{}", word));
  return names;
}

/// Words for `coretap find` by which tools of a subsystem are found, by a word of a function's
/// name.
constexpr struct {
  std::string_view words, find;
} kFoundBy[] = {
    {"vfs file ksys dentry inode page filemap ext4 xfs btrfs f2fs nfs fuse", "file"},
    {"bio blk submit request nvme scsi", "disk"},
    {"tcp inet sock skb", "tcp"},
    {"udp udpv6", "udp"},
    {"sched wake schedule task enqueue dequeue", "cpu"},
    {"kmalloc kmem slab kfree alloc pages vmalloc", "memory"},
    {"irq softirq timer tick lapic hrtimer", "interrupt"},
};
std::string_view found_by(std::string_view function) {
  const auto wanted = words_of(function.substr(0, 64));
  for (auto& [words, find] : kFoundBy)
    for (auto rest = words; !rest.empty();)
      if (wanted.contains(take_until(rest, ' '))) return find;
  return {};
}

/// Functions that books and articles probe, which kernels have renamed, removed or inlined since,
/// and tracepoints that are reached where the function was.
constexpr struct {
  std::string_view functions, tracepoints, why;
} kReplaced[] = {
    {"__alloc_pages_nodemask __alloc_pages alloc_pages_current", "t:kmem:mm_page_alloc",
     "renamed in 5.13 and 6.10"},
    {"__free_pages_ok free_hot_cold_page", "t:kmem:mm_page_free", "renamed or inlined"},
    {"kmem_cache_alloc kmem_cache_alloc_node kmem_cache_alloc_trace", "t:kmem:kmem_cache_alloc",
     "renamed in 6.10"},
    {"__kmalloc kmalloc __kmalloc_node kmalloc_trace", "t:kmem:kmalloc", "renamed in 6.10"},
    {"blk_account_io_start __blk_account_io_start blk_start_request blk_mq_start_request",
     "t:block:block_io_start t:block:block_rq_issue", "inlined in 5.17, removed in 6.4"},
    {"blk_account_io_done __blk_account_io_done blk_account_io_completion blk_update_request",
     "t:block:block_io_done t:block:block_rq_complete", "inlined in 5.17, removed in 6.4"},
    {"submit_bio generic_make_request submit_bio_noacct", "t:block:block_bio_queue",
     "renamed in 5.9"},
    {"account_page_dirtied folio_account_dirtied __set_page_dirty",
     "t:writeback:writeback_dirty_folio t:writeback:writeback_dirty_page",
     "renamed in 5.16, inlined"},
    {"add_to_page_cache_lru __add_to_page_cache_locked filemap_add_folio",
     "t:filemap:mm_filemap_add_to_page_cache", "renamed in 5.16"},
    {"__do_page_fault do_page_fault do_user_addr_fault", "t:exceptions:page_fault_user",
     "renamed in 5.8"},
    {"do_try_to_free_pages try_to_free_pages shrink_node shrink_zone",
     "t:vmscan:mm_vmscan_direct_reclaim_begin", "often inlined"},
    {"try_to_compact_pages compact_zone", "t:compaction:mm_compaction_begin", "often inlined"},
    {"oom_kill_process", "t:oom:mark_victim", "often inlined"},
    {"try_to_wake_up ttwu_do_wakeup ttwu_do_activate", "t:sched:sched_wakeup", "often inlined"},
    {"finish_task_switch __schedule context_switch", "t:sched:sched_switch",
     "has suffixes (.isra), or is inlined"},
    {"_do_fork do_fork kernel_clone copy_process", "t:sched:sched_process_fork", "renamed in 5.10"},
    {"do_exit", "t:sched:sched_process_exit", "not on all kernels"},
    {"do_execve do_execveat_common", "t:sched:sched_process_exec", "often inlined"},
    {"tcp_retransmit_skb __tcp_retransmit_skb", "t:tcp:tcp_retransmit_skb", "often inlined"},
    {"tcp_set_state", "t:sock:inet_sock_set_state", "often inlined"},
    {"kfree_skb __kfree_skb kfree_skb_reason", "t:skb:kfree_skb", "renamed in 5.17 and 6.11"},
};

struct Replacement {
  std::string tracepoint;  ///< empty: none is known, or this kernel does not have it
  std::string_view why;
};
Replacement replacement(std::string_view function) {
  auto& events = kernel_events();
  if (!events) return {};
  for (auto& row : kReplaced)
    for (auto rest = row.functions; !rest.empty();)
      if (take_until(rest, ' ') == function)
        for (auto names = row.tracepoints; !names.empty();)
          if (std::string event(take_until(names, ' '));
              std::ranges::binary_search(*events, event.substr(2)))
            return {event, row.why};
  return {};
}

/// Names of kernel functions for system calls whose tracepoints have other names.
constexpr std::pair<std::string_view, std::string_view> kCallNames[] = {
    {"stat", "newstat"},   {"lstat", "newlstat"},      {"fstat", "newfstat"},
    {"uname", "newuname"}, {"sendfile", "sendfile64"}, {"umount2", "umount"},
};

/// "sys_read", "__x64_sys_read" etc.: the call's part of a pattern; empty: it is not a call.
std::string_view call_part(std::string_view function) {
  for (std::string_view prefix : {"__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_",
                                  "sys_", "SyS_", "do_syscall_"})
    if (function.starts_with(prefix)) return function.substr(prefix.size());
  return {};
}

class Search {
 public:
  Search(const Hook& hook, const Config& config, Kernel& kernel, ProbeFinder& finder)
      : calls_(hook.calls),
        by_word_(hook.by_word),
        known_(hook.known),
        paired_(hook.paired ? hook.paired(config) : std::vector<bool>()),
        reads_(hook.reads),
        config_(config),
        kernel_(kernel),
        finder_(finder),
        returns_(config.given("return-trampoline")) {}

  Result<void> add(std::string_view text) {
    auto word = parse_target(text, config_.given("regexp"));
    if (!word) return word.error();
    word_ = text;
    number_++;
    refused_.reset();
    matched_.clear();
    const auto before = found_.points.size();
    failures_.emplace();
    auto added = add_word(*word);
    if (*failures_) {
      auto failed = failures_->error(fmt::format("cannot trace {}", in_quotes(word_)));
      if (found_.points.size() == before) return failed;
      say_left_out(
          fmt::format("perhaps not all of {} is traced: {}", in_quotes(word_), failed.why));
    }
    if (!refused_ || found_.points.size() > before) return added;
    if (known_) return {};
    return *refused_;
  }

  Result<Targets> finish() {
    // The tool's own words name entry and return separately; ids are shared by name.
    std::erase_if(found_.points, [&](auto& p) { return without_return_.contains(p.id); });
    // The program's table has one id for each system call.
    std::map<std::pair<int, std::uint64_t>, std::uint32_t> of_call;
    for (auto& p : found_.points) {
      if (!is_call(p.kind)) continue;
      auto [known, fresh] = of_call.try_emplace({p.kind, p.address}, p.id);
      if (!fresh && known->second != p.id)
        return Error{fmt::format("two words name the {} of one system call: {}",
                                 p.kind == TargetPoint::call_entry ? "entry" : "return",
                                 printable(found_.names.at(p.id))),
                     "they can be traced by one word only", "join them, or run two tools", kUsage};
    }
    for (std::size_t id = EXPRESSION_PAIRED; id < found_.paired.size(); id++)
      if (found_.paired[id])
        return Error{"too many functions with $latency or $entry",
                     fmt::format("there is room for {}", EXPRESSION_PAIRED), "name fewer", kUsage};
    for (auto& [reason, n] : left_out_) found_.left_out.push_back(fmt::format("{} {}", n, reason));
    return std::move(found_);
  }

 private:
  Result<void> add_word(const TargetWord& word) {
    auto pattern = NamePattern::make(word.name, config_.given("regexp"));
    if (!pattern) return pattern.error();
    if (auto r = check_call(word); !r) return r;
    if (word.kind == TargetWord::tracepoint) return add_tracepoints(word, *pattern);
    const bool usdt = word.kind == TargetWord::usdt;
    if (!usdt && (word.place.empty() || is_module(word.place))) return add_kernel(word, *pattern);
    auto add = [&](auto& w) { return usdt ? add_usdt(w, *pattern) : add_user(w, *pattern); };
    auto added = add(word);
    auto merged = merged_library(word.place);
    if (added || known_ || merged.empty() || added.error().status != kUsage) return added;
    auto in_c = word;
    in_c.place = "c";
    if (word.provider == "lib" + merged) in_c.provider = "libc";
    added = add(in_c);
    auto since = fmt::format("glibc has lib{} in libc since 2.34", merged);
    if (added)
      say_left_out(fmt::format("{} is found in libc: {}", in_quotes(word_), since));
    else
      added.error().hint =
          usdt ? fmt::format("{}; name functions: c:{}", since, printable(word.name)) : since;
    return added;
  }

  /// "pthread" of "/usr/lib/libpthread.so.0"; empty: it is no library that glibc 2.34 made part of
  /// its libc. Its file is then empty, or not there.
  static std::string merged_library(std::string_view place) {
    auto name = place.substr(place.rfind('/') + 1);
    if (name.starts_with("lib")) name.remove_prefix(3);
    name = name.substr(0, name.find_first_of(".-"));
    for (auto library : {"pthread", "dl", "rt", "util", "anl"})
      if (name == library) return library;
    return {};
  }

  std::uint32_t id_of(const std::string& name, std::string key) {
    if (by_word_) key.insert(0, std::to_string(number_) + " ");
    auto [known, fresh] =
        ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(found_.names.size()));
    if (fresh) {
      found_.names.push_back(name);
      found_.words.push_back(number_ - 1);
      found_.paired.push_back(pairs());
    }
    return known->second;
  }

  /// True if entries of the word's functions are traced to match their returns.
  bool pairs() const { return number_ <= paired_.size() && paired_[number_ - 1]; }

  /// Refuses words that do not have an entry and a return in one place.
  Result<void> check_call(const TargetWord& word) const {
    if (!calls_) return {};
    auto wrong = [&](std::string why, std::string hint) {
      return Error{fmt::format("{} is no call", in_quotes(word_)), std::move(why), std::move(hint),
                   kUsage};
    };
    if (word.kind == TargetWord::tracepoint)
      return wrong("a tracepoint is one place, without a return",
                   word.place == "syscalls" ? "name the system call: sys_NAME"
                                            : "name functions, or system calls (sys_NAME)");
    if (word.kind == TargetWord::usdt)
      return wrong("a USDT probe is one place, without a return",
                   "name the function (LIBRARY:FUNCTION)");
    if (word.at_return)
      return wrong("its entry and its return are traced", "leave out the r before the colon");
    if (word.is_place())
      return wrong("a place within a function has no return", "name the function alone");
    return {};
  }

  /// Attaches a place once if several words name it; for calls, the first name is used.
  void place(const std::string& name, TargetPoint point) {
    matched_.insert(name);
    const bool by_name = !calls_ || !(point.address || point.file);
    const std::array<std::uint64_t, 5> where{
        by_word_ ? number_ : 0, static_cast<std::uint64_t>(point.kind), point.address,
        reinterpret_cast<std::uintptr_t>(point.file.get()), point.offset};
    std::string key(reinterpret_cast<const char*>(where.data()), sizeof where);
    if (by_name) key += point.symbol;
    if (!places_.insert(key).second) return;
    point.probed.offset = point.offset;
    if (!point.within &&
        (point.kind == TargetPoint::user || point.kind == TargetPoint::user_return))
      point.probed =
          returns_.code(point.file).entry_place(point.offset, entry_reads(point), !calls_);
    if (!bears_probe(point)) return;
    auto ends = returns_of(point);
    if (ends.empty() && !known_) return;
    const bool alone = by_word_ && point.kind == TargetPoint::usdt;
    point.id = id_of(name, alone ? key : name);
    if (auto begin = kShapes.at(point.kind).entry; begin != point.kind && found_.paired[point.id]) {
      auto entry = point;
      entry.kind = begin;
      found_.points.push_back(std::move(entry));
    }
    if (ends.empty()) without_return_.insert(point.id);
    for (auto& end : ends) {
      end.id = point.id;
      found_.points.push_back(std::move(end));
    }
    if (calls_) found_.points.push_back(std::move(point));
  }

  /// The kernel's return probe finds the return address by the stack pointer.
  EntryReads entry_reads(const TargetPoint& point) const {
    if (point.kind == TargetPoint::user_return && !pairs()) return reads_stack(config_, 0);
    return reads_ ? reads_(config_, number_ - 1) : EntryReads();
  }

  /// False if a probe there would do harm or have no effect.
  bool bears_probe(const TargetPoint& point) {
    if (point.kind != TargetPoint::user && point.kind != TargetPoint::usdt) return true;
    std::array<std::uint8_t, 16> code{};
    symbols::CodeBytes read(
        code.data(), read_bytes(point.file->get(), point.probed.offset, code.data(), code.size()));
    const bool begins =
        point.kind == TargetPoint::user && !point.within && point.probed.offset == point.offset;
    auto why = place_refusal(read.first(symbols::instruction_bytes(read)), begins);
    if (why.empty()) return true;
    refused_ = cannot_trace(why, "name the function, or another place");
    leave_out(fmt::format("places left out ({})", why), 1);
    return false;
  }

  /// The places of a return, or of a call's end; other kinds return the point itself. Empty: it
  /// cannot be probed.
  std::vector<TargetPoint> returns_of(const TargetPoint& point) {
    auto end = point;
    if (calls_) end.kind = kShapes.at(point.kind).end;
    if (end.kind != TargetPoint::user_return) return {end};
    const bool timed = calls_ || pairs();
    auto probe = timed && returns_.code(end.file).is_go()
                     ? ReturnProbe{.refusal = "a goroutine may return on another thread",
                                   .hint = "probe its entry, or trace r:FILE:FUNCTION"}
                     : returns_.of(end.file, end.symbol, end.offset, timed || known_);
    if (!probe.refusal.empty()) {
      refused_ = cannot_probe_return(end.symbol, probe);
      if (known_)
        say_left_out(
            fmt::format("not traced: {}, as its return cannot be probed without harm ({}); "
                        "see --return-trampoline",
                        printable(end.symbol), probe.refusal));
      else
        leave_out(fmt::format("user functions left out (returns: {})", probe.refusal), 1);
      return {};
    }
    if (probe.offsets.empty()) return {end};
    std::vector<TargetPoint> ends;
    for (auto offset : probe.offsets) {
      end.offset = end.probed.offset = offset;
      end.probed.form = returns_.code(end.file).form_at(offset);
      end.instruction = true;
      ends.push_back(end);
    }
    return ends;
  }

  void leave_out(std::string_view reason, std::size_t n) {
    if (n) left_out_[std::string(reason)] += n;
  }

  void say_left_out(std::string words) {
    auto& all = found_.left_out;
    if (std::ranges::find(all, words) == all.end()) all.push_back(std::move(words));
  }

  Error nothing(std::string why, std::string hint) const {
    return {fmt::format("{} matches nothing", in_quotes(word_)), std::move(why), std::move(hint),
            kUsage};
  }

  static bool is_module(std::string_view name) {
    if (name.find('/') != name.npos || name.find(".so") != name.npos) return false;
    // Built-in parts of the kernel have no such file.
    return read_file(fmt::format("/sys/module/{}/coresize", name), 64).has_value();
  }

  // ---- kernel functions ----

  Result<void> add_kernel(const TargetWord& word, const NamePattern& pattern) {
    auto call = call_part(word.name);
    auto refusal = kernel_.kprobe_refusal(kAnyFunction);
    const bool no_kprobes = refusal.starts_with("this kernel");
    if (no_kprobes && !word.is_place() && kernel_.kprobe_multi_refusal().empty()) refusal.clear();
    if (word.is_place()) call = {};
    if (!refusal.empty()) {
      if (!call.empty() && word.place.empty()) return add_calls(word, call);
      return Error{
          fmt::format("this kernel offers no way to trace functions such as {}", in_quotes(word_)),
          refusal, alternatives(word), kUnsupported};
    }
    static const auto lists = FunctionLists::of_this_kernel();
    auto found = kernel_functions(lists, word.place,
                                  [&](const char* name) { return pattern.matches(name); });
    if (found.functions.empty()) {
      if (!call.empty() && word.place.empty()) return add_calls(word, call);
      if (!found.left_out.empty()) {
        std::string why;
        for (auto& [reason, n] : found.left_out)
          why += fmt::format("{}{} {}", why.empty() ? "" : ", ", n, reason);
        return none_traceable(why, or_replaced(word, {}));
      }
      return nothing(word.place.empty()
                         ? "there is no such function in the kernel or its modules"
                         : fmt::format("there is no such function in module {}", word.place),
                     or_replaced(word, suggest(word.name, function_names(lists))));
    }
    if (word.is_place()) return add_kernel_place(word, found.functions, lists);
    std::set<std::string_view> shared;
    for (std::size_t i = 1; i < found.functions.size(); i++)
      if (found.functions[i].name == found.functions[i - 1].name)
        shared.insert(found.functions[i].name);
    leave_out("names that several functions have: all are traced, and counted together",
              shared.size());
    for (auto& f : found.functions)
      place(f.name, {.kind = word.at_return ? TargetPoint::kernel_return : TargetPoint::kernel,
                     .symbol = f.name,
                     .module = f.module,
                     .address = f.address});
    for (auto& [reason, n] : found.left_out)
      leave_out(fmt::format("matching functions left out ({})", reason), n);
    return {};
  }

  Result<void> add_kernel_place(const TargetWord& word, const std::vector<KernelFunction>& all,
                                const FunctionLists& lists) {
    auto& f = all.front();
    if (all.size() > 1)
      return no_place(fmt::format("{} functions have this name", all.size()),
                      "a module tells them apart: MODULE:FUNCTION+OFFSET");
    if (!f.address)
      return cannot_trace("the addresses of the kernel's functions are hidden",
                          "sysctl kernel.kptr_restrict=1 shows them to root");
    auto end = next_symbol(lists, f.address);
    if (end && word.within >= end - f.address)
      return no_place(fmt::format("{} has {:#x} bytes", f.name, end - f.address), {});
    auto name = fmt::format("{}+{:#x}", f.name, word.within);
    place(name, {.kind = TargetPoint::kernel,
                 .symbol = f.name,
                 .module = f.module,
                 .address = f.address + word.within,
                 .within = true});
    return {};
  }

  Error cannot_trace(std::string why, std::string hint, int status = kUnsupported) const {
    return {fmt::format("cannot trace {}", in_quotes(word_)), std::move(why), std::move(hint),
            status};
  }

  /// None of the functions that the word names can be traced.
  Error none_traceable(std::string why, std::string hint) const {
    return {fmt::format("what {} names cannot be traced", in_quotes(word_)), std::move(why),
            std::move(hint), kUnsupported};
  }

  Error no_place(std::string why, std::string hint) const {
    return {fmt::format("{} names no place in a function", in_quotes(word_)), std::move(why),
            std::move(hint), kUsage};
  }

  /// The tracepoint in place of a function of this name, else this hint.
  static std::string or_replaced(const TargetWord& word, std::string hint) {
    auto [tracepoint, why] = replacement(word.name);
    return tracepoint.empty() ? std::move(hint)
                              : fmt::format("use {} (the function: {})", tracepoint, why);
  }

  static std::string alternatives(const TargetWord& word) {
    if (auto instead = replacement(word.name).tracepoint; !instead.empty())
      return fmt::format("use {}, which is reached there", instead);
    auto near = calls_like(word.name);
    std::ranges::move(tracepoints_like(word.name), std::back_inserter(near));
    std::string text = near.empty() ? "name tracepoints (t:CATEGORY:EVENT), system calls "
                                      "(sys_NAME), or user functions (LIBRARY:FUNCTION)"
                                    : fmt::format("can be traced: {}", fmt::join(near, ", "));
    if (auto word_for = found_by(word.name); !word_for.empty())
      text += fmt::format("; coretap find {} lists tools", word_for);
    return text;
  }

  // ---- system calls and tracepoints ----

  Result<void> add_calls(const TargetWord& word, std::string_view part) {
    auto pattern = NamePattern::make(part, config_.given("regexp"));
    if (!pattern) return pattern.error();
    add_matching_calls(*pattern, word.at_return, {}, "");
    if (!matched_.empty()) return {};
    std::vector<std::string> known;
    for (auto& call : all_syscalls())
      if (!call.compat) known.push_back("sys_" + call.name);
    return nothing("there is no such system call", suggest("sys_" + std::string(part), known));
  }

  /// `named`: only calls that are events of this kernel with that name.
  void add_matching_calls(const NamePattern& pattern, bool at_return,
                          const std::set<std::string>& named, std::string_view prefix) {
    for (auto& call : all_syscalls()) {
      if (call.compat) continue;
      auto name = call.name;
      if (!prefix.empty())
        for (auto& [user, kernel] : kCallNames)
          if (name == user && !named.contains(fmt::format("{}{}", prefix, name))) name = kernel;
      auto full = fmt::format("{}{}", prefix, name);
      if (!pattern.matches(prefix.empty() ? name : full)) continue;
      if (!prefix.empty() && !named.empty() && !named.contains(full)) continue;
      place(prefix.empty() ? "sys_" + name : "syscalls:" + full,
            {.kind = at_return ? TargetPoint::call_end : TargetPoint::call_entry,
             .symbol = call.name,
             .address = static_cast<std::uint64_t>(call.number)});
    }
  }

  Result<void> add_tracepoints(const TargetWord& word, const NamePattern& pattern) {
    auto category = NamePattern::make(word.place, config_.given("regexp"));
    if (!category) return category.error();
    auto& events = kernel_events();
    if (category->matches("syscalls")) {
      std::set<std::string> named;
      if (events)
        for (auto& e : *events)
          if (e.starts_with("syscalls:")) named.insert(e.substr(e.find(':') + 1));
      add_matching_calls(pattern, false, named, "sys_enter_");
      add_matching_calls(pattern, true, named, "sys_exit_");
      if (category->exact() && !matched_.empty()) return {};
    }
    if (!events) return events.error();
    const auto seen = matched_;
    for (auto& event : *events) {
      auto colon = event.find(':');
      auto of = event.substr(0, colon), name = event.substr(colon + 1);
      if (!category->matches(of) || !pattern.matches(name) || seen.contains(event)) continue;
      add_event(of, name, event);
    }
    if (!matched_.empty()) return {};
    auto wanted = fmt::format("t:{}:{}", word.place, word.name);
    std::vector<std::string> words;  // as typed
    for (auto& event : *events) words.push_back("t:" + event);
    return nothing("this kernel has no such tracepoint", suggest(wanted, words));
  }

  void add_event(const std::string& category, const std::string& name, const std::string& event) {
    // Events of modules, and those without their own tracepoint, use perf events.
    const bool raw = !by_word_ && category != "syscalls" && kernel_.tracepoint_args(name) >= 0;
    if (raw)
      place(event, {.kind = TargetPoint::tracepoint, .symbol = name});
    else
      place(event, {.kind = TargetPoint::event, .symbol = category + "/" + name});
  }

  // ---- files ----

  /// The files that a word's place matches.
  Result<const ProbeFinder::Files*> files_of(const TargetWord& word) {
    const bool known = !config_.probes.known.empty() && !word.place.empty() && word.place != "c";
    for (auto& name : known ? std::vector{word.place} : files_by_name(word.place)) {
      auto& files = finder_.files(name, !known && name != "libc");
      if (!files && files.error().status == kFailed) return files.error();
      if (files) {
        if (std::ranges::any_of(files->files, is_native)) return &*files;
        return cannot_trace(fmt::format("{} is 32-bit, or for another processor",
                                        printable(files->files.front().path)),
                            "functions and probes of 64-bit programs can be traced", kUsage);
      }
    }
    Error error{
        {},
        fmt::format("there is no kernel module, library or program {}", printable(word.place)),
        "give its path",
        kUsage};
    if (auto& pids = config_.tasks.pids; !pids.empty()) {
      auto names = finder_.names_of_processes();
      error.why = fmt::format("process{} {} map{} no library named {}, nor run{} such a program",
                              pids.size() > 1 ? "es" : "", fmt::join(pids, ", "),
                              pids.size() > 1 ? "" : "s", printable(word.place),
                              pids.size() > 1 ? "" : "s");
      error.hint = suggest(word.place, names);
      if (names.size() > kMostInHint) names.resize(kMostInHint);
      if (error.hint.empty() && !names.empty())
        error.hint = printable(fmt::format("there are: {}", fmt::join(names, ", ")));
    }
    if (word.place.find('/') != word.place.npos) error = finder_.files(word.place).error();
    error.what = fmt::format("{} names no file here", in_quotes(word_));
    return error;
  }

  /// True also if it is not an ELF file, or cannot be read: that is reported elsewhere.
  static bool is_native(const ProbeFinder::File& file) {
    const ReadFailures reported_later;
    auto elf = symbols::open_elf(file.fd->get());
    return !elf || symbols::is_native(elf.get());
  }

  Result<void> add_user(const TargetWord& word, const NamePattern& pattern) {
    if (auto works = uprobes_work(); !works)
      return cannot_trace(works.error().why, works.error().hint, works.error().status);
    auto files = files_of(word);
    if (!files) return files.error();
    if (word.address) return add_address(**files, *word.address);
    std::size_t indirect = 0, stripped = 0, foreign = 0;
    std::optional<Error> not_there;  // for a place within a function
    std::string names;
    for (auto& file : (*files)->files) {
      failures_->in(file.path);
      auto functions = symbols::find_functions(
          file.fd->get(), [&](const char* name) { return pattern.matches(name); }, kMost);
      bool written = false;  // pattern matches the source name; the symbol is mangled (C++, Rust)
      if (functions.functions.empty() && !functions.indirect) {
        const std::string part(config_.given("regexp") ? ""
                                                       : symbols::part_in_symbol(pattern.text()));
        auto as_written = [&](const char* name) {
          // Code that rarely runs may be split off (".cold"): it is never called.
          return symbols::is_mangled(name) && strstr(name, part.c_str()) &&
                 !strstr(name, ".cold") &&
                 std::ranges::any_of(symbols::names_in_source(name),
                                     [&](auto& written) { return pattern.matches(written); });
        };
        auto found = symbols::find_functions(file.fd->get(), as_written, kMost);
        written = !found.functions.empty();
        if (written) functions = std::move(found);
      }
      for (auto& f : functions.functions) {
        auto name = written ? symbols::names_in_source(f.name).front() : f.name;
        // Parameters are long, and needed only to distinguish overloads.
        if (written && functions.functions.size() == 1) name.resize(symbols::parameters_at(name));
        if (word.within) {
          if (auto r = add_user_place(file, f.offset, word.within, name); !r) not_there = r.error();
          continue;
        }
        place(name, {.kind = word.at_return ? TargetPoint::user_return : TargetPoint::user,
                     .symbol = f.name,
                     .file = file.fd,
                     .offset = f.offset});
      }
      indirect += functions.indirect;
      stripped += functions.state == symbols::FunctionPlace::stripped;
      foreign += functions.state == symbols::FunctionPlace::foreign;
      leave_out("symbols of functions left out (not in the file's code)", functions.outside);
      leave_out("symbols of functions left out (too many in one file)", functions.beyond);
      names += (names.empty() ? "" : ", ") + printable(file.path);
    }
    leave_out("user functions left out (chosen at run time, IFUNC)", indirect);
    leave_out("files left out (no symbols)", stripped);
    leave_out("files left out (for another processor, or 32-bit)", foreign);
    for (auto& file : (*files)->left_out) say_left_out("not traced: " + file);
    if (!matched_.empty()) return {};
    if (not_there) return *not_there;
    if (indirect)
      return none_traceable("its code is chosen at run time (IFUNC)",
                            "name the functions it is chosen from");
    return nothing(fmt::format("no such function in {}{}", names, stripped ? " (stripped)" : ""),
                   suggest(word.name, names_in(**files)));
  }

  /// `name`: the function's, for display.
  Result<void> add_user_place(const ProbeFinder::File& file, std::uint64_t begin,
                              std::uint64_t within, const std::string& name) {
    auto symbols = symbols::ElfSymbols::read(file.fd->get());
    if (!symbols) return no_place("the file cannot be read", {});
    return add_code(file, symbols::place_within(file.fd->get(), *symbols, begin, within), name);
  }

  Result<void> add_address(const ProbeFinder::Files& files, std::uint64_t address) {
    auto last = no_place("no file of that name is here", {});
    bool any = false;
    for (auto& file : files.files) {
      failures_->in(file.path);
      auto symbols = is_native(file) ? symbols::ElfSymbols::read(file.fd->get()) : nullptr;
      if (!symbols) continue;
      auto at = symbols::place_at(file.fd->get(), *symbols, address,
                                  [&](auto at) { return returns_.code(file.fd).described_at(at); });
      auto added = add_code(file, at, at.function);
      any = any || added;
      if (!added) last = added.error();
    }
    if (!any) return last;
    return {};
  }

  Result<void> add_code(const ProbeFinder::File& file, const symbols::CodePlace& at,
                        const std::string& name) {
    using symbols::CodePlace;
    auto shown = printable(name);
    switch (at.state) {
      case CodePlace::found: {
        const bool within = at.within != 0;
        place(within ? fmt::format("{}+{:#x}", name, at.within) : name, {.kind = TargetPoint::user,
                                                                         .symbol = name,
                                                                         .file = file.fd,
                                                                         .offset = at.offset,
                                                                         .within = within});
        return {};
      }
      case CodePlace::nowhere:
        return no_place(
            fmt::format("no symbol of {} says which function is there, nor does .eh_frame",
                        printable(file.path)),
            {});
      case CodePlace::beyond:
        return no_place(fmt::format("{} has {:#x} bytes", shown, at.size), {});
      case CodePlace::inside:
        return no_place(fmt::format("an instruction of {} goes on there", shown),
                        fmt::format("instructions begin at {}+{:#x} and {}+{:#x}", shown,
                                    at.instruction.begin, shown, at.instruction.end));
      case CodePlace::unreadable:
        break;
    }
    return no_place(fmt::format("whether an instruction of {} begins there is not known", shown),
                    {});
  }

  static std::vector<std::string> names_in(const ProbeFinder::Files& files) {
    std::vector<std::string> known;
    for (auto& file : files.files)
      for (auto& f : symbols::find_functions(
                         file.fd->get(), [](const char*) { return true; }, kMost)
                         .functions)
        known.push_back(symbols::is_mangled(f.name) ? symbols::names_in_source(f.name)[1] : f.name);
    return known;
  }

  Result<void> add_usdt(const TargetWord& word, const NamePattern& pattern) {
    if (auto works = uprobes_work(); !works)
      return cannot_trace(works.error().why, works.error().hint, works.error().status);
    if (word.place.empty() && config_.tasks.pids.empty())
      return Error{fmt::format("{} does not say in which file", in_quotes(word_)),
                   {},
                   "name a library or program (u:LIBRARY:PROBE), or processes (--pid)",
                   kUsage};
    auto files = files_of(word);
    if (!files) return files.error();
    auto provider = NamePattern::make(word.provider.empty() ? "*" : word.provider,
                                      !word.provider.empty() && config_.given("regexp"));
    if (!provider) return provider.error();
    std::set<std::string> known;
    std::string names;
    for (auto& file : (*files)->files) {
      failures_->in(file.path);
      names += (names.empty() ? "" : ", ") + printable(file.path);
      auto notes = symbols::read_usdt(file.fd->get());
      for (auto& probe : notes.probes) {
        known.insert(probe.name);
        if (!provider->matches(probe.provider) || !pattern.matches(probe.name)) continue;
        place(probe.provider + ":" + probe.name, {.kind = TargetPoint::usdt,
                                                  .symbol = probe.name,
                                                  .file = file.fd,
                                                  .offset = probe.offset,
                                                  .semaphore = probe.semaphore,
                                                  .arguments = probe.arguments});
      }
      leave_out("USDT probes left out (not in the file's code)", notes.outside);
    }
    if (!matched_.empty()) return {};
    return nothing(fmt::format("no {}USDT probe in {}", known.empty() ? "" : "such ", names),
                   suggest(word.name, {known.begin(), known.end()}));
  }

  const bool calls_, by_word_, known_;  ///< known_: the words are those of the tool
  const std::vector<bool> paired_;      ///< by word
  const EntryReadsOf reads_;
  const Config& config_;
  Kernel& kernel_;
  ProbeFinder& finder_;
  ReturnProbes returns_;
  std::set<std::uint32_t> without_return_;  ///< ids
  std::optional<Error> refused_;            ///< why a place of the word was refused
  std::optional<ReadFailures> failures_;    ///< of the files that are read for the word
  std::string word_;
  std::size_t number_ = 0;                   ///< the word's number, from 1
  std::unordered_set<std::string> matched_;  ///< by the word, even if earlier words did, too
  Targets found_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_set<std::string> places_;
  std::map<std::string, std::size_t> left_out_;
};

}  // namespace

Hook traced(std::string_view name, TargetWords words, EntryReadsOf reads) {
  return {.name = name,
          .candidates = {{{ProgramName("target_kernel"), ProgramName("target_kernel_return"),
                           ProgramName("target_user"), ProgramName("target_user_return"),
                           ProgramName("target_usdt"), ProgramName("target_tracepoint"),
                           ProgramName("target_event"), ProgramName("target_sys_enter"),
                           ProgramName("target_sys_exit")}}},
          .targets = words,
          .reads = reads};
}

Hook traced_calls(std::string_view name, EntryReadsOf reads) {
  return {.name = name,
          .candidates = {{{ProgramName("target_kernel"), ProgramName("target_kernel_return"),
                           ProgramName("target_user"), ProgramName("target_user_return"),
                           ProgramName("target_sys_enter"), ProgramName("target_sys_exit")}}},
          .targets = words_of_command_line,
          .calls = true,
          .reads = reads};
}

Hook traced_by_word(std::string_view name, TargetWords words,
                    std::vector<bool> (*paired)(const Config&)) {
  auto hook = traced(name, words);
  std::erase(hook.candidates.front().programs, ProgramName("target_tracepoint"));
  hook.by_word = true;
  hook.paired = paired;
  hook.reads = reads_of_expressions;
  return hook;
}

Hook traced_whole(std::string_view name, TargetWords words) {
  return {.name = name,
          .candidates = {{{ProgramName("target_kernel"), ProgramName("target_kernel_return"),
                           ProgramName("target_event"), ProgramName("target_sys_enter"),
                           ProgramName("target_sys_exit")}}},
          .targets = words,
          .by_word = true};
}

std::vector<std::string> words_of_command_line(const Config& c) { return c.probes.targets; }

std::optional<TargetPoint::Kind> kind_of(std::string_view section) {
  auto* found = std::ranges::find(kShapes, section, &Shape::section);
  if (found == kShapes.end()) return {};
  return static_cast<TargetPoint::Kind>(found - kShapes.begin());
}

std::optional<TargetPoint::Kind> kind_of(const bpf_program* program) {
  if (!std::string_view(bpf_program__name(program)).starts_with("target_")) return {};
  return kind_of(bpf_program__section_name(program));
}

target_kind program_kind(TargetPoint::Kind kind) { return kShapes.at(kind).program; }

bool is_call(TargetPoint::Kind kind) {
  return kind == TargetPoint::call_entry || kind == TargetPoint::call_end;
}

std::size_t Targets::count(TargetPoint::Kind kind) const {
  return static_cast<std::size_t>(std::ranges::count(points, kind, &TargetPoint::kind));
}

Result<Targets> find_targets(const std::vector<std::string>& words, const Hook& hook,
                             const Config& config, Kernel& kernel, ProbeFinder& finder) {
  Search search(hook, config, kernel, finder);
  for (auto& word : words)
    if (auto r = search.add(word); !r) return r.error();
  return search.finish();
}

TargetMeans TargetMeans::of(Kernel& kernel, const Targets& targets) {
  TargetMeans means;
  // 82e6b1eee6a8 in 5.15
  const bool cookies = kernel.has_enumerator("bpf_func_id", "BPF_FUNC_get_attach_cookie");
  means.user_multi = probes_by_file(kernel);
  // A link to many functions can attach to their entries only.
  const bool within = std::ranges::any_of(
      targets.points, [](auto& p) { return p.kind == TargetPoint::kernel && p.within; });
  means.kernel_multi =
      !within &&
      targets.count(TargetPoint::kernel) + targets.count(TargetPoint::kernel_return) > 0 &&
      kernel.kprobe_multi_refusal().empty();
  means.copied.fill(!cookies);
  // 68ca5d4eebb8 in 6.10
  means.copied[TARGET_TRACEPOINT] = !kernel.has_field("bpf_raw_tp_link", "cookie");
  return means;
}

bool TargetMeans::one_link(TargetPoint::Kind kind) const {
  if (is_call(kind)) return true;
  auto program = program_kind(kind);
  return program == TARGET_KERNEL ? kernel_multi : program == TARGET_USER && user_multi;
}

std::vector<std::string> target_words(const Targets& targets, const TargetMeans& means) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kShapes.size(); i++) {
    auto kind = static_cast<TargetPoint::Kind>(i);
    if (auto n = targets.count(kind))
      words.push_back(fmt::format("{}: {}{}", kShapes[i].noun, n,
                                  means.one_link(kind) ? "" : " (attached one by one)"));
  }
  return words;
}

std::string stepped_words(const Targets& targets) {
  std::size_t probes = 0, stepped = 0;
  for (auto& p : targets.points) {
    probes += p.file != nullptr;
    stepped += p.file && is_stepped(p.probed.form);
  }
  if (!stepped) return {};
  const auto ns = probe_ns(symbols::EntryStep::stepped);
  return fmt::format(
      "{} of {} probes of user code are on instructions that the kernel executes in single-step "
      "mode{}",
      stepped, probes, ns > 0 ? fmt::format(": {:.1f} us for each hit here", ns / 1e3) : "");
}

std::string list_targets(const Targets& targets) {
  std::string text;
  for (auto& p : targets.points) {
    text += fmt::format("  {} ({})", printable(targets.names.at(p.id)),
                        split_section(kShapes.at(p.kind).section).target);
    if (p.file)
      text += fmt::format(" at {:#x} of the file{}", p.probed.offset,
                          is_stepped(p.probed.form) ? ", in single-step mode" : "");
    text += '\n';
  }
  return text;
}

Result<void> check_number(const Targets& targets, const TargetMeans& means, const Config& config) {
  std::size_t single = 0;
  for (auto& p : targets.points) single += !means.one_link(p.kind);
  auto most = config.probes.most ? config.probes.most : kMostSingle;
  if (single <= most) return {};
  return Error{fmt::format("{} places would have to be attached one by one", single),
               fmt::format("no more than {} are, since that takes long on this kernel", most),
               fmt::format("name fewer, or give --max-probes {}", single), kUsage};
}

}  // namespace coretap
