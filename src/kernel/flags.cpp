#include "coretap/flags.hpp"

#include "base/machine.hpp"
#include "coretap/parse.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

namespace coretap {

namespace {

using machine::kLargeFile;

#include "kernel/flag_words.inc"  // the tables of flag_words.txt

/// How an argument's value is converted to words.
enum Kind {
  flags,        ///< several words
  one_choice,   ///< one word
  with_signal,  ///< several, and a signal in the lowest byte
};

constexpr std::size_t kAlways = ~std::size_t{0};

struct Use {
  std::string_view calls;  ///< calls with this argument: "mmap,mmap2"
  std::size_t number;
  std::span<const FlagWord> words;
  Kind kind = flags;
  bool wide = false;  ///< the kernel uses the whole register, not its lower half
  /// Applies only if argument `when` has one of two values.
  std::size_t when = kAlways;
  std::uint64_t is = 0, or_is = 0;
};

constexpr Use kUses[] = {
    {"open,mq_open", 1, kOpen},
    {"openat,open_by_handle_at", 2, kOpen},
    {"pipe2", 1, kPipe},
    {"dup3", 2, kCloseOnExec},
    {"fcntl,fcntl64", 1, kControls, one_choice},
    {"fcntl,fcntl64", 2, kDescriptor, flags, true, 1, F_SETFD, F_SETFD},
    {"fcntl,fcntl64", 2, kOpen, flags, true, 1, F_SETFL, F_SETFL},
    {"newfstatat,fstatat64", 3, kAt},
    {"statx", 2, kAtStatx},
    {"statx", 3, kStatx},
    {"access", 1, kAccess},
    {"faccessat,faccessat2", 2, kAccess},
    {"faccessat2", 3, kAtAccess},
    {"unlinkat", 2, kAt},
    {"linkat,fchownat", 4, kAt},
    {"utimensat", 3, kAt},
    {"renameat2", 4, kRename},
    {"lseek", 2, kSeek, one_choice},
    {"flock", 1, kFileLock},
    {"fallocate", 1, kAllocate},
    {"splice", 5, kSplice},
    {"tee,vmsplice", 3, kSplice},
    {"close_range", 2, kCloseRange},
    {"memfd_create", 1, kMemoryFile},
    {"mount", 3, kMount, flags, true},
    {"umount2", 1, kUnmount},
    {"open_tree,open_tree_attr", 2, kOpenTree},
    {"mount_setattr", 2, kOpenTree},
    {"move_mount", 4, kMoveMount},
    {"fsopen", 1, kFsOpen},
    {"fsconfig", 1, kFsConfig, one_choice},
    {"fsmount", 1, kFsMount},
    {"fsmount", 2, kMountAttributes},
    {"fspick", 2, kFsPick},
    {"mmap,mmap2", 2, kProtection, flags, true},
    {"mmap,mmap2", 3, kMapping, flags, true},
    {"mprotect,pkey_mprotect", 2, kProtection, flags, true},
    {"mremap", 3, kRemap, flags, true},
    {"madvise", 2, kAdvice, one_choice},
    {"process_madvise", 3, kAdvice, one_choice},
    {"msync", 2, kSync},
    {"mlockall", 0, kLockMemory},
    {"clone", 0, kClone, with_signal},
    {"unshare", 0, kNamespaces, flags, true},
    {"setns", 1, kNamespaces},
    {"wait4", 2, kWait},
    {"waitid", 0, kWaitWhich, one_choice},
    {"waitid", 3, kWait},
    {"sched_setscheduler", 1, kPolicies, one_choice},
    {"getpriority,setpriority", 0, kPriorityOf, one_choice},
    {"rt_sigprocmask", 0, kMaskHow, one_choice},
    {"prlimit64", 1, kLimits, one_choice},
    {"getrlimit,setrlimit", 0, kLimits, one_choice},
    {"prctl", 0, kProcess, one_choice},
    {"futex,futex_time64", 1, kFutex},
    {"clock_gettime,clock_settime,clock_getres,clock_nanosleep,clock_adjtime", 0, kClocks,
     one_choice},
    {"clock_nanosleep", 1, kSleep},
    {"timer_create", 0, kClocks, one_choice},
    {"timerfd_create", 0, kClocks, one_choice},
    {"timerfd_create", 1, kTimerFile},
    {"timerfd_settime", 1, kTimerSet},
    {"timer_settime", 1, kSleep},
    {"signalfd4", 3, kSignalFile},
    {"eventfd2", 1, kEventFile},
    {"epoll_create1", 0, kPollFile},
    {"epoll_ctl", 1, kPollControl, one_choice},
    {"inotify_init1", 0, kWatchFile},
    {"inotify_add_watch", 2, kWatch},
    {"getrandom", 2, kRandom},
    {"socket,socketpair", 0, kFamilies, one_choice},
    {"socket,socketpair", 1, kSocketTypes},
    {"socket,socketpair", 2, kInternet, one_choice, false, 0, AF_INET, AF_INET6},
    {"socket,socketpair", 2, kNetlink, one_choice, false, 0, AF_NETLINK, AF_NETLINK},
    {"accept4", 3, kAccept},
    {"sendto,recvfrom,sendmmsg,recvmmsg", 3, kMessages},
    {"sendmsg,recvmsg", 2, kMessages},
    {"shutdown", 1, kShutdown, one_choice},
    {"setsockopt,getsockopt", 1, kLevels, one_choice},
    {"setsockopt,getsockopt", 2, kSocketOptions, one_choice, false, 1, SOL_SOCKET, SOL_SOCKET},
    {"setsockopt,getsockopt", 2, kTcpOptions, one_choice, false, 1, IPPROTO_TCP, IPPROTO_TCP},
};

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (take_until(list, ',') == word) return true;
  return false;
}

std::uint64_t lower_half(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

bool applies(const Use& use, std::string_view call, std::size_t number,
             std::span<const std::uint64_t> arguments) {
  if (use.number != number || !has_word(use.calls, call)) return false;
  if (use.when == kAlways) return true;
  if (use.when >= arguments.size()) return false;
  auto other = lower_half(arguments[use.when]);
  return other == use.is || other == use.or_is;
}

std::string one_word(std::span<const FlagWord> words, std::uint64_t value) {
  for (auto& word : words)
    if (word.value == value) return std::string(word.name);
  return fmt::format("{:#x}", value);
}

}  // namespace

std::span<const FlagWord> open_flag_words() { return kOpen; }

bool open_reads_mode(std::uint64_t flags) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}
std::span<const FlagWord> new_task_words() { return kNewTask; }
std::span<const FlagWord> mount_attribute_words() { return kMountAttributes; }
std::span<const FlagWord> capability_words() { return kCapabilities; }

std::string flag_words(std::span<const FlagWord> words, std::uint64_t value,
                       std::string_view format) {
  std::string text;
  auto add = [&](std::string_view word) { text.append(text.empty() ? "" : "|").append(word); };
  auto rest = value;
  std::uint64_t named = 0;
  for (auto& word : words) {
    auto mask = word.mask();
    if (mask & named || (rest & mask) != word.value) continue;
    add(word.name);
    rest &= ~mask;
    named |= mask;
  }
  if (rest || text.empty()) add(rest ? fmt::format(fmt::runtime(format), rest) : "0");
  return text;
}

std::optional<std::string> argument_words(std::string_view call, std::size_t number,
                                          std::span<const std::uint64_t> arguments) {
  if (number >= arguments.size()) return {};
  for (auto& use : kUses) {
    if (!applies(use, call, number, arguments)) continue;
    auto value = use.wide ? arguments[number] : lower_half(arguments[number]);
    if (use.kind == one_choice) return one_word(use.words, value);
    if (use.kind == flags) return flag_words(use.words, value);
    auto signal = static_cast<int>(value & 0xff);
    value &= ~std::uint64_t{0xff};
    auto name = signal ? signal_name(signal) : std::string();
    if (!value && signal) return name;
    return flag_words(use.words, value) + (signal ? "|" + name : "");
  }
  return {};
}

std::string signal_name(int number) {
  if (number > 0 && number < SIGRTMIN) {
    if (auto* name = sigabbrev_np(number)) return fmt::format("SIG{}", name);
  }
  if (number == SIGRTMIN) return "SIGRTMIN";
  if (number > SIGRTMIN && number <= SIGRTMAX) return fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
  return fmt::format("signal {}", number);
}

int signal_number(std::string_view text) {
  if (auto number = parse_unsigned(text)) return *number < 65 ? static_cast<int>(*number) : 0;
  auto name = upper_case(text);
  if (!name.starts_with("SIG")) name.insert(0, "SIG");
  for (int n = 1; n <= SIGRTMAX; n++)
    if (signal_name(n) == name) return n;
  constexpr std::string_view kLast = "SIGRTMAX";
  if (!name.starts_with(kLast)) return 0;
  auto rest = std::string_view(name).substr(kLast.size());
  if (rest.empty()) return SIGRTMAX;
  if (rest.front() != '-') return 0;
  auto below = parse_unsigned(rest.substr(1));
  if (!below || *below > static_cast<std::uint64_t>(SIGRTMAX - SIGRTMIN)) return 0;
  return SIGRTMAX - static_cast<int>(*below);
}

}  // namespace coretap
