#include "unwind/table_walker.hpp"

#include <bpf/libbpf.h>
#include <malloc.h>
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/machine.hpp"
#include "coretap/fields.hpp"
#include "coretap/small_files.hpp"
#include "program/filters.hpp"
#include "program/maps.hpp"
#include "program/plan.hpp"
#include "program/variables.hpp"
#include "unwind/command_files.hpp"
#include "unwind/known_files.hpp"
#include "unwind/mapping_watch.hpp"
#include "unwind/processes.hpp"
#include "unwind/running_files.hpp"
#include "unwind/tables.hpp"

namespace coretap::unwind {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kAtOnce{20};
constexpr std::chrono::seconds kPatience{2};    // until a message explains the wait
constexpr std::chrono::milliseconds kAside{5};  // for work that is not urgent
constexpr std::size_t kMostUnread = 64;
constexpr double kPoll = 0.05;  // the longest time that tables of unmapped code stay in use
constexpr std::uint64_t kMostProcesses = 1 << 16;
constexpr std::uint64_t kReadyProcesses = 1 << 13;
constexpr std::uint64_t kMostFiles = 1 << 14;
constexpr std::uint64_t kReadyFiles = 1 << 13;

/// Interpreters are found by their code.
constexpr bool kRuntimes = machine::kElf == EM_X86_64;

bool read_process(pid_t pid, std::uint64_t address, std::span<char> to) {
  const iovec local{to.data(), to.size()};
  const iovec remote{reinterpret_cast<void*>(address), to.size()};  // NOLINT: of another process
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(to.size());
}

class PlainWalker : public StackWalker {
 public:
  explicit PlainWalker(bool leaf) : leaf_(leaf) {}
  void configure(Session& s) override { set_variable(s, "walk_leaf", leaf_); }

 private:
  bool leaf_;
};

class TableWalker : public StackWalker {
 public:
  void configure(Session& s) override {
    set_variable(s, "unwind_tables", 1);
    set_variable(s, "runtimes", kRuntimes && s.config.stacks.code != Config::Stacks::native);
    s.unwinds = true;
    s.retained.add(Capability::bpf);  // tables grow as processes appear
  }

  Result<void> ready(Session& s) override {
    auto fd = [&](MapName name) { return bpf_map__fd(s.map(name)); };
    tables_.emplace(
        Tables::Maps{fd(MapName("unwind_rules")), fd(MapName("unwind_pages")),
                     fd(MapName("unwind_rows")), kRuntimes ? fd(MapName("runtime_files")) : -1},
        s.config.stacks.unwind_memory);
    if (!tables_->ready()) return Error{"cannot write unwind tables", "the kernel maps none"};
    processes_.emplace(
        Processes::Maps{fd(MapName("unwind_mappings")), s.map(MapName("unwind_processes"))},
        *tables_);
    hotspots_.emplace(fd(MapName("hotspot_processes")), read_process);
    processes_->hotspots = &*hotspots_;
    codes_.inlined = [this](pid_t pid, auto& code) { return hotspots_->inlined(pid, code); };
    processes_->no_room = [this, &s](const std::string& path) { tell_no_room(s, path); };
    processes_->reading = [this, &s](const std::string&) { tell_progress(s); };
    if (auto r = watch_.open(); !r) {
      r.error().why = fmt::format("{}: {}", r.error().what, r.error().why);
      s.note("libraries that processes load while they are traced are found late", r.error());
    }
    know_files(s);
    began_ = Clock::now();
    if (!s.config.command.empty())
      for (auto& file : files_of_command(s.config.command.front())) processes_->know(file);
    for (auto pid : s.config.tasks.pids) name(static_cast<pid_t>(pid));
    for (auto tid : s.config.tasks.tids)
      if (auto pid = read_keyed(fmt::format("/proc/{}/status", tid), "Tgid"))
        name(static_cast<pid_t>(*pid));
    return {};
  }

  void meet(Session&, const stack_process& process) override {
    auto tgid = static_cast<pid_t>(process.tgid);
    if (!tgid) return;  // outside our pid namespace
    if (process.news == STACK_PROCESS_FORKED) {
      processes_->forked(tgid, process.program, static_cast<pid_t>(process.forked_from));
    } else if (process.news == STACK_PROCESS_CHANGED) {
      processes_->changed(tgid, true);
      look_at_changed();
    } else {
      if (auto program = processes_->unread_program(tgid); program && unread_.size() < kMostUnread)
        unread_.push_back(std::move(program));
      met_.emplace_back(tgid, process.program);
    }
  }

  bool take(const void* record, std::size_t size) override {
    if (codes_.take(record, size)) return true;
    auto& news = *static_cast<const unwind_unread*>(record);
    if (size < sizeof news || news.mark != UNWIND_UNREAD) return false;
    if (news.text.at + news.text.bytes > size || unread_.size() >= kMostUnread) return true;
    auto path = file_path(text_of(news, news.text), news.kind);
    auto file = news.kind == PATH_KIND_WHOLE
                    ? processes_->unread_file(static_cast<pid_t>(news.tgid), path)
                    : Fd();
    if (file) unread_.push_back(std::move(file));
    return true;
  }

  std::uint32_t image(const stack_process& process) const override {
    return processes_->image(static_cast<pid_t>(process.tgid), process.program);
  }

  const symbols::NumberedFiles* files() const override {
    return processes_ ? &processes_->files() : nullptr;
  }

  const runtimes::CodeNames* codes() const override { return &codes_; }

  double poll_seconds() const override { return kPoll; }

  void poll(Session& s) override {
    if (!watch_.drain([&](pid_t tgid) { processes_->changed(tgid, false); }))
      for (auto tgid : processes_->known()) processes_->changed(tgid, false);
    read_programs();
    look_at_met();
    look_at_changed();
    if (met_.empty()) look_at_running(s);
    processes_->tend(Clock::now());
    if (tables_->bytes() != trimmed_at_) {
      // Releases memory that reading files has used.
      trimmed_at_ = tables_->bytes();
      malloc_trim(0);
    }
    began_ = Clock::now();
  }

  std::vector<int> wakes() const override { return watch_.descriptors(); }

 private:
  void name(pid_t tgid) {
    if (own_pid_namespace())
      processes_->expect(tgid);
    else
      processes_->name(tgid);
  }

  /// Registers files by inode, for stacks of processes whose mappings are not known yet.
  void know_files(Session& s) {
    auto* ask = bpf_object__find_program_by_name(s.object.get(), kUnwindPrograms[3].c_str());
    known_.emplace(KnownFiles::Maps{bpf_map__fd(s.map(MapName("unwind_files"))),
                                    ask ? bpf_program__fd(ask) : -1,
                                    bpf_map__fd(s.map(MapName("unwind_answer")))});
    processes_->has_read = [this](int fd, const KnownFile& file) { known_->tell(fd, file); };
    processes_->has_read_vdso = [this](const KnownFile& file) { known_->tell_vdso(file); };
    tables_->dropped = [this](const File& file) { known_->changed(file); };
    tables_->forgotten = [this](const File& file) { known_->forget(file); };
    processes_->know_own();
    if (s.config.tasks.pids.empty() && s.config.tasks.tids.empty()) running_.emplace();
  }

  /// Reads programs that may have ended by now; processes that run them later find the tables.
  void read_programs() {
    auto until = Clock::now() + kAtOnce;
    while (!unread_.empty() && Clock::now() < until) {
      processes_->know(unread_.front());
      unread_.pop_front();
    }
  }

  /// Leaves half of the memory to processes that appear in stacks.
  void look_at_running(Session& s) {
    if (!running_) return;
    bool more = running_->go_on(Clock::now() + kAside, [&](pid_t tgid, auto& mapping) {
      processes_->know(tgid, mapping);
      return tables_->bytes() < s.config.stacks.unwind_memory / 2;
    });
    if (!more) running_.reset();
  }

  /// Limited in time: names of other processes that end soon must be read, too.
  void look_at_met() {
    auto until = Clock::now() + kAtOnce;
    while (!met_.empty() && Clock::now() < until) {
      auto [tgid, program] = met_.front();
      met_.pop_front();
      // The names were read when the process was met; later mappings would have none.
      if (processes_->look(tgid, program, false)) tell_remapped(tgid);
    }
  }

  void look_at_changed() {
    for (auto tgid : processes_->look_at_changed(Clock::now())) tell_remapped(tgid);
  }

  void tell_remapped(pid_t tgid) {
    if (auto image = processes_->image(tgid); image && remapped) remapped(tgid, *image);
  }

  void tell_progress(Session& s) {
    files_++;
    auto now = Clock::now();
    if (now - began_ < kPatience) return;
    began_ = now;
    s.say(fmt::format("reading unwind tables: {} files so far, {:.1f} MB", files_,
                      static_cast<double>(tables_->bytes()) / (1 << 20)));
  }

  void tell_no_room(Session& s, const std::string& path) {
    if (std::exchange(told_no_room_, true)) return;
    s.say(
        fmt::format("note: unwind tables of {} and perhaps others have no room in {} KB; stacks "
                    "that pass there are truncated (a larger --unwind-memory helps)",
                    printable(path), s.config.stacks.unwind_memory >> 10));
  }

  std::optional<Tables> tables_;
  runtimes::CodeNames codes_{read_process};
  std::optional<KnownFiles> known_;
  std::optional<runtimes::HotSpots> hotspots_;
  std::optional<Processes> processes_;
  std::optional<RunningFiles> running_;  // until their tables have been read
  MappingWatch watch_;
  std::deque<Fd> unread_;
  std::deque<std::pair<pid_t, std::uint64_t>> met_;  // to be scanned: process, program
  Clock::time_point began_{};                        // start of reading
  std::size_t files_ = 0, trimmed_at_ = 0;
  bool told_no_room_ = false;
};

}  // namespace

std::unique_ptr<StackWalker> make_walker(Config::Stacks::Unwind how, bool by_tables) {
  if (by_tables && how == Config::Stacks::automatic) return std::make_unique<TableWalker>();
  return std::make_unique<PlainWalker>(how == Config::Stacks::no_walk);
}

void size_maps(Session& s) {
  for (auto name :
       {MapName("unwind_rules"), MapName("unwind_pages"), MapName("unwind_mappings"),
        MapName("unwind_rows"), MapName("unwind_processes"), MapName("unwind_files"),
        MapName("unwind_answer"), MapName("unwind_told"), MapName("unwind_unread"),
        MapName("runtime_files"), MapName("runtime_threads"), MapName("runtime_codes"),
        MapName("runtime_recent"), MapName("runtime_record"), MapName("hotspot_processes")})
    if (auto* map = s.map(name)) bpf_map__set_autocreate(map, s.unwinds);
  if (auto* rows = s.map(MapName("unwind_rows")))
    bpf_map__set_max_entries(rows, Tables::chunks_for(s.config.stacks.unwind_memory));
  if (auto* processes = s.map(MapName("unwind_processes")))
    on_demand(s, processes, kMostProcesses, kReadyProcesses);
  if (auto* files = s.map(MapName("unwind_files"))) on_demand(s, files, kMostFiles, kReadyFiles);
}

}  // namespace coretap::unwind
