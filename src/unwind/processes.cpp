#include "unwind/processes.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/core/shared.h"
#include "program/maps.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/mapped_file.hpp"
#include "unwind/kernel_maps.hpp"

namespace coretap::unwind {

namespace {

constexpr std::uint64_t kMostVdso = 1 << 20;
constexpr std::string_view kDeleted = " (deleted)";
constexpr std::size_t kMostGenerations = 16;
constexpr std::size_t kMostTold = 1024;
// Limits the scans of a process that keeps mapping code to a third of the time.
constexpr std::chrono::milliseconds kShort{10};
constexpr int kRest = 5;
constexpr std::chrono::seconds kSweep{5};
constexpr unsigned kStartTries = 200;
constexpr std::chrono::seconds kTry{1};   // between retries of files without room
constexpr std::chrono::seconds kTurn{4};  // between checks of which tables are used

bool same(const symbols::Mapping& a, const symbols::Mapping& b) {
  return a.start == b.start && a.end == b.end && a.offset == b.offset && a.same_file(b);
}

bool same_code(const symbols::Mapping& a, const symbols::Mapping& b) {
  if (a.has_file() != b.has_file()) return false;
  if (!a.has_file()) return true;  // names of generated code have another source
  return a.start - a.offset == b.start - b.offset && a.same_file(b);
}

bool is_named(std::uint64_t program) {
  return static_cast<std::uint32_t>(program) == UNWIND_ANY_EXEC;
}

unwind_mapping mapping_of(const symbols::Mapping& m, const KnownFile& known) {
  auto* file = known.table.get();
  unwind_mapping to{};
  to.start = m.start;
  to.length = static_cast<__u32>((m.end - m.start) >> 12);
  to.page = UNWIND_LACK_CFI;
  if (!file) return to;
  if (file->state == File::no_memory) to.page = UNWIND_LACK_MEMORY;
  auto address = file->elf.address_of_mapping(m.offset, m.end - m.start);
  if (!address) return to;
  to.bias = m.start - *address + file->base;
  to.file = known.number;
  to.runtime = file->runtime;
  if (file->state != File::ready) return to;
  to.page = file->page;
  to.pages = file->pages;
  return to;
}

std::string_view raw_bytes(const std::vector<unwind_mapping>& mappings) {
  return {reinterpret_cast<const char*>(mappings.data()), mappings.size() * sizeof(unwind_mapping)};
}

}  // namespace

Processes::Processes(Maps maps, Tables& tables, std::string proc_root)
    : maps_(maps), tables_(tables), proc_root_(std::move(proc_root)), numbered_(proc_root_) {}

KnownFile Processes::file_of(pid_t tgid, const symbols::Mapping& m) {
  if (m.path == "[vdso]") return vdso_of(tgid, m);
  if (!m.has_file()) return {};
  auto handle = symbols::open_mapped(
      proc_root_, tgid, m.file_start, m.file_end,
      {m.path, ::makedev(m.device_major, m.device_minor), m.inode, m.path_cut}, {});
  return file_by(handle, m.path, tgid);
}

KnownFile Processes::file_by(const Fd& handle, const std::string& path, pid_t mapped_by) {
  auto id = symbols::identity_of(handle.get());
  if (!id) return {};
  KnownFile known{tables_.known(*id)};
  auto number = [&] {
    if (known.table->elf.state == ElfCode::usable)
      known.number = numbered_.number(*id, path, known.table->base, handle, mapped_by);
  };
  if (!known.table || known.table->state == File::no_memory) {
    if (reading) reading(path);
    auto fd = symbols::open_regular(handle, symbols::kMaxElfSize);
    if (!fd) return {};
    known.table = tables_.of_file(fd.get(), *id);
    number();
    if (has_read) has_read(fd.get(), known);
  } else {
    number();
  }
  if (known.table->state == File::no_memory && no_room && told_.size() < kMostTold &&
      told_.insert(path).second)
    no_room(path);
  return known;
}

KnownFile Processes::vdso_of(pid_t tgid, const symbols::Mapping& m) {
  if (m.end - m.start > kMostVdso) return {};
  auto image = symbols::read_memory(proc_root_, tgid, m.start, m.end - m.start);
  if (image.empty()) return {};
  KnownFile known{tables_.of_image(image)};
  if (known.table->elf.state == ElfCode::usable)
    known.number = numbered_.number_of_vdso(std::move(image), known.table->base);
  if (has_read_vdso && tgid == getpid()) has_read_vdso(known);
  return known;
}

std::optional<std::vector<Processes::Part>> Processes::read(pid_t tgid,
                                                            const std::vector<Part>* before) {
  auto content = symbols::read_mappings(proc_root_, tgid);
  if (content.executable.empty()) return {};  // exiting: it has no memory any more
  Seen seen;
  std::vector<Part> parts;
  parts.reserve(content.executable.size());
  static const std::vector<Part> kNone;
  if (!before) before = &kNone;
  auto old = before->begin();
  for (auto& m : content.executable) {
    while (old != before->end() && old->mapping.start < m.start) ++old;
    auto known = old != before->end() && same(old->mapping, m) ? old->file : KnownFile();
    auto& table = known.table;
    if (!table || (table->state == File::no_memory && table->wanted)) {
      // A program may map parts of a file thousands of times.
      auto& file = seen[{m.device_major, m.device_minor, m.inode}];
      if (!file.table || !m.has_file()) file = file_of(tgid, m);
      known = file;
    }
    parts.push_back({std::move(m), std::move(known)});
  }
  return parts;
}

std::shared_ptr<Processes::Run> Processes::run_of(const std::vector<Part>& parts) {
  std::vector<unwind_mapping> mappings;
  mappings.reserve(parts.size());
  for (auto& p : parts) mappings.push_back(mapping_of(p.mapping, p.file));
  auto& alike = runs_[std::hash<std::string_view>{}(raw_bytes(mappings))];
  for (auto& run : alike)
    if (raw_bytes(run->mappings) == raw_bytes(mappings)) return run;
  auto count = static_cast<std::uint32_t>(mappings.size());
  auto first = room_.take(count);
  if (!first) return nullptr;
  if (!write_map(maps_.mappings, *first * sizeof(unwind_mapping), mappings.data(),
                 count * sizeof(unwind_mapping))) {
    room_.give(*first, count);
    return nullptr;
  }
  auto run = std::make_shared<Run>();
  run->first = *first;
  run->mappings = std::move(mappings);
  for (auto& p : parts) run->files.push_back(p.file.table);
  alike.push_back(run);
  return run;
}

/// Chooses the first stored generation that fits the current mappings, else a new one.
void Processes::choose_generation(Process& process) {
  auto overlapping = [](auto& by_end, const symbols::Mapping& m) {
    auto at = by_end.upper_bound(m.start);
    return at != by_end.end() && at->second.start < m.end ? at : by_end.end();
  };
  auto contradicts = [&](const Generation& g) {
    return std::any_of(process.parts->begin(), process.parts->end(), [&](auto& part) {
      auto& m = part.mapping;
      for (auto at = overlapping(*g.by_end, m); at != g.by_end->end() && at->second.start < m.end;
           ++at)
        if (!same_code(at->second, m)) return true;
      return false;
    });
  };
  auto& all = process.generations;
  auto chosen = std::find_if(all.begin(), all.end(), [&](auto& g) { return !contradicts(g); });
  std::map<std::uint64_t, symbols::Mapping> by_end;
  if (chosen != all.end()) {
    by_end = *chosen->by_end;
  } else {
    auto last = all.empty() ? 0 : all.back().number;
    if (all.size() >= kMostGenerations) all.erase(all.begin());
    all.push_back({static_cast<std::uint16_t>(std::min(last + 1, UINT16_MAX)), {}});
    chosen = all.end() - 1;
  }
  // Merges the current mappings into the ranges of the generation.
  for (auto& part : *process.parts) {
    auto m = part.mapping;
    for (auto at = overlapping(by_end, m); at != by_end.end() && at->second.start < m.end;
         at = by_end.erase(at)) {
      auto before = m.start - std::min(m.start, at->second.start);
      m.start -= before;
      m.offset -= before;
      m.end = std::max(m.end, at->second.end);
    }
    auto end = m.end;
    by_end.emplace(end, std::move(m));
  }
  chosen->by_end = std::make_shared<const decltype(by_end)>(std::move(by_end));
  process.generation = chosen->number;
}

bool Processes::tell(const Process& process, bool looked) {
  unwind_process entry{};
  entry.first = process.run->first;
  entry.count = static_cast<__u32>(process.run->mappings.size());
  entry.generation = process.generation;
  entry.looked = looked;
  entry.hotspot = process.hotspot ? process.hotspot->index : 0;
  return bpf_map_update_elem(bpf_map__fd(maps_.processes), &process.program, &entry, BPF_ANY) == 0;
}

/// False: it has HotSpot, which may not have started yet.
bool Processes::find_hotspot(pid_t tgid, Process& process) {
  if (!hotspots || process.hotspot || process.hotspot_unknown) return true;
  for (std::size_t i = 0; i < process.run->files.size(); i++) {
    const auto* file = process.run->files[i].get();
    const auto* known = file ? tables_.hotspot(*file) : nullptr;
    if (!known) continue;
    const auto& at = process.run->mappings[i];
    auto found = hotspots->add(tgid, *known,
                               {at.bias, at.start, at.start + (std::uint64_t{at.length} << 12)});
    if (const auto* state = std::get_if<runtimes::HotSpotState>(&found)) {
      process.hotspot_unknown = *state == runtimes::HotSpotState::unknown;
      return process.hotspot_unknown;
    }
    process.hotspot = std::get<0>(std::move(found));
    return true;
  }
  return true;
}

void Processes::look_at_starting() {
  for (auto at = starting_.begin(); at != starting_.end();) {
    auto& [tgid, tries] = *at;
    auto known = processes_.find(tgid);
    const bool found = known != processes_.end() && find_hotspot(tgid, known->second);
    if (found) tell(known->second, false);
    at = found || known == processes_.end() || !--tries ? starting_.erase(at) : std::next(at);
  }
}

bool Processes::look(pid_t tgid, std::uint64_t program, bool asked) {
  auto began = Clock::now();
  auto started = symbols::process_started(proc_root_, tgid);
  auto known = processes_.find(tgid);
  bool again = known != processes_.end() && known->second.started == started &&
               known->second.program == program;
  Process process;
  if (again) process = known->second;
  auto parts = started ? read(tgid, process.parts.get()) : std::nullopt;
  auto run = parts ? run_of(*parts) : nullptr;
  if (!run) return false;
  bool is_new = process.run != run;
  process.program = program;
  process.started = started;
  process.parts = std::make_shared<const std::vector<Part>>(std::move(*parts));
  process.run = std::move(run);
  if (is_new) choose_generation(process);
  if (!find_hotspot(tgid, process)) starting_.try_emplace(tgid, kStartTries);
  if (!tell(process, asked)) return false;
  if (known != processes_.end() && is_named(known->second.program) && !is_named(program))
    bpf_map_delete_elem(bpf_map__fd(maps_.processes), &known->second.program);
  auto now = Clock::now();
  process.next_look = now + std::max(Clock::duration{}, now - began - kShort) * kRest;
  processes_.insert_or_assign(tgid, std::move(process));
  return is_new;
}

void Processes::changed(pid_t tgid, bool asked) {
  if (processes_.contains(tgid)) changed_[tgid] |= asked;
}

std::vector<pid_t> Processes::look_at_changed(Clock::time_point now) {
  std::vector<pid_t> is_new;
  std::erase_if(changed_, [&](auto& entry) {
    auto [tgid, asked] = entry;
    auto known = processes_.find(tgid);
    if (known == processes_.end()) return true;
    if (now < known->second.next_look) return false;
    if (look(tgid, known->second.program, asked)) is_new.push_back(tgid);
    return true;
  });
  return is_new;
}

std::optional<std::uint32_t> Processes::image(pid_t tgid) const {
  auto known = processes_.find(tgid);
  if (known == processes_.end() || is_named(known->second.program)) return {};
  return stack_image(known->second.program, known->second.generation);
}

std::uint32_t Processes::image(pid_t tgid, std::uint64_t program) const {
  auto known = processes_.find(tgid);
  auto generation =
      known != processes_.end() && known->second.program == program ? known->second.generation : 1;
  return stack_image(program, generation);
}

std::vector<pid_t> Processes::known() const {
  std::vector<pid_t> all;
  for (auto& [tgid, process] : processes_) all.push_back(tgid);
  return all;
}

void Processes::forked(pid_t tgid, std::uint64_t program, pid_t parent) {
  auto from = processes_.find(parent);
  if (from == processes_.end()) return;
  auto child = from->second;
  child.program = program;
  child.started = symbols::process_started(proc_root_, tgid);
  if (child.started) processes_.insert_or_assign(tgid, std::move(child));
}

// Scanned again when tracing has started: the process may have called exec until then.
void Processes::name(pid_t tgid) {
  look(tgid, static_cast<std::uint64_t>(tgid) << 32 | UNWIND_ANY_EXEC, false);
  changed(tgid, false);
}

void Processes::expect(pid_t tgid) { read(tgid, nullptr); }

void Processes::know(const std::string& path) {
  file_by(symbols::open_handle(path, true), path, 0);
}

void Processes::know_own() {
  for (auto& m : symbols::read_mappings("/proc", getpid()).executable)
    if (m.path == "[vdso]") file_of(getpid(), m);
}

void Processes::know(const Fd& handle) {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(handle.get()), error)
                  .string();
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  file_by(handle, path, 0);
}

Fd Processes::unread_program(pid_t tgid) {
  return if_unread(symbols::open_handle(proc_root_ + "/" + std::to_string(tgid) + "/exe", true));
}

Fd Processes::unread_file(pid_t tgid, const std::string& path) {
  auto root = symbols::open_handle(proc_root_ + "/" + std::to_string(tgid) + "/root", true);
  return if_unread(root ? symbols::open_handle_in(root.get(), path, false)
                        : symbols::open_handle(path, false));
}

Fd Processes::if_unread(Fd handle) {
  auto id = symbols::identity_of(handle.get());
  return id && !tables_.known(*id) ? std::move(handle) : Fd();
}

void Processes::forget_ended() {
  std::set<std::uint64_t> programs;
  for (auto it = processes_.begin(); it != processes_.end();) {
    auto& [tgid, process] = *it;
    if (symbols::process_started(proc_root_, tgid) == process.started) {
      programs.insert(process.program);
      ++it;
      continue;
    }
    bpf_map_delete_elem(bpf_map__fd(maps_.processes), &process.program);
    it = processes_.erase(it);
  }
  // Entries of children that were never reported, or had ended when they were.
  std::set<std::uint64_t> strangers;
  (void)each_entry(maps_.processes, [&](const char* key, const char*) {
    std::uint64_t program = 0;
    memcpy(&program, key, sizeof program);
    if (programs.contains(program)) return;
    if (strangers_.contains(program))
      bpf_map_delete_elem(bpf_map__fd(maps_.processes), &program);
    else
      strangers.insert(program);
  });
  strangers_ = std::move(strangers);
}

/// Frees room to which no entry in the kernel's map refers, after walks in progress have ended.
void Processes::retire_runs(Clock::time_point now) {
  std::set<std::uint32_t> led_to;
  const auto all = each_entry(maps_.processes, [&](const char*, const char* value) {
    unwind_process entry{};
    memcpy(&entry, value, sizeof entry);
    led_to.insert(entry.first);
  });
  if (!all) return;
  std::erase_if(retired_, [&](auto& r) {
    if (now - r.since < Tables::kGrace || led_to.contains(r.first)) return false;
    room_.give(r.first, r.count);
    return true;
  });
  for (auto it = runs_.begin(); it != runs_.end();) {
    std::erase_if(it->second, [&](auto& run) {
      if (run.use_count() > 1) return false;
      retired_.push_back({now, run->first, static_cast<std::uint32_t>(run->mappings.size())});
      return true;
    });
    it = it->second.empty() ? runs_.erase(it) : std::next(it);
  }
}

/// If stacks are truncated for lack of memory, drops tables that were not used for a while.
void Processes::make_room_from_unused(Clock::time_point now) {
  if (now < next_turn_) return;
  next_turn_ = now + kTurn;
  std::map<File*, bool> used;
  auto each = [&](auto visit) {
    for (auto& [hash, alike] : runs_)
      for (auto& run : alike) visit(*run);
  };
  auto write = [&](const Run& run) {
    write_map(maps_.mappings, run.first * sizeof(unwind_mapping), run.mappings.data(),
              run.mappings.size() * sizeof(unwind_mapping));
  };
  std::vector<unwind_mapping> seen;
  each([&](Run& run) {
    seen.resize(run.mappings.size());
    if (!read_map(maps_.mappings, run.first * sizeof(unwind_mapping), seen.data(),
                  seen.size() * sizeof(unwind_mapping)))
      return;
    for (std::size_t i = 0; i < seen.size(); i++)
      if (run.files[i]) used[run.files[i].get()] |= seen[i].used != 0;
    write(run);  // clears the marks
  });
  bool wanted = false;
  for (auto& [file, is_used] : used)
    if (is_used && file->state == File::no_memory) wanted = file->wanted = true;
  if (!wanted) return;
  each([&](Run& run) {
    bool changed = false;
    for (std::size_t i = 0; i < run.mappings.size(); i++) {
      auto* file = run.files[i].get();
      if (!file || used[file] || !run.mappings[i].pages) continue;
      run.mappings[i].pages = 0;
      run.mappings[i].page = UNWIND_LACK_MEMORY;
      changed = true;
    }
    if (changed) write(run);
  });
  for (auto& [file, is_used] : used)
    if (!is_used) tables_.drop(*file);
}

void Processes::tend(Clock::time_point now) {
  tables_.settle(now);
  look_at_starting();
  if (now >= next_sweep_) {
    next_sweep_ = now + kSweep;
    forget_ended();
    retire_runs(now);
  }
  if (now < next_try_) return;
  next_try_ = now + kTry;
  std::vector<pid_t> again;
  bool lacking = false;
  for (auto& [tgid, process] : processes_)
    for (auto& part : *process.parts) {
      auto* table = part.file.table.get();
      if (!table || table->state != File::no_memory) continue;
      lacking = true;
      if (!table->wanted || !tables_.worth_trying(*table)) continue;
      again.push_back(tgid);
      break;
    }
  for (auto tgid : again) changed(tgid, false);
  if (lacking) make_room_from_unused(now);
}

}  // namespace coretap::unwind
