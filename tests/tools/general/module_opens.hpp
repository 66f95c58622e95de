// Calls of a module's function whose number is known: opens of a file on a 9p file system, as
// guests have it. Other files are opened too, to run a command, but fewer times.
#pragma once
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "../harness.hpp"

namespace coretap::tooltest {

/// int p9_client_open(struct p9_fid *fid, int mode), since 2.6.26.
inline constexpr char kOpenOf9p[] = "9pnet:p9_client_open";
inline constexpr std::uint64_t kOpensOf9p = 23;

struct ModuleOpens {
  std::string file;
  std::string message_bytes;  ///< of the mount, in the module's own struct
  bool has_types = access("/sys/kernel/btf/9pnet", R_OK) == 0;

  ModuleOpens() {
    if (access("/sys/bus/event_source/devices/kprobe/type", R_OK) != 0)
      throw Skip("no kprobes on this kernel: guests have them");
    if (access("/sys/module/9pnet/coresize", R_OK) != 0)
      throw Skip("no module 9pnet here: guests have it");
    std::ifstream mounts("/proc/mounts");
    for (std::string line; file.empty() && std::getline(mounts, line);) {
      std::istringstream words(line);
      std::string device, directory, type, options;
      words >> device >> directory >> type >> options;
      auto bytes = options.find("msize=");
      if (type != "9p" || bytes == options.npos ||
          access((directory + "/modules.dep").c_str(), R_OK))
        continue;
      file = directory + "/modules.dep";
      message_bytes = options.substr(bytes + 6, options.find(',', bytes) - bytes - 6);
    }
    if (file.empty()) throw Skip("no 9p file system with kernel modules here: guests have it");
  }

  Strings command() const {
    return {"sh", "-c",
            "i=0; while [ $i -lt " + std::to_string(kOpensOf9p) + " ]; do : <" + file +
                "; i=$((i+1)); done"};
  }

  /// By what identifies each file: how many were opened the known number of times?
  static std::size_t opened(const std::map<std::string, std::uint64_t>& times) {
    std::size_t files = 0;
    for (auto& [file, n] : times) files += n == kOpensOf9p;
    return files;
  }
};

}  // namespace coretap::tooltest
