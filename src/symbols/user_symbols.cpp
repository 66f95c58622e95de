#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coretap/symbols.hpp"
#include "symbols/demangle.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/mapped_file.hpp"
#include "symbols/numbered_files.hpp"
#include "symbols/perf_map.hpp"
#include "symbols/proc_maps.hpp"
#include "symbols/process_files.hpp"

namespace coretap {
namespace {

using symbols::DebugFileKey;
using symbols::ElfSymbols;
using symbols::FileIdentity;
using symbols::MappedFile;
using symbols::Mapping;
using symbols::PerfMap;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxVdso = 1 << 20;
constexpr std::size_t kMaxVdsos = 8;
constexpr std::size_t kMaxOrphans = 1 << 16;
constexpr std::size_t kMostRegions = 1 << 17;  // of one process, including removed ones
constexpr int kMostGenerations = 8;
constexpr std::size_t kMostHeld = 64;  // directories
constexpr std::size_t kMaxDemangledBytes = 4 << 20;

// A process between two exec calls: its addresses keep their meaning.
struct Image {
  pid_t tgid;
  std::uint32_t number;
  bool operator==(const Image&) const = default;
};

struct ImageHash {
  std::size_t operator()(const Image& image) const {
    return (std::uint64_t{static_cast<std::uint32_t>(image.tgid)} << 32 | image.number) *
           0x9e3779b97f4a7c15U;
  }
};

enum class Kind { kFile, kVdso, kOther };

struct Region {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t offset;
  Kind kind;
  bool unreadable = false;                     // do not retry for each address
  std::shared_ptr<const MappedFile> file;      // other kinds: `path` is the module's name
  std::optional<FileIdentity> id;              // unknown if it could not be reached at the snapshot
  std::uint64_t file_start = 0, file_end = 0;  // of the mapping that identifies the file
};

struct JitMap {
  PerfMap map;
  std::optional<FileIdentity> id;  // of the file that was read
  Clock::time_point next_try{};
};

struct Process {
  std::vector<Region> regions;   // sorted, disjoint
  std::uint64_t start_time = 0;  // clock ticks after boot; detects reuse of the process id
  pid_t inner_pid = 0;           // in the innermost pid namespace
  uid_t owner = 0;               // effective uid
  bool own_files = false;        // it shares this process's root directory and mounts
  Fd tmp;                        // its /tmp if not shared, to read the map after its end
  std::shared_ptr<ElfSymbols> vdso;
  std::unique_ptr<JitMap> jit;
  Clock::time_point next_refresh{};
  std::uint64_t used = 0;

  Region* find(std::uint64_t address) {
    auto it = std::upper_bound(regions.begin(), regions.end(), address,
                               [](std::uint64_t a, const Region& r) { return a < r.start; });
    if (it == regions.begin() || address >= (--it)->end) return nullptr;
    return &*it;
  }
};

struct File {
  std::shared_ptr<ElfSymbols> table;  // null: it has no symbols
  std::shared_ptr<const CodeFile> about;
  std::uint64_t used = 0;
};

std::shared_ptr<const CodeFile> about(std::string path, const ElfSymbols* table) {
  CodeFile file{.path = std::move(path)};
  if (table != nullptr) {
    file.build_id = table->build_id();
    for (const auto& segment : table->code())
      file.segments.push_back({segment.offset, segment.size});
    file.program = table->is_program();
  }
  return std::make_shared<const CodeFile>(std::move(file));
}

// The numbers of a "Name:\t1\t2" line.
std::vector<std::uint64_t> status_numbers(std::string_view status, std::string_view label) {
  std::vector<std::uint64_t> all;
  auto line = status.substr(std::min(status.find(label), status.size()));
  line.remove_prefix(std::min(label.size(), line.size()));
  line = line.substr(0, line.find('\n'));
  for (std::uint64_t number = 0; symbols::take_char(line, '\t');)
    if (symbols::take_number(line, number, 10)) all.push_back(number);
  return all;
}

Clock::duration cpu_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

template <class Map>
auto least_recently_used(Map& map) {
  return std::min_element(map.begin(), map.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  });
}

// Label of memory that a JIT compiler may have written code to.
std::string label_of(const Mapping& map) {
  if (map.path.empty() || map.path.starts_with("//")) return "[anon]";
  return map.path;
}

// Memory in which runtimes keep the code that they compile.
bool may_be_compiled(std::string_view label) {
  return label.starts_with("[anon") || label.starts_with("/memfd:") || label == "/dev/zero";
}

// Keeps older mappings where nothing is mapped now: earlier stacks may still be shown.
void keep_gone(std::vector<Region>& regions, std::vector<Region>& before) {
  const auto now = regions.size();
  std::size_t at = 0;
  for (Region& old : before) {
    while (at < now && regions[at].end <= old.start) ++at;
    if (at == now || regions[at].start >= old.end) regions.push_back(std::move(old));
    if (regions.size() >= kMostRegions) break;
  }
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.start < b.start; });
}

// The identical region in `before`; null: none.
const Region* same_region(const std::vector<Region>& before, const Region& now) {
  const auto found = std::lower_bound(
      before.begin(), before.end(), now.start,
      [](const Region& region, std::uint64_t start) { return region.start < start; });
  const bool same = found != before.end() && found->start == now.start && found->end == now.end &&
                    found->offset == now.offset && found->file == now.file;
  return same ? &*found : nullptr;
}

}  // namespace

struct UserSymbols::Impl {
  explicit Impl(UserSymbolOptions given) : options(std::move(given)) {}

  UserSymbolOptions options;
  std::uint64_t clock = 0;  // counts uses, to find the least recently used
  std::unordered_map<Image, Process, ImageHash> processes;
  struct Latest {
    std::uint32_t number = 0;
    std::uint64_t stack_begin = 0;  // 0: not known
  };
  std::unordered_map<pid_t, Latest> latest;  // most recent image of each process
  // Processes that exited before a snapshot, and the process whose memory they had a copy of.
  std::unordered_map<pid_t, pid_t> forked_from;
  std::unordered_map<FileIdentity, File, symbols::FileIdentityHash> files;
  const Clock::time_point began = Clock::now();
  struct Reading {
    Clock::duration spent{};  // CPU time
    bool told = false;
  };
  std::unordered_map<uid_t, Reading> reading;  // by owner of the processes
  std::vector<uid_t> given_up;
  std::vector<Image> holding;  // processes whose /tmp is kept open
  Clock::time_point next_release{};
  std::unordered_map<std::string, std::weak_ptr<const MappedFile>> interned;
  std::size_t next_purge = 1024;
  std::vector<std::pair<std::string, std::shared_ptr<ElfSymbols>>> vdsos;  // by content
  std::unordered_map<const char*, std::string> demangled;  // by address of the mangled name
  std::size_t demangled_bytes = 0;

  std::string proc(pid_t tgid, const char* rest) const {
    return options.proc_root + "/" + std::to_string(tgid) + rest;
  }
  Fd root_of(pid_t tgid) const { return symbols::open_handle(proc(tgid, "/root"), true); }

  Fd handle_of(pid_t tgid, const Region& region) const {
    return symbols::open_mapped(options.proc_root, tgid, region.file_start, region.file_end,
                                *region.file, region.id);
  }

  Fd tmp_of(pid_t tgid) const { return symbols::open_handle_in(root_of(tgid).get(), "/tmp", true); }

  std::shared_ptr<const MappedFile> intern(MappedFile file) {
    std::string key = file.path;
    const std::uint64_t numbers[] = {file.device, file.inode, std::uint64_t{file.path_cut}};
    key.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
    auto& slot = interned[key];
    auto shared = slot.lock();
    if (!shared) slot = shared = std::make_shared<const MappedFile>(std::move(file));
    if (interned.size() > next_purge) {
      std::erase_if(interned, [](const auto& entry) { return entry.second.expired(); });
      next_purge = std::max<std::size_t>(1024, interned.size() * 2);
    }
    return shared;
  }

  bool snapshot(Image image, std::optional<std::uint64_t> only_if_started) {
    const pid_t tgid = image.tgid;
    const std::uint64_t started = symbols::process_started(options.proc_root, tgid);
    if (only_if_started && *only_if_started != started) return false;
    const auto content = symbols::read_mappings(options.proc_root, tgid);
    // Exiting: its memory is released, but not its id.
    if (content.executable.empty()) return false;
    if (runs_another(image)) return false;

    Process next;
    next.start_time = started;
    const std::string status = symbols::read_small_file(proc(tgid, "/status"), 16384);
    const auto ids = status_numbers(status, "\nNSpid:"), owners = status_numbers(status, "\nUid:");
    next.inner_pid = ids.empty() ? tgid : static_cast<pid_t>(ids.back());
    // If the owner is unknown, trust only root's files.
    next.owner = owners.size() > 1 ? static_cast<uid_t>(owners[1]) : 0;
    struct stat theirs, ours;
    const auto is_ours = [&](const char* of_process, const char* own) {
      return ::stat(proc(tgid, of_process).c_str(), &theirs) == 0 && ::stat(own, &ours) == 0 &&
             theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    };
    next.own_files = is_ours("/root", "/") && is_ours("/ns/mnt", "/proc/self/ns/mnt");

    const auto old = processes.find(image);
    const bool known = old != processes.end() && old->second.start_time == started;
    next.regions.reserve(content.executable.size());
    for (const Mapping& map : content.executable) {
      Region region{.start = map.start,
                    .end = map.end,
                    .offset = map.offset,
                    .kind = Kind::kOther,
                    .file_start = map.file_start,
                    .file_end = map.file_end};
      MappedFile file{.path = label_of(map)};
      if (map.has_file()) {
        region.kind = Kind::kFile;
        file.device = ::makedev(map.device_major, map.device_minor);
        file.inode = map.inode;
        file.path_cut = map.path_cut;
      } else if (map.path == "[vdso]") {
        region.kind = Kind::kVdso;
      }
      region.file = intern(std::move(file));
      if (region.kind == Kind::kFile) {
        const Region* same = known ? same_region(old->second.regions, region) : nullptr;
        region.id =
            same && same->id ? same->id : symbols::identity_of(handle_of(tgid, region).get());
      }
      next.regions.push_back(std::move(region));
    }
    next.next_refresh = Clock::now() + options.refresh_interval;
    next.used = ++clock;
    if (known) {
      next.jit = std::move(old->second.jit);
      next.tmp = std::move(old->second.tmp);
      keep_gone(next.regions, old->second.regions);
    }
    hold_tmp(image, next);
    processes[image] = std::move(next);
    if (!latest.contains(tgid) || !is_current(image)) set_latest(image, 0);
    // Two: resolving one process's vdso may need this process's.
    while (processes.size() > std::max<std::size_t>(2, options.max_processes))
      processes.erase(least_recently_used(processes));
    return true;
  }

  // Until it executes another program, a process has a copy of its parent's memory.
  bool adopt(Image image, int generations) {
    if (processes.contains(image)) return true;
    const auto entry = forked_from.find(image.tgid);
    if (entry == forked_from.end() || generations == 0) return false;
    const Image parent_id{entry->second, image.number};
    if (!adopt(parent_id, generations - 1)) return false;
    const auto parent = processes.find(parent_id);
    if (parent == processes.end()) return false;
    Process child;
    child.regions = parent->second.regions;
    child.start_time = parent->second.start_time;
    child.inner_pid = parent->second.inner_pid;
    child.owner = parent->second.owner;
    child.own_files = parent->second.own_files;
    child.vdso = parent->second.vdso;
    child.used = ++clock;
    processes.insert_or_assign(image, std::move(child));
    if (!latest.contains(image.tgid) || !is_current(image)) set_latest(image, 0);
    forked_from.erase(image.tgid);
    return true;
  }

  bool is_current(Image image) const {
    const auto last = latest.find(image.tgid);
    return last == latest.end() || last->second.number == image.number;
  }

  void set_latest(Image image, std::uint64_t stack_begin) {
    if (latest.size() >= kMaxOrphans) latest.clear();
    latest[image.tgid] = {image.number, stack_begin};
  }

  // True if the process has executed another program since: its mappings are not the image's.
  bool runs_another(Image image) const {
    const auto last = latest.find(image.tgid);
    if (last == latest.end() || last->second.number != image.number || !last->second.stack_begin)
      return false;
    const auto then = last->second.stack_begin;
    const auto now = symbols::process_stack_begin(options.proc_root, image.tgid);
    // During exec the stack begins slightly higher: the pointers to the arguments are written last.
    // Another program's stack is anywhere within gigabytes.
    constexpr std::uint64_t kPointers = 256 << 10;
    return now && (now > then ? now - then : then - now) > kPointers;
  }

  Process* process(Image image) {
    auto found = processes.find(image);
    if (found == processes.end()) {
      if (!is_current(image) || !snapshot(image, {})) return nullptr;
      found = processes.find(image);
      if (found == processes.end()) return nullptr;
    }
    found->second.used = ++clock;
    return &found->second;
  }

  std::shared_ptr<ElfSymbols> read_file(int fd, pid_t tgid, const std::string& path) const {
    const auto find_debug_file = [&](const DebugFileKey& key,
                                     const std::function<bool(int)>& accept) {
      const auto candidates = key.paths(options.debug_root, path);
      const Fd their_root = root_of(tgid);
      const Fd own_root = symbols::open_handle("/", true);
      for (const Fd* root : {&their_root, &own_root})
        for (const std::string& candidate : candidates) {
          // Distributions use links from .build-id/xx/yyy.debug to the named file.
          const Fd debug = symbols::open_regular(
              symbols::open_handle_in(root->get(), candidate, true), symbols::kMaxElfSize);
          if (debug && accept(debug.get())) return;
        }
    };
    return ElfSymbols::read(fd, find_debug_file);
  }

  void trim_files() {
    std::size_t bytes = 0;
    for (const auto& [id, file] : files) bytes += file.table ? file.table->bytes() : 0;
    // Files without a table are cached too, but need little memory. One is always kept: the last.
    while (files.size() > 1 && (files.size() > options.max_files || bytes > options.max_bytes)) {
      const auto oldest = least_recently_used(files);
      bytes -= oldest->second.table ? oldest->second.table->bytes() : 0;
      files.erase(oldest);
      demangled.clear();  // its keys point into the tables
      demangled_bytes = 0;
    }
  }

  File& add_file(const FileIdentity& id, const std::string& path,
                 std::shared_ptr<ElfSymbols> table) {
    auto known = about(path, table.get());
    return files.emplace(id, File{std::move(table), std::move(known), ++clock}).first->second;
  }

  // Null if the file can no longer be opened.
  const File* file_of(pid_t tgid, uid_t owner, Region& region) {
    auto found = region.id ? files.find(*region.id) : files.end();
    if (found == files.end()) {
      if (region.unreadable) return nullptr;
      const Fd fd = symbols::open_regular(handle_of(tgid, region), symbols::kMaxElfSize);
      const auto id = symbols::identity_of(fd.get());
      if (!id) {
        region.unreadable = true;
        return nullptr;
      }
      region.id = id;
      found = files.find(*id);
      if (found == files.end()) return read_known(*id, fd, owner, tgid, region.file->path);
    }
    found->second.used = ++clock;
    return &found->second;
  }

  // Null if reading this owner's files has exceeded its time limit.
  const File* read_known(const FileIdentity& id, const Fd& fd, uid_t owner, pid_t tgid,
                         const std::string& path) {
    auto& [spent, told] = reading[owner];
    if (spent >= options.reading_time + (Clock::now() - began) / 10) {
      if (!std::exchange(told, true)) given_up.push_back(owner);
      return nullptr;
    }
    const auto before = cpu_time();
    auto table = read_file(fd.get(), tgid, path);
    spent += cpu_time() - before;
    const File& added = add_file(id, path, std::move(table));
    trim_files();
    return &added;
  }

  // The same for a numbered file. A file that cannot be reached is not tried again.
  const File* file_of(const symbols::NumberedFiles& all, const symbols::NumberedFile& file,
                      pid_t tgid) {
    if (const auto found = files.find(file.id); found != files.end()) {
      found->second.used = ++clock;
      return &found->second;
    }
    if (!file.image.empty()) return &add_file(file.id, file.path, ElfSymbols::read(file.image));
    const Fd fd = all.open(file, tgid);
    struct stat status;
    if (!fd || ::fstat(fd.get(), &status) != 0) return &add_file(file.id, file.path, nullptr);
    return read_known(file.id, fd, status.st_uid, tgid, file.path);
  }

  // Sets the symbol for an ELF address; false: no function contains it.
  bool name_place(const ElfSymbols& table, std::uint64_t place, std::uint64_t behind, bool keep,
                  Symbol& symbol) {
    symbol.module_offset = place + behind;
    symbol.entry = table.is_entry(place);
    const ElfSymbols::Function* function = table.find(place);
    if (function == nullptr) return false;
    symbol.offset = place + behind - function->start;
    const char* name = table.name(*function);
    symbol.name = text_of(name, keep);
    if (symbol.name != name) symbol.linkage_name = name;
    return true;
  }

  ElfSymbols* vdso_of(pid_t tgid, Process& process, Region& region) {
    const std::uint64_t size = region.end - region.start;
    if (process.vdso || region.unreadable || size > kMaxVdso) return process.vdso.get();
    region.unreadable = true;  // try only once
    std::string image;
    const bool alive = symbols::process_started(options.proc_root, tgid) == process.start_time;
    if (alive) image = symbols::read_memory(options.proc_root, tgid, region.start, size);
    if (image.size() != size) {
      // Exited or unreadable. A kernel has one vdso per ABI: this process's can be used if the ABI
      // (from the address range) and the size are the same.
      const std::uint64_t own = ::getauxval(AT_SYSINFO_EHDR);
      const auto last = latest.find(::getpid());
      const Image ours{::getpid(), last != latest.end() ? last->second.number : 0};
      Process* self = own != 0 ? this->process(ours) : nullptr;
      const Region* own_region = self != nullptr ? self->find(own) : nullptr;
      const bool same_abi = (own > UINT32_MAX) == (region.start > UINT32_MAX);
      if (own_region == nullptr || own_region->kind != Kind::kVdso || own_region->start != own ||
          !same_abi || own_region->end - own_region->start != size)
        return nullptr;
      image.assign(reinterpret_cast<const char*>(own), size);
    }
    const auto known = std::find_if(vdsos.begin(), vdsos.end(),
                                    [&](const auto& vdso) { return vdso.first == image; });
    if (known != vdsos.end()) return (process.vdso = known->second).get();
    process.vdso = ElfSymbols::read(image);
    if (vdsos.size() >= kMaxVdsos) vdsos.clear();  // only hostile processes have this many
    vdsos.emplace_back(std::move(image), process.vdso);
    return process.vdso.get();
  }

  // The demangled name, cached: stacks contain the same functions repeatedly.
  std::string text_of(const char* name, bool keep) {
    if (!options.demangle || !symbols::is_mangled(name)) return name;
    if (!keep) return symbols::demangle(name);
    if (const auto known = demangled.find(name); known != demangled.end()) return known->second;
    std::string text = symbols::demangle(name);
    if (demangled_bytes > kMaxDemangledBytes) {
      demangled.clear();
      demangled_bytes = 0;
    }
    demangled.emplace(name, text);
    demangled_bytes += text.size() + 64;
    return text;
  }

  void trim_jit(pid_t keep) {
    std::size_t bytes = 0;
    for (const auto& [image, process] : processes)
      bytes += process.jit ? process.jit->map.bytes() : 0;
    while (bytes > options.max_bytes) {
      Process* oldest = nullptr;
      for (auto& [image, process] : processes)
        if (process.jit && image.tgid != keep && process.jit->map.bytes() > 0 &&
            (oldest == nullptr || process.used < oldest->used))
          oldest = &process;
      if (oldest == nullptr) return;
      bytes -= oldest->jit->map.bytes();
      oldest->jit->map = {};  // next_try is kept
      oldest->jit->id.reset();
    }
  }

  // A mount namespace may end with its process, and its /tmp with it. /tmp of other namespaces is
  // kept open while the process runs and may compile code; after its end the map is read and /tmp
  // is closed.
  void hold_tmp(Image image, Process& process) {
    const auto now = Clock::now();
    if (now >= next_release) {
      next_release = now + options.refresh_interval;
      std::erase_if(holding, [&](const Image& held) {
        const auto known = processes.find(held);
        if (known == processes.end()) return true;
        auto& ended = known->second;
        if (symbols::process_started(options.proc_root, held.tgid) == ended.start_time)
          return false;
        if (ended.jit) ended.jit->next_try = {};
        (void)jit_of(held.tgid, ended, true);
        ended.tmp.reset();
        return true;
      });
    }
    const bool compiles = std::ranges::any_of(
        process.regions, [](const Region& region) { return may_be_compiled(region.file->path); });
    const bool held = static_cast<bool>(process.tmp);
    if (process.own_files || !compiles || (!held && holding.size() >= kMostHeld)) return;
    process.tmp = tmp_of(image.tgid);
    if (process.tmp && !held) holding.push_back(image);
  }

  // Reads the map on first use, and again if an address is `unknown` and the file changed.
  const PerfMap* jit_of(pid_t tgid, Process& process, bool unknown) {
    if (process.jit && !unknown) return &process.jit->map;
    const auto now = Clock::now();
    if (process.jit && now < process.jit->next_try) return nullptr;
    if (!process.jit) process.jit = std::make_unique<JitMap>();
    JitMap& jit = *process.jit;

    const bool alive = symbols::process_started(options.proc_root, tgid) == process.start_time;
    Fd tmp = alive ? tmp_of(tgid) : Fd();
    if (!tmp && process.own_files) tmp = symbols::open_handle("/tmp", true);
    const Fd fd = symbols::open_perf_map(tmp ? tmp.get() : process.tmp.get(), process.inner_pid,
                                         process.owner);
    const auto id = symbols::identity_of(fd.get());
    const bool changed = id && (!jit.id || id->inode != jit.id->inode ||
                                id->device != jit.id->device || id->size != jit.id->size);
    if (changed) {
      jit.map = PerfMap::read(fd.get());
      jit.id = id;
      trim_jit(tgid);
    }
    // Large maps are read less often: at most a tenth of the time is spent on it.
    jit.next_try =
        now + std::max<Clock::duration>(options.refresh_interval, (Clock::now() - now) * 10);
    return &jit.map;
  }

  Symbol find(Image image, std::uint64_t address, bool exact_ip) {
    const pid_t tgid = image.tgid;
    Symbol symbol;
    Process* process = this->process(image);
    if (process == nullptr) return symbol;
    const std::uint64_t wanted = exact_ip || address == 0 ? address : address - 1;
    const std::uint64_t behind = address - wanted;  // distance from the address that is looked up
    Region* region = process->find(wanted);
    if (region == nullptr) {
      // Mapped since the snapshot, or an invalid address from a stack without frame pointers.
      const auto now = Clock::now();
      if (now < process->next_refresh || !is_current(image)) return symbol;
      process->next_refresh = now + options.refresh_interval;
      if (!snapshot(image, process->start_time)) return symbol;
      process = this->process(image);
      region = process != nullptr ? process->find(wanted) : nullptr;
      if (region == nullptr) return symbol;
    }
    symbol.module = region->file->path;
    symbol.module_offset = address - region->start;

    if (region->kind != Kind::kOther) {
      const ElfSymbols* table = nullptr;
      const std::uint64_t file_offset = wanted - region->start + region->offset;
      if (region->kind == Kind::kVdso) {
        table = vdso_of(tgid, *process, *region);
        symbol.file = about(symbol.module, table);
      } else {
        const File* file = file_of(tgid, process->owner, *region);
        if (file != nullptr) {
          table = file->table.get();
          symbol.file = file->about;
        }
        symbol.module_offset = file_offset + behind;
      }
      if (table != nullptr) symbol.file_offset = file_offset;
      const auto place = table != nullptr ? table->address_of_offset(file_offset) : std::nullopt;
      if (place && name_place(*table, *place, behind, region->kind == Kind::kFile, symbol))
        return symbol;
      // Only memfds may contain JIT-compiled code.
      if (region->kind != Kind::kFile || !symbol.module.starts_with("/memfd:")) return symbol;
    }

    const PerfMap* jit = jit_of(tgid, *process, false);
    PerfMap::Hit hit = jit != nullptr ? jit->find(wanted) : PerfMap::Hit{};
    if (hit.name == nullptr) {
      jit = jit_of(tgid, *process, true);
      if (jit != nullptr) hit = jit->find(wanted);
    }
    symbol.compiled =
        hit.name != nullptr || (!symbol.file_offset && may_be_compiled(symbol.module));
    if (hit.name != nullptr) {
      symbol.name = text_of(hit.name, false);
      symbol.offset = address - hit.start;
    }
    return symbol;
  }
};

UserSymbols::UserSymbols(UserSymbolOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
UserSymbols::~UserSymbols() = default;
UserSymbols::UserSymbols(UserSymbols&&) noexcept = default;
UserSymbols& UserSymbols::operator=(UserSymbols&&) noexcept = default;

void UserSymbols::remember(pid_t tgid, pid_t forked_from, std::uint32_t image,
                           std::uint64_t stack_begin) {
  const Image own{tgid, image};
  const Image parents{forked_from, image};
  try {
    if (stack_begin) impl_->set_latest(own, stack_begin);
    if (impl_->snapshot(own, {}) || !forked_from || impl_->processes.contains(own)) return;
    // Already exited. Its parent may be known later: processes are reported when they first wait.
    if (impl_->forked_from.size() >= kMaxOrphans) impl_->forked_from.clear();
    impl_->forked_from.insert_or_assign(tgid, forked_from);
    // The parent's number is certainly valid now; later it might be another's.
    if (!impl_->processes.contains(parents) && impl_->is_current(parents))
      (void)impl_->snapshot(parents, {});
    impl_->adopt(own, kMostGenerations);
  } catch (const std::bad_alloc&) {
    impl_->processes.erase(own);
  }
}

Symbol UserSymbols::find(pid_t tgid, std::uint64_t address, bool exact_ip, std::uint32_t image) {
  try {
    impl_->adopt({tgid, image}, kMostGenerations);
    return impl_->find({tgid, image}, address, exact_ip);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Symbol UserSymbols::find_in_file(const symbols::NumberedFiles& files, std::uint64_t frame,
                                 pid_t tgid, bool exact_ip) {
  Symbol symbol;
  const auto* file = files.find((frame & ~(STACK_EXACT | STACK_IN_FILE)) >> STACK_PLACE_BITS);
  if (file == nullptr) return symbol;
  const std::uint64_t behind = exact_ip ? 0 : 1;
  const std::uint64_t place = file->base + (frame & STACK_PLACE_MASK) - behind;
  symbol.module = file->path;
  symbol.module_offset = place + behind;
  try {
    const File* known = impl_->file_of(files, *file, tgid);
    symbol.file = known != nullptr ? known->about : nullptr;
    if (const ElfSymbols* table = known != nullptr ? known->table.get() : nullptr) {
      symbol.file_offset = table->offset_of_address(place);
      impl_->name_place(*table, place, behind, file->image.empty(), symbol);
    }
  } catch (const std::bad_alloc&) {
    symbol.name.clear();
  }
  return symbol;
}

std::vector<uid_t> UserSymbols::take_given_up() { return std::exchange(impl_->given_up, {}); }

void UserSymbols::forget(pid_t tgid) {
  std::erase_if(impl_->processes, [&](const auto& entry) { return entry.first.tgid == tgid; });
  impl_->latest.erase(tgid);
  impl_->forked_from.erase(tgid);
}

}  // namespace coretap
