#include "stacks/frame_lines.hpp"

#include <elf.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "coretap/small_files.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostLineFiles = 8;  // open at a time
constexpr std::size_t kMostKnownPlaces = 64 << 10;
constexpr std::uint64_t kMostUnpacked = 64 << 20;  // bytes of one file's compressed sections
constexpr std::chrono::seconds kLineTime{10};      // CPU time for all files
constexpr const char* kDebugFiles = "/usr/lib/debug";

/// The build id in the notes of the running kernel.
std::string kernel_build_id() {
  const auto notes = read_file("/sys/kernel/notes", 64 << 10).value_or("");
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
    const auto name = at + sizeof note, text = name + padded(note.n_namesz);
    if (text + note.n_descsz > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.compare(name, 4, "GNU\0", 4) == 0)
      return symbols::hexadecimal(std::string_view(notes).substr(text, note.n_descsz));
    at = text + padded(note.n_descsz);
  }
  return {};
}

/// Where the kernel's file has its code: the first executable segment begins with _text.
std::uint64_t text_address(int fd) {
  const auto elf = symbols::open_elf(fd);
  std::size_t count = 0;
  if (!elf || ::elf_getphdrnum(elf.get(), &count) != 0) return 0;
  std::uint64_t least = UINT64_MAX;
  for (std::size_t i = 0; i < count; i++) {
    GElf_Phdr segment;
    if (::gelf_getphdr(elf.get(), static_cast<int>(i), &segment) && segment.p_type == PT_LOAD &&
        (segment.p_flags & PF_X) != 0)
      least = std::min(least, segment.p_vaddr);
  }
  return least;
}

std::chrono::nanoseconds cpu_time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

FrameLines::FrameLines()
    : left_(kLineTime), kernel_id_(kernel_build_id()), kernel_text_(kernel_address("_text")) {}

FrameLines::File& FrameLines::file(const std::string& build_id, const Candidates& candidates) {
  auto& wanted = files_[build_id];
  wanted.used = ++clock_;
  if (wanted.lines || wanted.none) return wanted;
  // Of the others, which keep what they know, only some are open.
  std::vector<File*> open;
  for (auto& [id, each] : files_)
    if (each.lines) open.push_back(&each);
  if (open.size() >= kMostLineFiles) {
    auto* oldest = *std::ranges::min_element(open, {}, &File::used);
    oldest->lines.reset();
    oldest->debug.fd.reset();
  }
  const std::string roots[] = {kDebugFiles};
  auto all = candidates();
  const auto path = symbols::build_id_path(kDebugFiles, build_id);
  all.push_back({symbols::open_handle(path, true), path});
  for (auto& [handle, path] : all) {
    const Fd fd = symbols::open_regular(handle, symbols::kMaxElfSize);
    if (!fd || symbols::build_id(fd.get()) != build_id) continue;
    wanted.debug = symbols::find_debug_file(fd.get(), path, roots);
    if (wanted.debug.fd) break;
  }
  if (wanted.debug.fd) wanted.lines.emplace(wanted.debug.fd.get(), kMostUnpacked);
  wanted.none = !wanted.debug.fd;
  return wanted;
}

void FrameLines::find(File& file, std::vector<std::uint64_t> addresses) {
  if (file.known.size() > kMostKnownPlaces) file.known.clear();
  std::erase_if(addresses, [&](auto address) { return file.known.contains(address); });
  if (addresses.empty()) return;
  if (!file.lines) return;
  if (left_.count() <= 0) {
    given_up_ = true;
    return;
  }
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  const auto before = cpu_time_now();
  auto places = file.lines->find(addresses, std::chrono::ceil<std::chrono::milliseconds>(left_));
  left_ -= cpu_time_now() - before;
  for (std::size_t i = 0; i < addresses.size(); i++) {
    auto& frames = places[i].frames;
    // Without its function, a chain of calls is of no use.
    if (!frames.empty() && frames.back().inlined) frames.clear();
    for (auto& frame : frames) frame.file = frame.file.substr(0, 4096);
    file.known[addresses[i]] = std::move(frames);
  }
}

std::vector<FrameLines::Found> FrameLines::user(pid_t tgid, std::span<const Frame> frames) {
  std::vector<Found> all(frames.size());
  std::map<const CodeFile*, std::vector<std::uint64_t>> wanted;
  const auto address_of = [](const Frame& f) {
    return f.symbol->module_offset - (f.exact ? 0 : 1);
  };
  const auto is_known = [](const Frame& f) {
    return f.symbol->file && f.symbol->file_offset && !f.symbol->file->build_id.empty();
  };
  for (auto& f : frames)
    if (is_known(f)) wanted[f.symbol->file.get()].push_back(address_of(f));
  for (auto& [code, addresses] : wanted)
    find(file(code->build_id,
              [&, &path = code->path] {
                const Fd root = symbols::open_handle(fmt::format("/proc/{}/root", tgid), true);
                std::vector<Candidate> all;
                all.push_back({symbols::open_handle_in(root.get(), path, false), path});
                all.push_back({symbols::open_handle(path, false), path});
                return all;
              }),
         addresses);
  for (std::size_t i = 0; i < frames.size(); i++) {
    if (!is_known(frames[i])) continue;
    auto& known = files_[frames[i].symbol->file->build_id].known;
    if (const auto found = known.find(address_of(frames[i])); found != known.end())
      all[i] = found->second;
  }
  return all;
}

std::vector<FrameLines::Found> FrameLines::kernel(std::span<const std::uint64_t> addresses) {
  std::vector<Found> all(addresses.size());
  if (kernel_id_.empty() || !kernel_text_) return all;
  const bool first = !files_.contains(kernel_id_);
  auto& vmlinux = file(kernel_id_, [] {
    std::vector<Candidate> all;
    utsname release{};
    ::uname(&release);
    for (auto [before, after] : {std::pair{"/usr/lib/debug/boot/vmlinux-", ""},
                                 {"/usr/lib/debug/lib/modules/", "/vmlinux"},
                                 {"/lib/modules/", "/build/vmlinux"},
                                 {"/boot/vmlinux-", ""}}) {
      auto path = fmt::format("{}{}{}", before, release.release, after);
      all.push_back({symbols::open_handle(path, true), path});
    }
    return all;
  });
  if (first && vmlinux.debug.fd)
    kernel_moved_ = *kernel_text_ - text_address(vmlinux.debug.fd.get());
  std::vector<std::uint64_t> places(addresses.begin(), addresses.end());
  for (auto& place : places) place -= kernel_moved_;
  find(vmlinux, places);
  for (std::size_t i = 0; i < places.size(); i++)
    if (const auto found = vmlinux.known.find(places[i]); found != vmlinux.known.end())
      all[i] = found->second;
  return all;
}

bool FrameLines::take_given_up() { return given_up_ && !std::exchange(told_, true); }

void add_line(std::string& word, const symbols::SourceFrame& source) {
  if (source.file.empty() || source.line == 0) return;
  word += fmt::format(" ({}:{})", source.file.substr(source.file.rfind('/') + 1), source.line);
}

}  // namespace coretap
