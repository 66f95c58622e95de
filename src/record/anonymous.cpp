#include "record/anonymous.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "lib/core/shared.h"
#include "lib/stack/runtime.h"

namespace coretap::record {

namespace {

constexpr std::uint64_t turned(std::uint64_t x, int by) { return x << by | x >> (64 - by); }

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}
bool begins_with(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](auto word) { return text.starts_with(word); });
}

/// Bytes between words, which stay.
bool is_between(char c) {
  constexpr std::string_view kBetween = R"(/:=,;|[](){}<>"'`&?@#*+%!$^\)";
  return static_cast<unsigned char>(c) <= ' ' || kBetween.find(c) != kBetween.npos;
}

/// Files of the kernel in a cgroup's directory.
bool is_cgroup_file(std::string_view name) {
  return begins_with(name, {"cgroup.", "cpu.", "cpuset.", "hugetlb.", "io.", "irq.", "memory.",
                            "misc.", "pids.", "rdma."});
}

/// Files of this kind have numbers, and words of the kernel.
bool is_of_numbers(std::string_view path) {
  if (is_any_of(path, {"/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"})) return false;
  return begins_with(path, {"/sys/", "/proc/sys/", "/proc/pressure/"}) ||
         is_any_of(path, {"/proc/buddyinfo", "/proc/cpuinfo", "/proc/diskstats", "/proc/loadavg",
                          "/proc/meminfo", "/proc/pagetypeinfo", "/proc/schedstat",
                          "/proc/softirqs", "/proc/stat", "/proc/uptime", "/proc/version",
                          "/proc/vmstat", "/proc/zoneinfo"});
}

/// Names that the kernel gives, not the user; or numbers.
bool is_kernels_disk(std::string_view name) {
  if (name.find_first_not_of("0123456789:") == name.npos) return true;
  return begins_with(name, {"dm-", "fd", "loop", "md", "mmcblk", "nbd", "nullb", "nvme", "ram",
                            "rbd", "sd", "sr", "vd", "xvd", "zram"}) &&
         name.size() < 16 && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

std::string_view leaf(std::string_view path) {
  if (auto dot = path.rfind('.'); dot != path.npos) path.remove_prefix(dot + 1);
  return path.substr(0, path.find('['));
}

bool is_chars(const Member& m) {
  return m.kind == Member::signed_number && m.bytes == 1 && m.count > 1;
}
bool is_address(const Member& m) {
  return m.kind == Member::unsigned_number && m.bytes == 1 && m.count == 16 &&
         is_any_of(leaf(m.path), {"local", "remote", "address", "source", "destination", "saddr",
                                  "daddr", "nat", "peer"});
}
/// Words of the kernel and of its modules.
bool stays(const Member& m) {
  return is_any_of(leaf(m.path),
                   {"algorithm", "disk", "driver", "fs", "queue", "scheduler", "state", "zone"});
}

/// As a list (base/recall.hpp), each replaced.
template <class Replace>
std::string each(std::string_view list, Replace replace) {
  auto all = unpacked(list);
  for (auto& one : all) one = replace(one);
  return packed(all);
}

}  // namespace

Anonymous::Anonymous() {
  if (getrandom(key_.data(), sizeof key_, 0) == sizeof key_) return;
  std::random_device device;
  for (auto& word : key_) word = std::uint64_t{device()} << 32 | device();
}

/// SipHash-2-4: a guessed name cannot be checked against a token without the key.
std::uint64_t Anonymous::hash(std::string_view bytes) const {
  std::uint64_t v[] = {key_[0] ^ 0x736f6d6570736575, key_[1] ^ 0x646f72616e646f6d,
                       key_[0] ^ 0x6c7967656e657261, key_[1] ^ 0x7465646279746573};
  auto rounds = [&v](int count) {
    for (; count; count--) {
      v[0] += v[1];
      v[2] += v[3];
      v[1] = turned(v[1], 13) ^ v[0];
      v[3] = turned(v[3], 16) ^ v[2];
      v[0] = turned(v[0], 32) + v[3];
      v[2] += v[1];
      v[1] = turned(v[1], 17) ^ v[2];
      v[3] = turned(v[3], 21) ^ v[0];
      v[2] = turned(v[2], 32);
    }
  };
  for (std::size_t at = 0;; at += 8) {
    const auto part = bytes.substr(at, 8);
    std::uint64_t word = 0;
    memcpy(&word, part.data(), part.size());
    const bool last = part.size() < 8;
    if (last) word |= std::uint64_t{bytes.size()} << 56;
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
    if (last) break;
  }
  v[2] ^= 0xff;
  rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

std::string Anonymous::word(std::string_view name) const {
  if (is_any_of(name, {"", ".", ".."})) return std::string(name);
  return fmt::format("p-{:08x}", hash(name) >> 32);
}

std::string Anonymous::text(std::string_view text) const {
  std::string to;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, is_between) - text.begin();
    to += word(text.substr(0, static_cast<std::size_t>(end)));
    text.remove_prefix(static_cast<std::size_t>(end));
    if (text.empty()) break;
    to += text[0];
    text.remove_prefix(1);
  }
  return to;
}

std::string Anonymous::path(std::string_view path) const {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.starts_with('[')) return std::string(path);
  if (path.ends_with(kDeleted))
    return this->path(path.substr(0, path.size() - kDeleted.size())) + std::string(kDeleted);
  for (std::string_view directory :
       {"/sys/fs/cgroup/", "/sys/class/net/", "/sys/devices/virtual/net/"}) {
    if (!path.starts_with(directory)) continue;
    const auto rest = path.substr(directory.size());
    // Of an interface, only its name; of a cgroup, all but the name of the kernel's file.
    const auto cut = directory == "/sys/fs/cgroup/" ? rest.rfind('/') : rest.find('/');
    const auto last = cut == rest.npos ? std::string_view() : rest.substr(cut);
    const bool keeps = directory != "/sys/fs/cgroup/" || is_cgroup_file(last.substr(!last.empty()));
    if (last.empty() && is_cgroup_file(rest)) return std::string(path);
    return std::string(directory) + text(rest.substr(0, cut)) +
           (keeps ? std::string(last) : text(last));
  }
  const bool of_process = path.starts_with("/proc/") && path.size() > 6 &&
                          ((path[6] >= '0' && path[6] <= '9') || path.substr(6, 4) == "self");
  if (begins_with(path,
                  {"/usr/", "/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/proc/", "/sys/"}) &&
      !path.starts_with("/usr/local/") && !of_process && path.find("/..") == path.npos)
    return std::string(path);
  return text(path);
}

std::string Anonymous::with_paths(std::string_view text) const {
  constexpr std::string_view kBefore = " :(='\",;", kAfter = " :)'\",;";
  std::string to;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = text[at] == '/' && at + 1 < text.size() && text[at + 1] != ' ' &&
                        (!at || kBefore.find(text[at - 1]) != kBefore.npos);
    if (!begins) {
      to += text[at++];
      continue;
    }
    const auto end = std::min(text.find_first_of(kAfter, at), text.size());
    to += path(text.substr(at, end - at));
    at = end;
  }
  return to;
}

std::string Anonymous::target(std::string_view target) const {
  const auto colon = target.find(':');
  const auto first = target.substr(0, colon);
  if (target.find('/') == target.npos) {
    const bool known =
        colon == target.npos ||
        is_any_of(first, {"", "c", "k", "p", "r", "t", "u", "fentry", "fexit", "kernel", "kprobe",
                          "kretprobe", "libc", "tracepoint", "uprobe", "uretprobe", "usdt"});
    return known ? std::string(target) : word(first) + std::string(target.substr(colon));
  }
  std::string to;
  for (std::string_view rest = target;;) {
    const auto end = std::min(rest.find(':'), rest.size());
    const auto part = rest.substr(0, end);
    to += part.find('/') == part.npos ? std::string(part) : path(part);
    if (end == rest.size()) return to;
    to += ':';
    rest.remove_prefix(end + 1);
  }
}

std::string Anonymous::question(Ask what, std::string_view question) const {
  switch (what) {
    case Ask::file:
    case Ask::inode:
    case Ask::directories:
      return question.starts_with('/') ? path(question) : std::string(question);
    default:  // numbers, and names of types of the kernel
      return std::string(question);
  }
}

/// Of a user's code: the name of a function stays, and that of a file of the system.
std::string Anonymous::symbol(std::string_view answer) const {
  constexpr std::size_t kName = 0, kModule = 1, kLinkage = 2, kNumbers = 3, kPath = 4;
  constexpr std::uint64_t kInterpreted = 32;  // symbols/recalled_symbol.cpp
  auto texts = unpacked(answer);
  if (texts.size() <= kNumbers) return {};
  for (auto at : {kName, kLinkage}) texts[at] = with_paths(texts[at]);
  std::string_view rest = texts[kNumbers];
  std::uint64_t flags = 0, number = 0;
  if (!take_varint(rest, flags)) return {};
  if (flags & kInterpreted) {
    // The numbers of its place and line, then the file's name; the module is the runtime.
    for (int i = 0; i < 4; i++)
      if (!take_varint(rest, number)) return {};
    const auto numbers = texts[kNumbers].substr(0, texts[kNumbers].size() - rest.size());
    texts[kNumbers] = numbers + path(rest);
    // Functions that are part of it: a name, the line, the file's name.
    for (auto at = kPath; at + 2 < texts.size(); at += 3) {
      texts[at] = with_paths(texts[at]);
      texts[at + 2] = path(texts[at + 2]);
    }
  } else if (texts.size() > kPath) {
    const bool same = path(texts[kPath]) == texts[kPath];
    if (!same) texts[kModule] = path(texts[kModule]);
    texts[kPath] = path(texts[kPath]);
  } else {
    texts[kModule] = path(texts[kModule]);
  }
  return packed(texts);
}

std::string Anonymous::answer(Ask what, std::string_view question, std::string_view answer) const {
  const auto as_path = [this](auto& one) { return path(one); };
  switch (what) {
    case Ask::enumerators:
    case Ask::kernel_symbol:
    case Ask::kernel_symbols:
    case Ask::addresses_hidden:
    case Ask::own_process:
    case Ask::online_cpus:
    case Ask::possible_cpus:
    case Ask::page_bytes:
    case Ask::tick:
    case Ask::kernel:
    case Ask::totals:
    case Ask::kernel_has:
    case Ask::inode:
    case Ask::fine_slots:
    case Ask::counts:
    case Ask::syscall:
    case Ask::clocks:
      return std::string(answer);
    case Ask::disk:
      return is_kernels_disk(answer) ? std::string(answer) : text(answer);
    case Ask::user_symbol:
      return symbol(answer);
    case Ask::file:  // '+' and what is in it, or '-'
      if (answer.empty() || is_of_numbers(question)) return std::string(answer);
      return answer[0] + text(answer.substr(1));
    case Ask::hooks:
      return each(answer, [&](auto& hook) {
        auto parts = unpacked(hook);
        for (std::size_t i = 1; i < parts.size(); i++)
          parts[i] = i == 1 ? each(parts[i], [this](auto& one) { return with_paths(one); })
                            : each(parts[i], as_path);
        return packed(parts);
      });
    case Ask::limits:
      return each(answer, [this](auto& one) { return with_paths(one); });
    case Ask::targets:
      return each(answer, [this](auto& one) { return target(one); });
    case Ask::directories:
      return each(answer,
                  [this](auto& one) { return one.starts_with('/') ? path(one) : text(one); });
    case Ask::cgroup:
      return each(answer, [this](auto& one) { return text(one); });
    case Ask::user:
    case Ask::report:
      break;
  }
  return text(answer);
}

bool Anonymous::knows(const Layout& layout) {
  // Bits have "+" in their names; what else is only bytes may be anything.
  return layout && std::ranges::all_of(layout.members, [](auto& m) {
           return m.kind != Member::bytes_only || m.path.find('+') != m.path.npos;
         });
}

/// IPv4 addresses become those of 10.0.0.0/8, others those of fd00::/8. The host itself and none
/// stay.
void Anonymous::address(char* bytes) const {
  constexpr std::size_t kBytes = 16, kIpv4 = 4;
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  auto zeros = [&](std::size_t from, std::size_t to) {
    return std::all_of(bytes + from, bytes + to, [](char c) { return !c; });
  };
  if (zeros(0, kBytes - 1) && static_cast<std::uint8_t>(bytes[kBytes - 1]) <= 1)
    return;  // :: and ::1
  const bool mapped = memcmp(bytes, kMapped, sizeof kMapped) == 0;
  if (mapped || zeros(kIpv4, kBytes)) {
    auto* four = mapped ? bytes + sizeof kMapped : bytes;
    if (four[0] == 0 || four[0] == 127) return;
    const auto number = hash({four, kIpv4});
    four[0] = 10;
    memcpy(four + 1, &number, kIpv4 - 1);
    return;
  }
  const std::uint64_t numbers[] = {hash({bytes, kBytes}), hash({bytes, kBytes - 1})};
  memcpy(bytes, numbers, kBytes);
  bytes[0] = static_cast<char>(0xfd);
}

std::string Anonymous::fields(const Layout& layout, std::string_view bytes, bool cgroups) const {
  std::string to(bytes);
  if (to.size() < layout.bytes) return std::string(bytes.size(), '\0');
  for (auto& m : layout.members) {
    auto* at = to.data() + m.at;
    if (is_address(m)) address(at);
    if (!is_chars(m) || stays(m)) continue;
    const bool is_comm = leaf(m.path).ends_with("comm");
    const bool shares = std::ranges::any_of(layout.members, [&](auto& other) {
      return &other != &m && other.at == m.at && !is_chars(other);
    });
    if (shares && cgroups) continue;
    const std::string_view chars(at, m.count);
    const auto used =
        is_comm ? std::min(chars.find('\0'), chars.size()) : chars.find_last_not_of('\0') + 1;
    auto token = is_comm ? word(chars.substr(0, used)) : text(chars.substr(0, used));
    token.resize(m.count);
    memcpy(at, token.data(), m.count);
  }
  return to;
}

std::string Anonymous::record(const Layout& layout, std::string_view bytes) const {
  if (!layout || bytes.size() < layout.bytes) return {};
  auto to = fields(layout, bytes.substr(0, layout.bytes));
  for (auto& m : layout.members) {
    if (m.kind != Member::text) continue;
    ::text place{};
    memcpy(&place, bytes.data() + m.at, sizeof place);
    std::string words;
    if (std::size_t{place.at} + place.bytes <= bytes.size())
      words = text(bytes.substr(place.at, place.bytes));
    place = {.at = static_cast<__u16>(std::min<std::size_t>(to.size(), UINT16_MAX)), .bytes = 0};
    words.resize(std::min<std::size_t>(words.size(), UINT16_MAX - place.at));
    place.bytes = static_cast<__u16>(words.size());
    memcpy(to.data() + m.at, &place, sizeof place);
    to += words;
  }
  return to;
}

std::string Anonymous::row_text(const Layout& key, std::string_view bytes) const {
  ::row_text row{};
  if (bytes.size() < sizeof row || key.bytes > sizeof row.key) return {};
  memcpy(&row, bytes.data(), sizeof row);
  const auto now = fields(key, {row.key, sizeof row.key});
  memcpy(row.key, now.data(), sizeof row.key);
  const std::size_t at = row.text.at, size = row.text.bytes;
  auto words = at + size <= bytes.size() ? text(bytes.substr(at, size)) : std::string();
  words.resize(std::min<std::size_t>(words.size(), UINT16_MAX - sizeof row));
  row.text = {.at = sizeof row, .bytes = static_cast<__u16>(words.size())};
  return std::string(reinterpret_cast<const char*>(&row), sizeof row) + words;
}

std::string Anonymous::runtime_code(std::string_view bytes) const {
  ::runtime_code code{};
  memcpy(&code, bytes.data(), std::min(bytes.size(), sizeof code));
  memset(code.file_text, 0, sizeof code.file_text);
  memset(code.name_text, 0, sizeof code.name_text);
  memset(code.lines, 0, sizeof code.lines);
  code.line_bytes = 0;
  code.file = code.name = {};
  return {reinterpret_cast<const char*>(&code), offsetof(::runtime_code, lines)};
}

}  // namespace coretap::record
