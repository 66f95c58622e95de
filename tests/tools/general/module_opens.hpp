// Calls of a module's function whose number is known: opens of a file on a 9p file system, as in
// guests. A command opens other files, too, but fewer times.
#pragma once

#include "probes.hpp"

namespace coretap::tooltest {

/// int p9_client_open(struct p9_fid *fid, int mode), since 2.6.26.
inline constexpr char kOpenOf9p[] = "9pnet:p9_client_open";
inline constexpr std::uint64_t kOpensOf9p = 23;

struct ModuleOpens {
  std::string file;
  std::string message_bytes;  ///< of the mount, in a struct of the module
  bool has_types = access("/sys/kernel/btf/9pnet", R_OK) == 0;

  ModuleOpens() {
    need_kprobes();
    if (access("/sys/module/9pnet/coresize", R_OK) != 0)
      throw Skip("no module 9pnet here: guests have it");
    std::ifstream mounts("/proc/mounts");
    for (std::string device, directory, type, options, rest;
         file.empty() && mounts >> device >> directory >> type >> options;) {
      std::getline(mounts, rest);
      auto bytes = options.find("msize=");
      auto modules = directory + "/modules.dep";
      if (type != "9p" || bytes == options.npos || access(modules.c_str(), R_OK)) continue;
      file = modules;
      message_bytes = options.substr(bytes + 6, options.find(',', bytes) - bytes - 6);
    }
    if (file.empty()) throw Skip("no 9p file system with kernel modules here: guests have it");
  }

  Strings command() const {
    return {"sh", "-c",
            fmt::format("i=0; while [ $i -lt {} ]; do : <{}; i=$((i+1)); done", kOpensOf9p, file)};
  }

  /// Number of files, by key, that were opened the known number of times.
  static std::size_t opened(const std::map<std::string, std::uint64_t>& times) {
    return static_cast<std::size_t>(
        std::ranges::count_if(times, [](auto& file) { return file.second == kOpensOf9p; }));
  }
};

}  // namespace coretap::tooltest
