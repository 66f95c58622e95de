#include "unwind/running_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "symbols/process_files.hpp"

namespace coretap::unwind {

namespace {

std::vector<pid_t> processes_in(const std::string& proc_root) {
  std::vector<pid_t> all;
  std::error_code error;
  for (std::filesystem::directory_iterator at(proc_root, error), end; at != end;
       at.increment(error)) {
    auto name = at->path().filename().string();
    pid_t pid = 0;
    auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc{} && rest == name.data() + name.size()) all.push_back(pid);
  }
  return all;
}

}  // namespace

bool RunningFiles::count_next() {
  if (processes_.empty()) return false;
  auto pid = processes_.back();
  processes_.pop_back();
  for (auto& m : symbols::read_mappings(proc_root_, pid).executable) {
    if (!m.has_file()) continue;
    auto& known = by_inode_[{m.device_major, m.device_minor, m.inode}];
    if (!known.times++) {
      known.by = pid;
      known.mapping = std::move(m);
    }
  }
  return true;
}

bool RunningFiles::go_on(Clock::time_point until,
                         const std::function<bool(pid_t, const symbols::Mapping&)>& know) {
  if (!listed_) processes_ = processes_in(proc_root_);
  listed_ = true;
  while (Clock::now() < until) {
    if (count_next()) continue;
    if (!sorted_) {
      for (auto& [inode, mapped] : by_inode_) files_.push_back(std::move(mapped));
      by_inode_.clear();
      std::stable_sort(files_.begin(), files_.end(),
                       [](auto& a, auto& b) { return a.times < b.times; });
      sorted_ = true;
    }
    if (files_.empty()) return false;
    auto next = std::move(files_.back());
    files_.pop_back();
    if (!know(next.by, next.mapping)) files_.clear();
  }
  return true;
}

}  // namespace coretap::unwind
