// A quota of CPU time, for tests of several tools.
#pragma once
#include "harness.hpp"

namespace coretap::tooltest {

inline bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return static_cast<bool>(file);
}

/// A cgroup whose processes get a tenth of a CPU, in the cgroup version that has the controller.
class Quota {
 public:
  Quota() {
    auto name = "/coretap-quota-" + std::to_string(::getpid());
    if (auto first = std::string("/sys/fs/cgroup/cpu"); slurp(first + "/cpu.cfs_quota_us").size()) {
      path_ = first + name;
      limited_ = ::mkdir(path_.c_str(), 0755) == 0 &&
                 write_file(path_ + "/cpu.cfs_period_us", "100000") &&
                 write_file(path_ + "/cpu.cfs_quota_us", "10000");
      return;
    }
    second_.emplace();
    auto root = second_->path().substr(0, second_->path().rfind('/'));
    path_ = second_->path();
    limited_ = write_file(root + "/cgroup.subtree_control", "+cpu") &&
               write_file(path_ + "/cpu.max", "10000 100000");
  }
  ~Quota() {
    for (int i = 0; !second_ && i < 100 && ::rmdir(path_.c_str()) && errno == EBUSY; i++)
      ::usleep(20'000);
  }
  void add(pid_t pid) const {
    if (!limited_ || !write_file(path_ + "/cgroup.procs", std::to_string(pid)))
      throw Skip("no quota of CPU time for a cgroup here");
  }
  const std::string& path() const { return path_; }
  Counters stat() const { return Counters(path_ + "/cpu.stat"); }
  /// A shell's script that joins it and computes for long enough to lack quota.
  std::string computes() const {
    return "echo $$ > " + path_ +
           "/cgroup.procs; i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
  }
  /// In ns, of either version of cgroups.
  static double throttled(const Counters& since) {
    return static_cast<double>(since.growth("throttled_time")) +
           1e3 * static_cast<double>(since.growth("throttled_usec"));
  }

 private:
  std::optional<Cgroup> second_;
  std::string path_;
  bool limited_ = false;
};

}  // namespace coretap::tooltest
