#include "program/probe_target.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/machine.hpp"
#include "base/read_failures.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/proc_maps.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

using symbols::FunctionPlace;

// Each file costs a probe per symbol; a machine with more container images gets a note.
constexpr std::size_t kMaxFiles = 256;

bool is_shared(std::string_view library) {
  return library == "libc" || library.find(".so") != library.npos;
}

std::vector<std::string> library_directories() {
  return {fmt::format("/lib/{}", machine::kTriplet),
          "/lib64",
          "/lib",
          fmt::format("/usr/lib/{}", machine::kTriplet),
          "/usr/lib64",
          "/usr/lib",
          "/usr/local/lib"};
}

std::string reason(FunctionPlace::State state, std::string_view symbol) {
  switch (state) {
    case FunctionPlace::found:
      break;
    case FunctionPlace::no_elf:
      return "is no program or library";
    case FunctionPlace::foreign:
      return "is for another processor, or 32-bit";
    case FunctionPlace::stripped:
      return "has no symbols (stripped)";
    case FunctionPlace::absent:
      return fmt::format("has no function {}", symbol);
    case FunctionPlace::indirect:
      return fmt::format("chooses its {} at run time (IFUNC)", symbol);
    case FunctionPlace::outside:
      return fmt::format("has no code at its symbol {}", symbol);
  }
  return {};
}

}  // namespace

std::string ProbePoint::open_path() const {
  return fmt::format("/proc/self/fd/{}", file ? file->get() : -1);
}

ProbeTarget split_target(std::string_view target) {
  auto colon = target.rfind(':');
  if (colon == target.npos) return {target, {}};
  return {target.substr(0, colon), target.substr(colon + 1)};
}

bool is_library(std::string_view name, std::string_view library) {
  if (library == kAnyFile) return true;
  if (library == "libc")
    return is_library(name, "libc.so.6") ||
           ((name.starts_with("ld-musl-") || name.starts_with("libc.musl-")) &&
            name.ends_with(".so.1"));
  if (name == library) return true;
  return is_shared(library) && name.size() > library.size() && name.starts_with(library) &&
         name[library.size()] == '.' &&
         name.find_first_not_of("0123456789.", library.size()) == name.npos;
}

std::vector<std::string> files_by_name(std::string_view word) {
  if (word.empty()) return {std::string(kAnyFile)};
  if (word == "c") return {"libc"};
  if (word.find('/') != word.npos || word.find(".so") != word.npos) return {std::string(word)};
  return {fmt::format("lib{}.so", word), std::string(word)};
}

Result<void> uprobes_work() {
  auto type = probe_event_type("uprobe");
  return type ? Result<void>() : type.error();
}

bool probes_by_file(Kernel& kernel) {
  // The first versions filtered by the main thread instead of the process (46ba0e49b642 in 6.10,
  // which also added this link type).
  return kernel.has_enumerator("bpf_attach_type", "BPF_TRACE_KPROBE_SESSION");
}

ProbeFinder::ProbeFinder(const Config& config, std::string proc,
                         std::vector<std::string> directories)
    : config_(config), proc_(std::move(proc)), directories_(std::move(directories)) {
  if (directories_.empty()) directories_ = library_directories();
}

void ProbeFinder::add(Fd handle, std::string path, Files& files) {
  int error = handle ? 0 : errno;
  errno = 0;
  auto fd = symbols::open_regular(handle, symbols::kMaxElfSize);
  if (!symbols::identity_of(fd.get())) {
    if (!error) error = errno;
    if (error && !is_absence(error))
      files.left_out.push_back(
          fmt::format("{} cannot be opened: {}", printable(path), strerror(error)));
    return;
  }
  auto is_it = [&](auto& known) { return symbols::same_file(known.fd->get(), fd.get()); };
  if (std::ranges::any_of(files.files, is_it)) return;
  if (files.files.size() >= kMaxFiles) {
    files.beyond++;
    return;
  }
  // A file has one descriptor under all its names; it identifies the places in the file.
  auto known = std::ranges::find_if(opened_, is_it);
  if (known == opened_.end()) {
    opened_.push_back({std::make_shared<Fd>(std::move(fd)), path});
    known = std::prev(opened_.end());
  }
  files.files.push_back({known->fd, std::move(path)});
}

bool ProbeFinder::add_mapped(std::string_view pid, std::string_view library, Files& files) {
  auto directory = fmt::format("{}/{}", proc_, pid);
  Fd maps(open((directory + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps) {
    ReadFailures::note_open(errno);
    if (errno != ENOENT && errno != ESRCH) files.unreadable.emplace_back(pid);
    return false;
  }
  bool any = false;
  for (auto& map : symbols::read_mappings(maps.get()).executable) {
    const std::string_view path = map.path;
    if (!map.has_file() || !is_library(path.substr(path.rfind('/') + 1), library)) continue;
    any = true;
    // Opens the mapped file itself, independent of its name and mount namespace; by name if that is
    // not permitted.
    auto handle = symbols::open_handle(
        fmt::format("{}/map_files/{:x}-{:x}", directory, map.start, map.end), true);
    if (!symbols::identity_of(handle.get()) && !map.path_cut && !map.deleted) {
      handle = symbols::open_handle_in(symbols::open_handle(directory + "/root", true).get(),
                                       map.path, false);
      auto id = symbols::identity_of(handle.get());
      if (!id || id->inode != map.inode ||
          id->device != makedev(map.device_major, map.device_minor))
        handle.reset();
    }
    if (handle)
      add(std::move(handle), map.path, files);
    else
      files.left_out.push_back(
          fmt::format("{} of process {} cannot be opened", printable(map.path), pid));
  }
  return any;
}

void ProbeFinder::add_program(std::uint32_t pid, Files& files) {
  auto link = fmt::format("{}/{}/exe", proc_, pid);
  std::error_code error;
  auto path = std::filesystem::read_symlink(link, error);
  add(symbols::open_handle(link, true), error ? link : path.string(), files);
}

/// If the command is linked statically, the function may be in the program.
void ProbeFinder::add_command(Files& files) {
  auto path = symbols::program_path(config_.command.front());
  auto handle = symbols::open_handle(path, true);
  auto file = symbols::open_regular(handle, symbols::kMaxElfSize);
  auto elf = symbols::open_elf(file.get());
  if (elf && symbols::interpreter_of(elf.get()).empty()) add(std::move(handle), path, files);
}

/// Adds the file that a newly started program would use.
void ProbeFinder::add_installed(std::string_view library, Files& files) {
  if (!is_shared(library)) {
    const char* given = getenv("PATH");
    for (std::string_view path = given ? given : "/usr/bin:/bin"; !path.empty();) {
      auto file = fmt::format("{}/{}", take_until(path, ':'), library);
      if (file.front() == '/' && access(file.c_str(), X_OK) == 0)
        return add(symbols::open_handle(file, true), file, files);
    }
    return;
  }
  // Several kinds of C libraries can be installed; for other libraries the first match is used.
  for (auto& directory : directories_) {
    auto before = files.files.size();
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator i(directory, error), end; !error && i != end;
         i.increment(error))
      if (auto name = i->path().filename().string(); is_library(name, library))
        names.push_back(name);
    if (error) ReadFailures::note_open(error.value());
    std::sort(names.begin(), names.end());
    for (auto& name : names) {
      auto file = directory + "/" + name;
      add(symbols::open_handle(file, true), file, files);
    }
    if (files.files.size() > before && library != "libc") return;
  }
}

bool ProbeFinder::is_program(std::uint32_t pid, std::string_view library) const {
  auto directory = fmt::format("{}/{}", proc_, pid);
  if (is_shared(library)) {
    auto handle = symbols::open_handle(directory + "/exe", true);
    auto file = symbols::open_regular(handle, symbols::kMaxElfSize);
    auto elf = symbols::open_elf(file.get());
    return !elf || symbols::interpreter_of(elf.get()).empty();
  }
  auto is_it = [&](std::string_view name) {
    return name.starts_with(library) &&
           name.find_first_not_of("0123456789.", library.size()) == name.npos;
  };
  std::error_code error;
  auto path = std::filesystem::read_symlink(directory + "/exe", error);
  auto comm = read_file(directory + "/comm", 64);
  return is_it(path.filename().string()) || (comm && is_it(comm->substr(0, comm->find('\n'))));
}

std::vector<std::string> ProbeFinder::names_of_processes() {
  std::vector<std::string> names;
  for (auto pid : config_.tasks.pids) {
    Fd maps(open(fmt::format("{}/{}/maps", proc_, pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!maps) continue;
    for (auto& map : symbols::read_mappings(maps.get()).executable) {
      if (!map.has_file()) continue;
      auto name = map.path.substr(map.path.rfind('/') + 1);
      if (auto suffix = name.find(".so"); suffix != name.npos && name.starts_with("lib"))
        name = name.substr(3, suffix - 3);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

Result<ProbeFinder::Files> ProbeFinder::look_up(std::string_view word, bool typed) {
  Files found;
  const ReadFailures failures;
  const bool chosen = word.find('/') == word.npos && !config_.probes.library.empty();
  const std::string library(chosen ? config_.probes.library : word);
  if (library.find('/') != library.npos) {
    add(symbols::open_handle(library, true), library, found);
    if (!found.files.empty()) return found;
    const auto what = fmt::format("cannot probe '{}'", printable(library));
    if (failures) return failures.error(what);
    bool there = access(library.c_str(), R_OK) == 0;
    return Error{what, there ? "it is not a regular file" : strerror(errno),
                 "give the path of a library or program", kUsage};
  }
  for (auto pid : config_.tasks.pids) {
    if (add_mapped(std::to_string(pid), library, found)) continue;
    if (typed ? is_program(pid, library) : is_shared(library)) {
      add_program(pid, found);  // linked statically: the function may be in the program
    } else if (is_shared(library)) {
      found.left_out.push_back(fmt::format("process {} maps no {}", pid, printable(library)));
    } else {
      add_installed(library, found);  // it may exec that program later
      found.left_out.push_back(
          fmt::format("process {} as long as it does not run {}", pid, printable(library)));
    }
  }
  if (!config_.command.empty() && is_shared(library)) add_command(found);
  if (config_.tasks.pids.empty() || !config_.command.empty()) {
    add_installed(library, found);
    std::error_code error;
    for (std::filesystem::directory_iterator i(proc_, error), end; !error && i != end;
         i.increment(error))
      if (auto pid = i->path().filename().string(); parse_unsigned(pid))
        add_mapped(pid, library, found);
    if (error) {
      ReadFailures::note_open(error.value());
      found.left_out.push_back(fmt::format("files of other processes: {}", error.message()));
    }
    if (auto& some = found.unreadable; !some.empty())
      found.left_out.push_back(fmt::format(
          "files that only {} uses: /proc/{}/maps is not readable",
          some.size() == 1 ? fmt::format("process {}", some[0])
                           : fmt::format("one of {} processes such as {}", some.size(), some[0]),
          some[0]));
  }
  if (found.beyond)
    found.left_out.push_back(fmt::format("{} more mappings of such files, beyond {} different ones",
                                         found.beyond, kMaxFiles));
  if (!found.files.empty()) return found;
  if (failures) return failures.error(fmt::format("cannot look for {}", printable(library)));
  return Error{fmt::format("there is no {} here", printable(library)),
               config_.tasks.pids.empty() ? "it is not installed, and no running process uses it"
                                          : "the processes of --pid do not use it",
               "give its path with --library", kUnsupported};
}

const Result<ProbeFinder::Files>& ProbeFinder::files(std::string_view library, bool typed) {
  auto known = known_.find(library);
  if (known == known_.end())
    known = known_.emplace(std::string(library), look_up(library, typed)).first;
  return known->second;
}

Result<ProbePoints> ProbeFinder::find(std::string_view library, std::string_view function) {
  auto symbol = config_.probes.prefix + std::string(function);
  auto& candidates = files(library);
  if (!candidates) return candidates.error();
  ProbePoints found;
  found.left_out = candidates->left_out;
  std::string lacking;
  bool stripped = false;
  std::optional<Error> unread;
  for (auto& file : candidates->files) {
    const ReadFailures failures(file.path);
    auto place = symbols::find_function(file.fd->get(), symbol);
    for (auto offset : place.offsets) found.points.push_back({file.fd, file.path, symbol, offset});
    if (place.state == FunctionPlace::found) continue;
    if (failures) unread = failures.error(fmt::format("cannot look for {}", symbol));
    auto why = failures ? unread->why
                        : fmt::format("{} {}", printable(file.path), reason(place.state, symbol));
    stripped |= place.state == FunctionPlace::stripped;
    lacking += fmt::format("{}{}", lacking.empty() ? "" : "; ", why);
    found.left_out.push_back(std::move(why));
  }
  if (!found.points.empty()) return found;
  if (unread) return *unread;
  return Error{fmt::format("{} is nowhere to be found", symbol), lacking,
               stripped ? "a program that is linked statically and stripped cannot be probed by "
                          "name: use one with symbols"
                        : "give the path of the library or program that has it with --library",
               kUnsupported};
}

}  // namespace coretap
