#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/recall.hpp"
#include "coretap/symbols.hpp"
#include "symbols/process_files.hpp"
#include "symbols/recalled_symbol.hpp"

namespace coretap {
namespace {

using symbols::LineReader;
using symbols::NameArena;

constexpr std::size_t kMaxLine = 1024;  // kernel symbol names have at most 511 bytes
constexpr std::uint64_t kMaxBytes = 1ULL << 30;
constexpr std::size_t kMaxSymbols = 8 << 20;
constexpr std::size_t kMaxModules = UINT16_MAX;
constexpr std::uint64_t kMaxDistance = 16 << 20;

// Best first. kData marks the end of code; it is not a symbol.
enum Rank : std::uint8_t { kGlobal, kLocal, kDecoyGlobal, kDecoyLocal, kData };

struct Entry {
  std::uint64_t address;
  std::uint32_t name;
  std::uint16_t module;
  Rank rank;
};

struct Line {
  std::uint64_t address;
  char type;
  std::string_view name;
  std::string_view module;
};

// Parses "ffffffff81000000 T name\t[module]".
bool parse(std::string_view text, Line& line) {
  if (!symbols::take_hex(text, line.address)) return false;
  if (text.size() < 4 || text[0] != ' ' || text[2] != ' ') return false;
  line.type = text[1];
  text.remove_prefix(3);
  const std::size_t end = std::min(text.find_first_of("\t "), text.size());
  line.name = text.substr(0, end);
  text.remove_prefix(end);
  line.module = "kernel";
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open != text.npos && close != text.npos && close > open + 1)
    line.module = text.substr(open + 1, close - open - 1);
  return !line.name.empty() && line.name.front() != '\0' && line.name.find('\0') == line.name.npos;
}

bool is_code(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
bool is_data(char type) { return ::strchr("bBdDrRgGsSnN", type) != nullptr && type != '\0'; }

Rank rank_of(const Line& line) {
  const bool decoy = line.name.starts_with("__pfx_") || line.name.starts_with("__cfi_");
  const bool global = line.type == 'T' || line.type == 'W';
  if (decoy) return global ? kDecoyGlobal : kDecoyLocal;
  return global ? kGlobal : kLocal;
}

Fd open_symbols(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

Error hidden_addresses() {
  Error error{.what = "kernel symbols are not available", .status = kUnsupported};
  std::string setting = symbols::read_small_file("/proc/sys/kernel/kptr_restrict", 16);
  if (setting.starts_with('2')) {
    error.why = "sysctl kernel.kptr_restrict=2 hides the kernel's addresses from everybody";
    error.hint = "run: sysctl kernel.kptr_restrict=1";
  } else {
    error.why = "the kernel hides its addresses: /proc/kallsyms shows only zeros";
    error.hint = "run as root or with CAP_SYSLOG";
  }
  return error;
}

}  // namespace

struct KernelSymbols::Impl {
  std::string path;
  Fd file;  // until it has been read
  int refused = 0;
  bool loaded = false;
  std::optional<Error> failure;
  std::vector<Entry> entries;  // sorted by address, one per address
  std::size_t functions = 0;
  NameArena names;
  std::vector<std::string> modules;

  std::optional<Error> read();
  void sort();
};

std::optional<Error> KernelSymbols::Impl::read() {
  const Fd fd = std::move(file);
  if (!fd) {
    return Error{.what = "kernel symbols are not available",
                 .why = "cannot open " + path + ": " + ::strerror(refused),
                 .hint = refused == ENOENT ? "the kernel needs CONFIG_KALLSYMS and a mounted /proc"
                         : refused == EACCES || refused == EPERM ? "run as root"
                                                                 : "",
                 .status = kUnsupported};
  }
  LineReader lines(fd.get(), kMaxLine, kMaxBytes);
  std::unordered_map<std::string, std::uint16_t> module_numbers;
  std::string last_module;
  std::uint16_t last_number = 0;
  std::size_t zeros = 0;
  std::uint64_t last_code = 0;  // of the preceding line; 0 if it was not code
  for (std::string_view text; lines.next(text) && entries.size() < kMaxSymbols;) {
    Line line{};
    if (lines.truncated() || !parse(text, line)) continue;
    if (line.address == 0) {
      ++zeros;
      continue;
    }
    if (!is_code(line.type)) {
      // End of a run of code: later addresses are in data, not in the last function.
      if (last_code != 0 && is_data(line.type) && line.address > last_code)
        entries.push_back({line.address, 0, 0, kData});
      last_code = 0;
      continue;
    }
    last_code = line.address;
    if (modules.empty() || line.module != last_module) {
      last_module = line.module;
      auto found = module_numbers.find(last_module);
      if (found == module_numbers.end()) {
        if (modules.size() == kMaxModules) continue;
        found = module_numbers.emplace(last_module, modules.size()).first;
        modules.push_back(last_module);
      }
      last_number = found->second;
    }
    entries.push_back({line.address, names.add(line.name), last_number, rank_of(line)});
    ++functions;
  }
  // With a partial list, all later addresses would get its last name.
  if (functions > 0 && lines.error() == 0) return {};
  if (zeros > 0) return hidden_addresses();
  return Error{.what = "kernel symbols are not available",
               .why = path + (lines.error() != 0 ? std::string(": ") + ::strerror(lines.error())
                                                 : std::string(" holds no function")),
               .hint = lines.error() != 0 ? "" : "the kernel needs CONFIG_KALLSYMS",
               .status = kUnsupported};
}

void KernelSymbols::Impl::sort() {
  // For equal ranks prefer the kernel's order, in which names are numbered.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.address, a.rank, a.name) < std::tie(b.address, b.rank, b.name);
  });
  bool in_data = true;
  std::uint64_t last = 0;
  std::erase_if(entries, [&](const Entry& entry) {
    const bool superfluous =
        entry.address == last || (entry.rank == kData && std::exchange(in_data, true));
    if (entry.address != last && entry.rank != kData) in_data = false;
    last = entry.address;
    return superfluous;
  });
  entries.shrink_to_fit();
  functions = static_cast<std::size_t>(std::count_if(
      entries.begin(), entries.end(), [](const Entry& entry) { return entry.rank != kData; }));
}

KernelSymbols::KernelSymbols(std::string path) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  if (replaying()) return;
  impl_->file = open_symbols(impl_->path);
  if (!impl_->file) impl_->refused = errno;
}
KernelSymbols::~KernelSymbols() = default;
KernelSymbols::KernelSymbols(KernelSymbols&&) noexcept = default;
KernelSymbols& KernelSymbols::operator=(KernelSymbols&&) noexcept = default;

Result<void> KernelSymbols::load() {
  if (!recall) return read_once();
  const auto why = recalled(Ask::kernel_symbols, "", [&] {
    const auto r = read_once();
    return r ? std::string() : packed({r.error().what, r.error().why, r.error().hint});
  });
  if (const auto words = unpacked(why); words.size() == 3)
    return Error{words[0], words[1], words[2], kUnsupported};
  return {};
}

Result<void> KernelSymbols::read_once() {
  if (!std::exchange(impl_->loaded, true)) {
    try {
      impl_->failure = impl_->read();
      if (!impl_->failure) impl_->sort();
    } catch (const std::bad_alloc&) {
      impl_->failure = Error{.what = "kernel symbols are not available", .why = "out of memory"};
    }
    if (impl_->failure) {
      impl_->entries = {};
      impl_->names = {};
      impl_->functions = 0;
    }
  }
  if (impl_->failure) return *impl_->failure;
  return {};
}

Symbol KernelSymbols::find(std::uint64_t address) {
  if (!recall) return look_up(address);
  return symbols::recalled(Ask::kernel_symbol, {address}, [&] { return look_up(address); });
}

Symbol KernelSymbols::look_up(std::uint64_t address) {
  Symbol symbol;
  if (!read_once()) return symbol;
  auto it = std::upper_bound(impl_->entries.begin(), impl_->entries.end(), address,
                             [](std::uint64_t a, const Entry& entry) { return a < entry.address; });
  if (it == impl_->entries.begin()) return symbol;
  --it;
  if (it->rank == kData || address - it->address > kMaxDistance) return symbol;
  symbol.name = impl_->names.get(it->name);
  symbol.module = impl_->modules[it->module];
  symbol.offset = address - it->address;
  return symbol;
}

namespace {

/// Calls back for each symbol until false is returned.
template <class Visit>
void each_line(const std::string& path, Visit visit) {
  const Fd fd = open_symbols(path);
  if (!fd) return;
  LineReader lines(fd.get(), kMaxLine, kMaxBytes);
  for (std::string_view text; lines.next(text);)
    if (Line line{}; !lines.truncated() && parse(text, line) && !visit(line)) return;
}

/// The same for symbols with an address: for none if addresses are hidden.
template <class Visit>
void each_symbol(const std::string& path, Visit visit) {
  each_line(path, [&](const Line& line) { return line.address == 0 || visit(line); });
}

bool addresses_hidden(const std::string& path) {
  bool hidden = true;
  each_line(path, [&](const Line& line) {
    hidden = line.address == 0;
    return hidden && !is_code(line.type);  // per-CPU data may begin at 0
  });
  return hidden;
}

}  // namespace

std::optional<Error> kernel_addresses_hidden(const std::string& path) {
  const auto answer =
      recalled(Ask::addresses_hidden, "", [&] { return addresses_hidden(path) ? "1" : "0"; });
  return answer == "0" ? std::nullopt : std::optional(hidden_addresses());
}

std::optional<std::uint64_t> kernel_address(std::string_view name, const std::string& path) {
  std::optional<std::uint64_t> address;
  each_symbol(path, [&](const Line& line) {
    if (line.name == name) address = line.address;
    return !address;
  });
  return address;
}

InterruptCode interrupt_code(const std::string& path) {
  InterruptCode code;
  std::uint64_t outer = 0;  // __do_softirq, until the next function is found
  each_symbol(path, [&](const Line& line) {
    for (auto* open : {&code.softirq_begin, &outer}) {
      if (*open == 0 || code.softirq_end != 0 || line.address <= *open) continue;
      code.softirq_begin = *open;
      code.softirq_end = line.address;
    }
    if (line.name == "__irqentry_text_start") code.irq_begin = line.address;
    if (line.name == "__irqentry_text_end") code.irq_end = line.address;
    // 6.10 moved the code out of __do_softirq (1dd1eff161bd).
    if (line.name == "handle_softirqs") code.softirq_begin = line.address, code.softirq_end = 0;
    if (line.name == "__do_softirq" && code.softirq_begin == 0) outer = line.address;
    return code.irq_end == 0 || code.softirq_end == 0;
  });
  return code;
}

LockCode lock_code(const std::string& path) {
  LockCode code;
  each_symbol(path, [&](const Line& line) {
    if (line.name == "__sched_text_start") code.sched.begin = line.address;
    if (line.name == "__sched_text_end") code.sched.end = line.address;
    if (line.name == "__lock_text_start") code.spin.begin = line.address;
    if (line.name == "__lock_text_end") code.spin.end = line.address;
    if (line.name.starts_with("__mmap_lock_do_trace_")) {
      if (code.mmap.begin == 0) code.mmap.begin = line.address;
      code.mmap.end = 0;  // until the function after the last of them
    } else if (code.mmap.begin != 0 && code.mmap.end == 0) {
      code.mmap.end = line.address;
    }
    return true;
  });
  return code;
}

std::size_t KernelSymbols::size() const { return impl_->functions; }

}  // namespace coretap
