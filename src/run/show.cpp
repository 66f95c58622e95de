// `coretap show --info`: what a recording has, without showing it.
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"
#include "kernel/capabilities.hpp"
#include "record/replay.hpp"
#include "run/commands.hpp"
#include "run/run.hpp"
#include "text/errors.hpp"

namespace coretap {

void confine_show(bool opens_files) {
  if (auto* filter = seccomp_init(SCMP_ACT_ALLOW)) {
    auto deny = [&](std::initializer_list<const char*> names) {
      for (auto* name : names)
        if (int number = seccomp_syscall_resolve_name(name); number != __NR_SCMP_ERROR)
          seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    };
    deny({"execve",
          "execveat",
          "fork",
          "vfork",
          "clone",
          "clone3",
          "socket",
          "connect",
          "ptrace",
          "process_vm_readv",
          "process_vm_writev",
          "pidfd_open",
          "pidfd_getfd",
          "kill",
          "tkill",
          "bpf",
          "perf_event_open",
          "mount",
          "umount2",
          "init_module",
          "finit_module",
          "setns",
          "unshare",
          "chroot",
          "io_uring_setup",
          "keyctl"});
    if (!opens_files) deny({"open", "openat", "openat2", "creat", "unlink", "unlinkat", "rename"});
    seccomp_load(filter);
    seccomp_release(filter);
  }
  retain_capabilities(opens_files ? CapabilitySet{Capability::dac_override, Capability::fowner}
                                  : CapabilitySet{});
}

int show_info(const std::string& path) {
  auto fail = [](const Error& e) { return print_error("coretap show", e); };
  record::Replay replay;
  if (auto r = replay.open(path); !r) return fail(r.error());
  recall = &replay;
  use_zone(replay.head());
  std::uint64_t from = 0, until = 0, reports = 0;
  bool finished = false;
  for (;;) {
    auto mark = replay.next();
    if (!mark) return fail(mark.error());
    if (!*mark) break;
    if (!from) from = (*mark)->monotonic_ns;
    until = std::max(until, (*mark)->monotonic_ns);
    reports += (*mark)->did == record::Did::report || (*mark)->did == record::Did::last;
    finished |= (*mark)->did == record::Did::finish;
  }
  recall = nullptr;
  auto& head = replay.head();
  std::vector<std::string> words{head.tool};
  words.insert(words.end(), head.words.begin(), head.words.end());
  auto& file = replay.file();
  auto text = fmt::format("{}, coretap {}, recorded on {} ({}, {})\n", fmt::join(words, " "),
                          head.coretap, head.host, head.kernel, head.machine);
  text = printable(text.substr(0, text.size() - 1)) + "\n";
  text += from ? fmt::format("  {} to {}, {:.1f} s\n", iso_time(from), iso_time(until),
                             static_cast<double>(until - from) / 1e9)
               : "  it ends before tracing began\n";
  text += fmt::format("  {} records, {} reports; {} bytes, {} unpacked; {}\n", replay.records(),
                      reports, file.file_bytes(), file.unpacked_bytes(),
                      finished ? "whole" : "its end is missing");
  return print_text(text);
}

}  // namespace coretap
