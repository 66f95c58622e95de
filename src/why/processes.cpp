#include "why/processes.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "why/lines.hpp"

namespace coretap::why {

namespace {

constexpr std::size_t kMostProcesses = 256;
constexpr std::string_view kPrefix = "process.";

std::string cgroup_of(const std::string& directory) {
  std::string path;
  each_line(directory + "/cgroup", [&](auto& words) {
    if (words[0].starts_with("0::")) path = words[0].substr(3);
  });
  return path;
}

/// An address in the form of /proc/net/udp: words of 32 bits in the machine's order.
std::string address_of(std::string_view digits) {
  std::array<std::uint32_t, 4> words{};
  const auto count = digits.size() / 8;
  if (digits.size() % 8 || (count != 1 && count != 4)) return {};
  for (std::size_t i = 0; i < count; i++) {
    auto part = digits.substr(8 * i, 8);
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), words.at(i), 16);
    if (error != std::errc() || end != part.data() + part.size()) return {};
  }
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(count == 1 ? AF_INET : AF_INET6, words.data(), text, sizeof text) ? text : "";
}

}  // namespace

std::vector<std::uint32_t> processes_of(const Target& target) {
  if (!target.pids.empty()) return target.pids;
  std::vector<std::uint32_t> pids;
  if (!target.named()) return pids;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    auto pid = parse_unsigned(at->path().filename().string());
    if (!pid || pids.size() == kMostProcesses) continue;
    Account account{.pid = static_cast<std::uint32_t>(*pid)};
    account.comm = first_line_of(at->path().string() + "/comm");
    account.cgroup = cgroup_of(at->path().string());
    if (target.has(account)) pids.push_back(account.pid);
  }
  return pids;
}

void read_processes(Counters& to, const std::vector<std::uint32_t>& pids) {
  constexpr double kTicks = 100;  // USER_HZ
  for (auto pid : pids) {
    auto fields = stat_of(pid);
    constexpr struct {
      std::size_t field;
      const char* name;
      double unit;
    } kFields[] = {{12, "major_faults", 1},
                   {14, "user_s", kTicks},
                   {15, "system_s", kTicks},
                   {16, "children_s", kTicks},
                   {17, "children_s", kTicks}};
    for (auto& [field, name, unit] : kFields)
      if (field < fields.size())
        to[fmt::format("{}{}.{}", kPrefix, pid, name)] +=
            static_cast<double>(parse_unsigned(fields[field]).value_or(0)) / unit;
    each_line(fmt::format("/proc/{}/io", pid), [&](auto& words) {
      if (words.size() != 2) return;
      auto value = static_cast<double>(parse_unsigned(words[1]).value_or(0));
      const auto calls = words[0] == "syscr:" || words[0] == "syscw:";
      if (calls || words[0] == "rchar:" || words[0] == "wchar:")
        to[fmt::format("{}{}.io_{}", kPrefix, pid, calls ? "calls" : "bytes")] += value;
    });
  }
}

void add_up_processes(Counters& grown) {
  Counters sums;
  for (auto at = grown.lower_bound(kPrefix); at != grown.end() && at->first.starts_with(kPrefix);
       at = grown.erase(at))
    sums["target" + at->first.substr(at->first.find('.', kPrefix.size()))] += at->second;
  grown.merge(sums);
}

bool NameQueries::owned(std::uint64_t inode) {
  if (auto known = owned_.find(inode); known != owned_.end()) return known->second;
  const auto wanted = fmt::format("socket:[{}]", inode);
  const bool found = std::ranges::any_of(pids_, [&](auto pid) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end;
         !error && at != end; at.increment(error)) {
      std::error_code closed;
      if (std::filesystem::read_symlink(at->path(), closed) == wanted) return true;
    }
    return false;
  });
  constexpr std::size_t kMostKnown = 4096;
  if (owned_.size() == kMostKnown) owned_.clear();
  return owned_[inode] = found;
}

void NameQueries::look() {
  if (pids_.empty()) return;
  const auto now = Clock::now();
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - last_);
  last_ = now;
  for (auto* table : {"udp", "udp6"})
    each_line(fmt::format("/proc/{}/net/{}", pids_[0], table), [&](auto& words) {
      constexpr std::string_view kPort = ":0035";
      if (words.size() < 10 || !words[2].ends_with(kPort)) return;
      auto inode = parse_unsigned(words[9]);
      if (!inode || !owned(*inode)) return;
      waited_us_ += static_cast<std::uint64_t>(since.count());
      server_ = address_of(std::string_view(words[2]).substr(0, words[2].size() - kPort.size()));
    });
  cost_ = Clock::now() - now;
}

std::chrono::milliseconds NameQueries::interval() const {
  using std::chrono::milliseconds;
  if (pids_.empty()) return milliseconds(0);
  constexpr milliseconds kLeast(50);
  return std::max(kLeast, std::chrono::duration_cast<milliseconds>(50 * cost_));
}

void NameQueries::add_to(Facts& facts) const {
  if (!waited_us_) return;
  facts.counters["names.waited_us"] = static_cast<double>(waited_us_);
  facts.texts["names.server"] = server_;
}

}  // namespace coretap::why
