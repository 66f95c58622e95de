// coretap bpflist: lists BPF objects from processes' descriptors and the kernel's ids.
#include "lists/bpf_objects.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "coretap/fd.hpp"
#include "coretap/json.hpp"
#include "coretap/options.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/btf.hpp"
#include "lists/lists.hpp"
#include "lists/verbosity.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPath = 4096;
constexpr std::string_view kNobody = "-";

/// The kind of object that a descriptor's link names; none: not a BPF object.
std::optional<BpfKind> kind_of(std::string_view link) {
  constexpr std::pair<std::string_view, BpfKind> kLinks[] = {
      {"anon_inode:bpf-prog", BpfKind::prog},
      {"anon_inode:bpf-map", BpfKind::map},
      {"anon_inode:bpf_link", BpfKind::link},
      {"anon_inode:[bpf_link]", BpfKind::link}};
  for (auto& [name, kind] : kLinks)
    if (name == link) return kind;
  return {};
}

std::string keyed(BpfKind kind) {
  return fmt::format("{}_id", kBpfKinds[static_cast<std::size_t>(kind)]);
}

/// A process's perf event with a program attached to it.
struct Attachment {
  std::uint32_t pid, prog;
  std::string_view type;
  std::string place;

  std::string words() const { return fmt::format("{}/{}", type, place); }
};

std::vector<Attachment> attachments(const BpfHolders& all) {
  static constexpr std::string_view kTypes[] = {"raw_tp",    "tracepoint", "kprobe",
                                                "kretprobe", "uprobe",     "uretprobe"};
  std::vector<Attachment> found;
  std::string text(kMostPath, '\0');
  for (auto& holder : all.holders)
    for (auto fd : holder.perf_events) {
      __u32 bytes = kMostPath, prog = 0, type = 0;
      __u64 offset = 0, address = 0;
      if (bpf_task_fd_query(static_cast<int>(holder.pid), static_cast<int>(fd), 0, text.data(),
                            &bytes, &prog, &type, &offset, &address) != 0 ||
          type >= std::size(kTypes))
        continue;
      Attachment a{holder.pid, prog, kTypes[type], text.substr(0, text.find('\0'))};
      if (a.place.empty()) a.place = fmt::format("{:#x}", address);
      if (offset) a.place += fmt::format("+{:#x}", offset);
      found.push_back(std::move(a));
    }
  return found;
}

/// The kernel's description of an object.
struct Details {
  std::string type, name, attach;
  std::uint64_t memory_bytes = 0, runs = 0, run_time_ns = 0, missed = 0;
  std::uint32_t prog = 0;                                     ///< program of a link
  std::uint32_t key_bytes = 0, value_bytes = 0, entries = 0;  ///< of a map
};

template <class Name>
std::string type_name(Name name, std::uint32_t type) {
  auto* text = name(type);
  return text ? text : fmt::format("type {}", type);
}

class Objects {
 public:
  /// Reads all ids. False, with errno: they cannot be read.
  bool read_ids() {
    int (*next[])(__u32, __u32*) = {bpf_link_get_next_id, bpf_map_get_next_id,
                                    bpf_prog_get_next_id};
    for (std::size_t kind = 0; kind < std::size(next); kind++) {
      __u32 id = 0;
      while (next[kind](id, &id) == 0) ids.insert({static_cast<BpfKind>(kind), id});
      if (errno != ENOENT) return false;
    }
    return true;
  }

  /// False: the object no longer exists.
  bool describe(BpfId object, Details& d) {
    int (*by_id[])(__u32) = {bpf_link_get_fd_by_id, bpf_map_get_fd_by_id, bpf_prog_get_fd_by_id};
    Fd fd(by_id[static_cast<std::size_t>(object.kind)](object.id));
    if (!fd) return false;
    auto info = read_keyed(fmt::format("/proc/self/fdinfo/{}", fd.get()), "memlock");
    d.memory_bytes = static_cast<std::uint64_t>(info.value_or(0));
    switch (object.kind) {
      case BpfKind::prog:
        return describe_prog(fd.get(), d);
      case BpfKind::map:
        return describe_map(fd.get(), d);
      case BpfKind::link:
        return describe_link(fd.get(), d);
    }
    return false;
  }

  std::set<BpfId> ids;

 private:
  template <class Info>
  static bool get(int fd, Info& info) {
    __u32 bytes = sizeof info;
    return bpf_obj_get_info_by_fd(fd, &info, &bytes) == 0;
  }

  bool describe_prog(int fd, Details& d) {
    bpf_prog_info info{};
    if (!get(fd, info)) return false;
    d.type =
        type_name([](auto t) { return libbpf_bpf_prog_type_str(bpf_prog_type(t)); }, info.type);
    d.name = info.name;
    d.runs = info.run_cnt;
    d.run_time_ns = info.run_time_ns;
    d.missed = info.recursion_misses;
    d.attach = function_of(info.attach_btf_obj_id, info.attach_btf_id);
    return true;
  }

  static bool describe_map(int fd, Details& d) {
    bpf_map_info info{};
    if (!get(fd, info)) return false;
    d.type = type_name([](auto t) { return libbpf_bpf_map_type_str(bpf_map_type(t)); }, info.type);
    d.name = info.name;
    d.key_bytes = info.key_size;
    d.value_bytes = info.value_size;
    d.entries = info.max_entries;
    return true;
  }

  static std::string link_type(std::uint32_t type) {
    // libbpf 1.1 lacks names for these.
    if (type == kLinkTcx) return "tcx";
    if (type == kLinkUprobeMulti) return "uprobe_multi";
    if (type == kLinkNetkit) return "netkit";
    return type_name([](auto t) { return libbpf_bpf_link_type_str(bpf_link_type(t)); }, type);
  }

  bool describe_link(int fd, Details& d) {
    LinkInfo info{};
    if (!get(fd, info)) return false;
    d.type = link_type(info.type);
    d.prog = info.program;
    Details prog;
    if (!describe({BpfKind::prog, d.prog}, prog)) prog = {};
    d.name = prog.name;
    d.attach = place_of(fd, info, prog);
    return true;
  }

  static std::string attach_word(std::uint32_t type) {
    constexpr std::pair<std::uint32_t, const char*> kWords[] = {{BPF_TRACE_RAW_TP, "tp_btf"},
                                                                {BPF_TRACE_FENTRY, "fentry"},
                                                                {BPF_TRACE_FEXIT, "fexit"},
                                                                {BPF_MODIFY_RETURN, "fmod_ret"},
                                                                {BPF_LSM_MAC, "lsm"}};
    for (auto& [known, word] : kWords)
      if (known == type) return word;
    return type_name([](auto t) { return libbpf_bpf_attach_type_str(bpf_attach_type(t)); }, type);
  }

  /// Repeats the query, with a buffer for the text.
  std::string text_of(int fd, LinkInfo info, std::uint64_t& pointer, std::uint32_t& bytes,
                      LinkInfo& place) {
    std::string text(kMostPath, '\0');
    auto type = info.type, perf = info.of.perf_event.type;
    place = {};
    place.type = type;
    if (type == kLinkPerfEvent) place.of.perf_event.type = perf;
    pointer = reinterpret_cast<std::uint64_t>(text.data());
    bytes = kMostPath;
    return get(fd, place) ? text.substr(0, text.find('\0')) : std::string();
  }

  std::string place_of(int fd, const LinkInfo& info, const Details& prog) {
    LinkInfo more;
    switch (info.type) {
      case BPF_LINK_TYPE_RAW_TRACEPOINT:
        return "raw_tp/" + text_of(fd, info, more.of.name.text, more.of.name.bytes, more);
      case BPF_LINK_TYPE_ITER:
        return "iter/" + text_of(fd, info, more.of.name.text, more.of.name.bytes, more);
      case BPF_LINK_TYPE_TRACING: {
        auto word = attach_word(info.of.tracing.attach_type);
        return prog.attach.empty() ? word : fmt::format("{}/{}", word, prog.attach);
      }
      case BPF_LINK_TYPE_CGROUP:
        return fmt::format("{}/{}", attach_word(info.of.cgroup.attach_type), info.of.cgroup.id);
      case BPF_LINK_TYPE_NETNS:
        return fmt::format("netns/{}", info.of.number);
      case BPF_LINK_TYPE_STRUCT_OPS:
        return fmt::format("map/{}", info.of.number);
      case kLinkKprobeMulti:
        return fmt::format("kprobe.multi/{}", functions(info.of.kprobe_multi.count));
      case kLinkPerfEvent:
        return perf_place(fd, info);
      case kLinkUprobeMulti: {
        auto count = info.of.uprobe_multi.count;
        auto path =
            text_of(fd, info, more.of.uprobe_multi.path, more.of.uprobe_multi.path_bytes, more);
        return fmt::format("uprobe.multi/{}{}{}", path, path.empty() ? "" : ":", functions(count));
      }
      case BPF_LINK_TYPE_XDP:
      case kLinkTcx:
      case kLinkNetkit: {
        char name[IF_NAMESIZE];
        return if_indextoname(info.of.number, name) ? name
                                                    : fmt::format("device {}", info.of.number);
      }
      default:
        return {};
    }
  }

  static std::string functions(std::uint32_t count) {
    if (count == 1) return "1 function";
    return count ? fmt::format("{} functions", count) : "functions";
  }

  std::string perf_place(int fd, const LinkInfo& info) {
    // enum bpf_perf_event_type, by number.
    static constexpr std::string_view kTypes[] = {"",          "uprobe",     "uretprobe", "kprobe",
                                                  "kretprobe", "tracepoint", "perf_event"};
    auto type = info.of.perf_event.type;
    if (type == 0 || type >= std::size(kTypes)) return {};
    if (type + 1 == std::size(kTypes)) return std::string(kTypes[type]);
    LinkInfo more;
    auto text =
        text_of(fd, info, more.of.perf_event.function, more.of.perf_event.function_bytes, more);
    if (text.empty() && more.of.perf_event.address)
      text = fmt::format("{:#x}", more.of.perf_event.address);
    auto offset = type + 2 == std::size(kTypes) ? 0 : more.of.perf_event.offset;
    return fmt::format("{}/{}{}", kTypes[type], text,
                       offset ? fmt::format("+{:#x}", offset) : std::string());
  }

  /// Name of a type of the kernel or a module by its id, without the prefix of tracepoints.
  std::string function_of(std::uint32_t object, std::uint32_t type) {
    if (!object || !type) return {};
    auto known = files_.find(object);
    if (known == files_.end()) {
      std::string name(64, '\0');
      bpf_btf_info info{};
      info.name = reinterpret_cast<__u64>(name.data());
      info.name_len = static_cast<__u32>(name.size());
      Fd fd(bpf_btf_get_fd_by_id(object));
      known = files_.emplace(object, fd && get(fd.get(), info) ? name.c_str() : "").first;
    }
    if (known->second != "vmlinux") return known->second;
    if (!types_.is_open() && !types_.open()) return {};
    auto* found = types_.type(type);
    auto name = found ? types_.name(found->name_off) : std::string_view();
    if (name.starts_with("btf_trace_")) name.remove_prefix(strlen("btf_trace_"));
    return std::string(name);
  }

  Btf types_;
  std::map<std::uint32_t, std::string> files_;  ///< names of BTF objects, by id
};

/// Prints notes about objects missing from the list.
void notes(const BpfHolders& held, bool ids) {
  if (held.unreadable)
    list_note(kBpflist.name,
              fmt::format("the descriptors of {} processes cannot be read: run as root",
                          held.unreadable));
  if (!ids)
    list_note(kBpflist.name,
              "objects that no process holds are not counted: that needs CAP_SYS_ADMIN");
}

std::string pid_words(const BpfHolder* holder) {
  return holder ? std::to_string(holder->pid) : std::string(kNobody);
}

void add_holder(JsonLine& line, const BpfHolder* holder) {
  if (holder)
    line.number("pid", holder->pid).text("comm", holder->comm);
  else
    line.key("pid").null().key("comm").null();
}

// ---- counts ----

std::string count_row(std::string_view pid, std::string_view comm, std::string_view type,
                      std::size_t count) {
  return fmt::format("{:<7} {:<16} {:<10} {}", pid, comm, type, count);
}

/// Returns the number of rows.
std::size_t print_counts(Sink& out, const Config& config, const BpfHolders& held,
                         const std::set<BpfId>& alone) {
  const bool json = config.given("json");
  const int level = config.own<Verbosity>().level;
  auto attached = level ? attachments(held) : std::vector<Attachment>();
  std::size_t rows = 0;
  auto row = [&](const BpfHolder* holder, std::string_view type, std::size_t count) {
    if (!count) return;
    if (!rows++ && !json) out.title("PID     COMM             TYPE       COUNT");
    if (json) {
      JsonLine line("count", "bpflist");
      add_holder(line, holder);
      out.line(line.text("kind", type).number("count", count).finish());
    } else {
      out.line(
          count_row(pid_words(holder), holder ? printable(holder->comm) : kNobody, type, count));
    }
  };
  auto each_kind = [&](const BpfHolder* holder, const std::set<BpfId>& objects) {
    for (std::size_t kind = 0; kind < kBpfKinds.size(); kind++)
      row(holder, kBpfKinds[kind],
          static_cast<std::size_t>(std::count_if(objects.begin(), objects.end(), [&](auto& o) {
            return static_cast<std::size_t>(o.kind) == kind;
          })));
  };
  for (auto& holder : held.holders) {
    each_kind(&holder, holder.objects);
    std::map<std::string_view, std::size_t> types;
    for (auto& a : attached)
      if (a.pid == holder.pid) types[a.type]++;
    for (auto& [type, count] : types) {
      row(&holder, type, count);
      for (auto& a : attached)
        if (level > 1 && !json && a.pid == holder.pid && a.type == type)
          out.line(fmt::format("        {}", printable(a.place)));
    }
  }
  each_kind(nullptr, alone);
  return rows;
}

// ---- the list ----

void print_object(Sink& out, bool json, bool measured, const BpfHolder* holder, BpfId object,
                  const Details& d) {
  const bool runs = object.kind == BpfKind::prog && (measured || d.runs);
  auto kind = kBpfKinds[static_cast<std::size_t>(object.kind)];
  if (!json) {
    auto number = [](bool there, std::uint64_t n) {
      return there ? std::to_string(n) : std::string(kNobody);
    };
    out.line(trimmed(fmt::format(
        "{:<7} {:<16} {:<4} {:<6} {:<16} {:<16} {:>9} {:>10} {:>7}  {}", pid_words(holder),
        holder ? printable(holder->comm) : kNobody, kind, object.id, d.type, printable(d.name),
        number(d.memory_bytes, d.memory_bytes), number(runs, d.runs),
        number(runs && d.runs, d.runs ? d.run_time_ns / d.runs : 0), printable(d.attach))));
    return;
  }
  JsonLine line(kind, "bpflist");
  add_holder(line, holder);
  line.number("id", object.id).text("kind", d.type).text("name", d.name);
  if (object.kind != BpfKind::link) line.number("memory_bytes", d.memory_bytes);
  if (object.kind != BpfKind::map) line.text("attach_point", d.attach);
  if (object.kind == BpfKind::link) line.number("prog_id", d.prog);
  if (object.kind == BpfKind::map)
    line.number("key_bytes", d.key_bytes)
        .number("value_bytes", d.value_bytes)
        .number("max_entries", d.entries);
  if (object.kind == BpfKind::prog) {
    line.number_if(runs, "runs", d.runs);
    line.number_if(runs, "run_time_ns", d.run_time_ns);
    line.number_if(d.runs, "average_ns", d.run_time_ns / std::max<std::uint64_t>(d.runs, 1));
    line.number("recursion_misses", d.missed);
  }
  out.line(line.finish());
}

std::size_t print_list(Sink& out, const Config& config, const BpfHolders& held,
                       const std::set<BpfId>& alone, Objects& objects) {
  const bool json = config.given("json");
  const bool measured = read_number("/proc/sys/kernel/bpf_stats_enabled").value_or(0) != 0;
  // Without links, attach points are known only for perf events held by processes.
  std::map<std::uint32_t, std::string> places;
  for (auto& a : attachments(held)) {
    auto [known, fresh] = places.emplace(a.prog, a.words());
    if (!fresh) known->second += ", " + a.words();
  }
  std::size_t rows = 0;
  auto show = [&](const BpfHolder* holder, const std::set<BpfId>& all) {
    for (auto& object : all) {
      Details d;
      if (!objects.describe(object, d)) continue;
      auto prog = object.kind == BpfKind::prog ? object.id : d.prog;
      if (auto place = places.find(prog); d.attach.empty() && place != places.end())
        d.attach = place->second;
      if (!rows++ && !json)
        out.title(
            "PID     COMM             TYPE ID     KIND             NAME                MEMORY"
            "       RUNS  NS/RUN  ATTACH");
      print_object(out, json, measured, holder, object, d);
    }
  };
  for (auto& holder : held.holders) show(&holder, holder.objects);
  show(nullptr, alone);
  if (rows && !measured)
    list_note(
        kBpflist.name,
        "runs are not counted now: sysctl kernel.bpf_stats_enabled=1 makes the kernel count and "
        "time them, which costs each run some nanoseconds");
  return rows;
}

}  // namespace

BpfHolders bpf_holders(const std::string& proc) {
  BpfHolders all;
  std::error_code error;
  for (fs::directory_iterator process(proc, error), end; !error && process != end;
       process.increment(error)) {
    auto pid = parse_unsigned(process->path().filename().native());
    if (!pid) continue;
    BpfHolder holder;
    holder.pid = static_cast<std::uint32_t>(*pid);
    auto directory = process->path().native();
    std::error_code unreadable;
    for (fs::directory_iterator at(directory + "/fd", unreadable); !unreadable && at != end;
         at.increment(unreadable)) {
      std::error_code gone;
      auto link = fs::read_symlink(at->path(), gone).native();
      auto fd = at->path().filename().native();
      if (auto kind = kind_of(link)) {
        auto id = read_keyed(fmt::format("{}/fdinfo/{}", directory, fd), keyed(*kind));
        if (id) holder.objects.insert({*kind, static_cast<std::uint32_t>(*id)});
      } else if (link == "anon_inode:[perf_event]") {
        if (auto number = parse_unsigned(fd))
          holder.perf_events.push_back(static_cast<std::uint32_t>(*number));
      }
    }
    if (unreadable == std::errc::permission_denied) all.unreadable++;
    if (holder.objects.empty() && holder.perf_events.empty()) continue;
    holder.comm = read_file(directory + "/comm", 64).value_or("");
    if (holder.comm.ends_with('\n')) holder.comm.pop_back();
    all.holders.push_back(std::move(holder));
  }
  std::sort(all.holders.begin(), all.holders.end(), [](auto& a, auto& b) { return a.pid < b.pid; });
  return all;
}

std::vector<Option> bpflist_options() {
  return {flag('l', "list", "each object: its id, name, memory, runs and where it is attached"),
          verbosity("count kprobes, uprobes and tracepoints of perf events, too; -vv names them"),
          flag(0, "json", "one JSON object per line")};
}

int run_bpflist(const Config& config, const std::vector<std::string>&) {
  auto held = bpf_holders();
  Objects objects;
  const bool ids = objects.read_ids();
  const Error refused{"cannot list BPF objects", strerror(errno),
                      "run as root: the kernel asks for CAP_SYS_ADMIN", kUnsupported};
  if (!ids && config.given("list")) return list_failed("bpflist", refused);
  auto alone = std::move(objects.ids);
  for (auto& holder : held.holders)
    for (auto& object : holder.objects) alone.erase(object);
  Sink out;
  auto rows = config.given("list") ? print_list(out, config, held, alone, objects)
                                   : print_counts(out, config, held, alone);
  auto status = end_of(out);
  if (rows) notes(held, ids);
  if (rows || status != kOk) return status;
  if (!ids) return list_failed("bpflist", refused);
  return list_failed("bpflist", {"there are no BPF programs, maps or links here", {}, {}});
}

}  // namespace coretap
