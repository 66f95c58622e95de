#include "coretap/flags.hpp"

#include "coretap/parse.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>  // SOL_TCP
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
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

using Word = FlagWord;

// Values are from the headers of the build machine's architecture; its table for 32-bit programs
// shares them. Literal numbers are used where headers of supported distributions lack a name.

// The C library defines O_LARGEFILE as 0 on 64-bit machines, the kernel by architecture.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::uint64_t kLargeFile = 0100000;
#else
constexpr std::uint64_t kLargeFile = 0400000;
#endif

constexpr Word kOpen[] = {
    {"O_RDONLY", O_RDONLY, O_ACCMODE},
    {"O_WRONLY", O_WRONLY, O_ACCMODE},
    {"O_RDWR", O_RDWR, O_ACCMODE},
    {"O_ACCMODE", O_ACCMODE, O_ACCMODE},
    {"O_CREAT", O_CREAT},
    {"O_EXCL", O_EXCL},
    {"O_NOCTTY", O_NOCTTY},
    {"O_TRUNC", O_TRUNC},
    {"O_APPEND", O_APPEND},
    {"O_NONBLOCK", O_NONBLOCK},
    {"O_NDELAY", O_NDELAY},
    {"O_SYNC", O_SYNC},
    {"O_ASYNC", O_ASYNC},
    {"O_DSYNC", O_DSYNC},
    {"O_DIRECT", O_DIRECT},
    {"O_LARGEFILE", kLargeFile},
    {"O_NOFOLLOW", O_NOFOLLOW},
    {"O_NOATIME", O_NOATIME},
    {"O_CLOEXEC", O_CLOEXEC},
    {"O_PATH", O_PATH},
    {"O_TMPFILE", O_TMPFILE},
    {"O_DIRECTORY", O_DIRECTORY},
};
constexpr Word kCloseOnExec[] = {{"O_CLOEXEC", O_CLOEXEC}};
constexpr Word kPipe[] = {
    {"O_NONBLOCK", O_NONBLOCK}, {"O_DIRECT", O_DIRECT}, {"O_CLOEXEC", O_CLOEXEC}};
constexpr Word kDescriptor[] = {{"FD_CLOEXEC", FD_CLOEXEC}};
constexpr Word kControls[] = {
    {"F_DUPFD", F_DUPFD},
    {"F_GETFD", F_GETFD},
    {"F_SETFD", F_SETFD},
    {"F_GETFL", F_GETFL},
    {"F_SETFL", F_SETFL},
    {"F_GETLK", 5},
    {"F_SETLK", 6},
    {"F_SETLKW", 7},
    {"F_SETOWN", F_SETOWN},
    {"F_GETOWN", F_GETOWN},
    {"F_SETSIG", F_SETSIG},
    {"F_GETSIG", F_GETSIG},
    {"F_SETOWN_EX", F_SETOWN_EX},
    {"F_GETOWN_EX", F_GETOWN_EX},
    {"F_OFD_GETLK", F_OFD_GETLK},
    {"F_OFD_SETLK", F_OFD_SETLK},
    {"F_OFD_SETLKW", F_OFD_SETLKW},
    {"F_SETLEASE", F_SETLEASE},
    {"F_GETLEASE", F_GETLEASE},
    {"F_NOTIFY", F_NOTIFY},
    {"F_DUPFD_CLOEXEC", F_DUPFD_CLOEXEC},
    {"F_SETPIPE_SZ", F_SETPIPE_SZ},
    {"F_GETPIPE_SZ", F_GETPIPE_SZ},
    {"F_ADD_SEALS", F_ADD_SEALS},
    {"F_GET_SEALS", F_GET_SEALS},
};
constexpr Word kAt[] = {
    {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
    {"AT_REMOVEDIR", AT_REMOVEDIR},
    {"AT_SYMLINK_FOLLOW", AT_SYMLINK_FOLLOW},
    {"AT_NO_AUTOMOUNT", AT_NO_AUTOMOUNT},
    {"AT_EMPTY_PATH", AT_EMPTY_PATH},
};
// AT_REMOVEDIR has the same bit but applies to unlinkat only.
constexpr Word kAtAccess[] = {
    {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
    {"AT_EACCESS", AT_EACCESS},
    {"AT_EMPTY_PATH", AT_EMPTY_PATH},
};
constexpr Word kAtStatx[] = {
    {"AT_STATX_SYNC_AS_STAT", 0, AT_STATX_SYNC_TYPE},
    {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
    {"AT_NO_AUTOMOUNT", AT_NO_AUTOMOUNT},
    {"AT_EMPTY_PATH", AT_EMPTY_PATH},
    {"AT_STATX_FORCE_SYNC", AT_STATX_FORCE_SYNC},
    {"AT_STATX_DONT_SYNC", AT_STATX_DONT_SYNC},
};
constexpr Word kStatx[] = {
    {"STATX_ALL", STATX_ALL},       {"STATX_BASIC_STATS", STATX_BASIC_STATS},
    {"STATX_TYPE", STATX_TYPE},     {"STATX_MODE", STATX_MODE},
    {"STATX_NLINK", STATX_NLINK},   {"STATX_UID", STATX_UID},
    {"STATX_GID", STATX_GID},       {"STATX_ATIME", STATX_ATIME},
    {"STATX_MTIME", STATX_MTIME},   {"STATX_CTIME", STATX_CTIME},
    {"STATX_INO", STATX_INO},       {"STATX_SIZE", STATX_SIZE},
    {"STATX_BLOCKS", STATX_BLOCKS}, {"STATX_BTIME", STATX_BTIME},
    {"STATX_MNT_ID", 0x1000},
};
constexpr Word kAccess[] = {
    {"F_OK", F_OK, ~std::uint64_t{0}}, {"R_OK", R_OK}, {"W_OK", W_OK}, {"X_OK", X_OK}};
constexpr Word kRename[] = {
    {"RENAME_NOREPLACE", 1}, {"RENAME_EXCHANGE", 2}, {"RENAME_WHITEOUT", 4}};
constexpr Word kSeek[] = {{"SEEK_SET", SEEK_SET},
                          {"SEEK_CUR", SEEK_CUR},
                          {"SEEK_END", SEEK_END},
                          {"SEEK_DATA", 3},
                          {"SEEK_HOLE", 4}};
constexpr Word kFileLock[] = {
    {"LOCK_SH", LOCK_SH}, {"LOCK_EX", LOCK_EX}, {"LOCK_NB", LOCK_NB}, {"LOCK_UN", LOCK_UN}};
constexpr Word kAllocate[] = {
    {"FALLOC_FL_KEEP_SIZE", 0x1},      {"FALLOC_FL_PUNCH_HOLE", 0x2},
    {"FALLOC_FL_NO_HIDE_STALE", 0x4},  {"FALLOC_FL_COLLAPSE_RANGE", 0x8},
    {"FALLOC_FL_ZERO_RANGE", 0x10},    {"FALLOC_FL_INSERT_RANGE", 0x20},
    {"FALLOC_FL_UNSHARE_RANGE", 0x40},
};
constexpr Word kSplice[] = {
    {"SPLICE_F_MOVE", 1}, {"SPLICE_F_NONBLOCK", 2}, {"SPLICE_F_MORE", 4}, {"SPLICE_F_GIFT", 8}};
constexpr Word kCloseRange[] = {{"CLOSE_RANGE_UNSHARE", 2}, {"CLOSE_RANGE_CLOEXEC", 4}};
constexpr Word kMemoryFile[] = {{"MFD_CLOEXEC", 1},
                                {"MFD_ALLOW_SEALING", 2},
                                {"MFD_HUGETLB", 4},
                                {"MFD_NOEXEC_SEAL", 8},
                                {"MFD_EXEC", 16}};
constexpr Word kMount[] = {
    {"MS_RDONLY", MS_RDONLY},
    {"MS_NOSUID", MS_NOSUID},
    {"MS_NODEV", MS_NODEV},
    {"MS_NOEXEC", MS_NOEXEC},
    {"MS_SYNCHRONOUS", MS_SYNCHRONOUS},
    {"MS_REMOUNT", MS_REMOUNT},
    {"MS_MANDLOCK", MS_MANDLOCK},
    {"MS_DIRSYNC", MS_DIRSYNC},
    {"MS_NOSYMFOLLOW", 256},
    {"MS_NOATIME", MS_NOATIME},
    {"MS_NODIRATIME", MS_NODIRATIME},
    {"MS_BIND", MS_BIND},
    {"MS_MOVE", MS_MOVE},
    {"MS_REC", MS_REC},
    {"MS_SILENT", MS_SILENT},
    {"MS_POSIXACL", MS_POSIXACL},
    {"MS_UNBINDABLE", MS_UNBINDABLE},
    {"MS_PRIVATE", MS_PRIVATE},
    {"MS_SLAVE", MS_SLAVE},
    {"MS_SHARED", MS_SHARED},
    {"MS_RELATIME", MS_RELATIME},
    {"MS_KERNMOUNT", MS_KERNMOUNT},
    {"MS_I_VERSION", MS_I_VERSION},
    {"MS_STRICTATIME", MS_STRICTATIME},
    {"MS_LAZYTIME", 1 << 25},
};
constexpr Word kUnmount[] = {{"MNT_FORCE", MNT_FORCE},
                             {"MNT_DETACH", MNT_DETACH},
                             {"MNT_EXPIRE", MNT_EXPIRE},
                             {"UMOUNT_NOFOLLOW", UMOUNT_NOFOLLOW}};
constexpr Word kOpenTree[] = {
    {"OPEN_TREE_CLONE", 1},
    {"OPEN_TREE_CLOEXEC", O_CLOEXEC},
    {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
    {"AT_NO_AUTOMOUNT", AT_NO_AUTOMOUNT},
    {"AT_EMPTY_PATH", AT_EMPTY_PATH},
    {"AT_RECURSIVE", 0x8000},
};
constexpr Word kMoveMount[] = {
    {"MOVE_MOUNT_F_SYMLINKS", 0x1},    {"MOVE_MOUNT_F_AUTOMOUNTS", 0x2},
    {"MOVE_MOUNT_F_EMPTY_PATH", 0x4},  {"MOVE_MOUNT_T_SYMLINKS", 0x10},
    {"MOVE_MOUNT_T_AUTOMOUNTS", 0x20}, {"MOVE_MOUNT_T_EMPTY_PATH", 0x40},
    {"MOVE_MOUNT_SET_GROUP", 0x100},   {"MOVE_MOUNT_BENEATH", 0x200},
};
constexpr Word kFsOpen[] = {{"FSOPEN_CLOEXEC", 1}};
constexpr Word kFsMount[] = {{"FSMOUNT_CLOEXEC", 1}};
constexpr Word kFsPick[] = {{"FSPICK_CLOEXEC", 1},
                            {"FSPICK_SYMLINK_NOFOLLOW", 2},
                            {"FSPICK_NO_AUTOMOUNT", 4},
                            {"FSPICK_EMPTY_PATH", 8}};
constexpr Word kFsConfig[] = {
    {"FSCONFIG_SET_FLAG", 0},   {"FSCONFIG_SET_STRING", 1},      {"FSCONFIG_SET_BINARY", 2},
    {"FSCONFIG_SET_PATH", 3},   {"FSCONFIG_SET_PATH_EMPTY", 4},  {"FSCONFIG_SET_FD", 5},
    {"FSCONFIG_CMD_CREATE", 6}, {"FSCONFIG_CMD_RECONFIGURE", 7}, {"FSCONFIG_CMD_CREATE_EXCL", 8},
};
constexpr Word kMountAttributes[] = {
    {"MOUNT_ATTR_RDONLY", 0x1},
    {"MOUNT_ATTR_NOSUID", 0x2},
    {"MOUNT_ATTR_NODEV", 0x4},
    {"MOUNT_ATTR_NOEXEC", 0x8},
    {"MOUNT_ATTR__ATIME", 0x70},
    {"MOUNT_ATTR_NOATIME", 0x10, 0x70},
    {"MOUNT_ATTR_STRICTATIME", 0x20, 0x70},
    {"MOUNT_ATTR_NODIRATIME", 0x80},
    {"MOUNT_ATTR_IDMAP", 0x100000},
    {"MOUNT_ATTR_NOSYMFOLLOW", 0x200000},
};

constexpr Word kProtection[] = {
    {"PROT_NONE", PROT_NONE, ~std::uint64_t{0}},
    {"PROT_READ", PROT_READ},
    {"PROT_WRITE", PROT_WRITE},
    {"PROT_EXEC", PROT_EXEC},
    {"PROT_SEM", 8},
#ifdef __aarch64__
    {"PROT_BTI", 0x10},
    {"PROT_MTE", 0x20},
#endif
    {"PROT_GROWSDOWN", PROT_GROWSDOWN},
    {"PROT_GROWSUP", PROT_GROWSUP},
};
constexpr Word kMapping[] = {
    {"MAP_SHARED", MAP_SHARED, 15},
    {"MAP_PRIVATE", MAP_PRIVATE, 15},
    {"MAP_SHARED_VALIDATE", 3, 15},
    {"MAP_FIXED", MAP_FIXED},
    {"MAP_ANONYMOUS", MAP_ANONYMOUS},
#if defined(__x86_64__) || defined(__i386__)
    {"MAP_32BIT", 0x40},
#endif
    {"MAP_NORESERVE", MAP_NORESERVE},
    {"MAP_POPULATE", MAP_POPULATE},
    {"MAP_NONBLOCK", MAP_NONBLOCK},
    {"MAP_GROWSDOWN", MAP_GROWSDOWN},
    {"MAP_DENYWRITE", MAP_DENYWRITE},
    {"MAP_EXECUTABLE", MAP_EXECUTABLE},
    {"MAP_LOCKED", MAP_LOCKED},
    {"MAP_STACK", MAP_STACK},
    {"MAP_HUGETLB", MAP_HUGETLB},
    {"MAP_SYNC", 0x80000},
    {"MAP_FIXED_NOREPLACE", 0x100000},
};
constexpr Word kRemap[] = {{"MREMAP_MAYMOVE", 1}, {"MREMAP_FIXED", 2}, {"MREMAP_DONTUNMAP", 4}};
constexpr Word kAdvice[] = {
    {"MADV_NORMAL", 0},           {"MADV_RANDOM", 1},         {"MADV_SEQUENTIAL", 2},
    {"MADV_WILLNEED", 3},         {"MADV_DONTNEED", 4},       {"MADV_FREE", 8},
    {"MADV_REMOVE", 9},           {"MADV_DONTFORK", 10},      {"MADV_DOFORK", 11},
    {"MADV_MERGEABLE", 12},       {"MADV_UNMERGEABLE", 13},   {"MADV_HUGEPAGE", 14},
    {"MADV_NOHUGEPAGE", 15},      {"MADV_DONTDUMP", 16},      {"MADV_DODUMP", 17},
    {"MADV_WIPEONFORK", 18},      {"MADV_KEEPONFORK", 19},    {"MADV_COLD", 20},
    {"MADV_PAGEOUT", 21},         {"MADV_POPULATE_READ", 22}, {"MADV_POPULATE_WRITE", 23},
    {"MADV_DONTNEED_LOCKED", 24}, {"MADV_COLLAPSE", 25},      {"MADV_HWPOISON", 100},
    {"MADV_SOFT_OFFLINE", 101},
};
constexpr Word kSync[] = {
    {"MS_ASYNC", MS_ASYNC}, {"MS_INVALIDATE", MS_INVALIDATE}, {"MS_SYNC", MS_SYNC}};
constexpr Word kLockMemory[] = {{"MCL_CURRENT", 1}, {"MCL_FUTURE", 2}, {"MCL_ONFAULT", 4}};

constexpr Word kClone[] = {
    {"CLONE_VM", CLONE_VM},
    {"CLONE_FS", CLONE_FS},
    {"CLONE_FILES", CLONE_FILES},
    {"CLONE_SIGHAND", CLONE_SIGHAND},
    {"CLONE_PIDFD", 0x1000},
    {"CLONE_PTRACE", CLONE_PTRACE},
    {"CLONE_VFORK", CLONE_VFORK},
    {"CLONE_PARENT", CLONE_PARENT},
    {"CLONE_THREAD", CLONE_THREAD},
    {"CLONE_NEWNS", CLONE_NEWNS},
    {"CLONE_SYSVSEM", CLONE_SYSVSEM},
    {"CLONE_SETTLS", CLONE_SETTLS},
    {"CLONE_PARENT_SETTID", CLONE_PARENT_SETTID},
    {"CLONE_CHILD_CLEARTID", CLONE_CHILD_CLEARTID},
    {"CLONE_DETACHED", CLONE_DETACHED},
    {"CLONE_UNTRACED", CLONE_UNTRACED},
    {"CLONE_CHILD_SETTID", CLONE_CHILD_SETTID},
    {"CLONE_NEWCGROUP", CLONE_NEWCGROUP},
    {"CLONE_NEWUTS", CLONE_NEWUTS},
    {"CLONE_NEWIPC", CLONE_NEWIPC},
    {"CLONE_NEWUSER", CLONE_NEWUSER},
    {"CLONE_NEWPID", CLONE_NEWPID},
    {"CLONE_NEWNET", CLONE_NEWNET},
    {"CLONE_IO", CLONE_IO},
};
constexpr Word kNamespaces[] = {
    {"CLONE_VM", CLONE_VM},           {"CLONE_FS", CLONE_FS},
    {"CLONE_FILES", CLONE_FILES},     {"CLONE_SIGHAND", CLONE_SIGHAND},
    {"CLONE_THREAD", CLONE_THREAD},   {"CLONE_NEWNS", CLONE_NEWNS},
    {"CLONE_SYSVSEM", CLONE_SYSVSEM}, {"CLONE_NEWCGROUP", CLONE_NEWCGROUP},
    {"CLONE_NEWUTS", CLONE_NEWUTS},   {"CLONE_NEWIPC", CLONE_NEWIPC},
    {"CLONE_NEWUSER", CLONE_NEWUSER}, {"CLONE_NEWPID", CLONE_NEWPID},
    {"CLONE_NEWNET", CLONE_NEWNET},   {"CLONE_NEWTIME", 0x80},
};
constexpr Word kWait[] = {
    {"WNOHANG", WNOHANG},       {"WSTOPPED", WSTOPPED},   {"WEXITED", WEXITED},
    {"WCONTINUED", WCONTINUED}, {"WNOWAIT", WNOWAIT},     {"__WNOTHREAD", 0x20000000},
    {"__WALL", 0x40000000},     {"__WCLONE", 0x80000000},
};
constexpr Word kWaitWhich[] = {
    {"P_ALL", P_ALL}, {"P_PID", P_PID}, {"P_PGID", P_PGID}, {"P_PIDFD", 3}};
constexpr Word kPolicies[] = {{"SCHED_OTHER", 0}, {"SCHED_FIFO", 1}, {"SCHED_RR", 2},
                              {"SCHED_BATCH", 3}, {"SCHED_IDLE", 5}, {"SCHED_DEADLINE", 6},
                              {"SCHED_EXT", 7}};
constexpr Word kPriorityOf[] = {{"PRIO_PROCESS", 0}, {"PRIO_PGRP", 1}, {"PRIO_USER", 2}};
constexpr Word kMaskHow[] = {{"SIG_BLOCK", 0}, {"SIG_UNBLOCK", 1}, {"SIG_SETMASK", 2}};
constexpr Word kLimits[] = {
    {"RLIMIT_CPU", 0},       {"RLIMIT_FSIZE", 1}, {"RLIMIT_DATA", 2},    {"RLIMIT_STACK", 3},
    {"RLIMIT_CORE", 4},      {"RLIMIT_RSS", 5},   {"RLIMIT_NPROC", 6},   {"RLIMIT_NOFILE", 7},
    {"RLIMIT_MEMLOCK", 8},   {"RLIMIT_AS", 9},    {"RLIMIT_LOCKS", 10},  {"RLIMIT_SIGPENDING", 11},
    {"RLIMIT_MSGQUEUE", 12}, {"RLIMIT_NICE", 13}, {"RLIMIT_RTPRIO", 14}, {"RLIMIT_RTTIME", 15},
};
constexpr Word kProcess[] = {
    {"PR_SET_PDEATHSIG", 1},
    {"PR_GET_PDEATHSIG", 2},
    {"PR_GET_DUMPABLE", 3},
    {"PR_SET_DUMPABLE", 4},
    {"PR_GET_KEEPCAPS", 7},
    {"PR_SET_KEEPCAPS", 8},
    {"PR_SET_NAME", 15},
    {"PR_GET_NAME", 16},
    {"PR_GET_SECCOMP", 21},
    {"PR_SET_SECCOMP", 22},
    {"PR_CAPBSET_READ", 23},
    {"PR_CAPBSET_DROP", 24},
    {"PR_GET_SECUREBITS", 27},
    {"PR_SET_SECUREBITS", 28},
    {"PR_SET_TIMERSLACK", 29},
    {"PR_GET_TIMERSLACK", 30},
    {"PR_SET_MM", 35},
    {"PR_SET_CHILD_SUBREAPER", 36},
    {"PR_GET_CHILD_SUBREAPER", 37},
    {"PR_SET_NO_NEW_PRIVS", 38},
    {"PR_GET_NO_NEW_PRIVS", 39},
    {"PR_SET_THP_DISABLE", 41},
    {"PR_GET_THP_DISABLE", 42},
    {"PR_CAP_AMBIENT", 47},
    {"PR_SET_VMA", 0x53564d41},
    {"PR_SET_PTRACER", 0x59616d61},
};
constexpr std::uint64_t kFutexOp = 0xff;  // operation and FUTEX_PRIVATE_FLAG
constexpr Word kFutex[] = {
    {"FUTEX_WAIT", 0, kFutexOp},
    {"FUTEX_WAKE", 1, kFutexOp},
    {"FUTEX_FD", 2, kFutexOp},
    {"FUTEX_REQUEUE", 3, kFutexOp},
    {"FUTEX_CMP_REQUEUE", 4, kFutexOp},
    {"FUTEX_WAKE_OP", 5, kFutexOp},
    {"FUTEX_LOCK_PI", 6, kFutexOp},
    {"FUTEX_UNLOCK_PI", 7, kFutexOp},
    {"FUTEX_TRYLOCK_PI", 8, kFutexOp},
    {"FUTEX_WAIT_BITSET", 9, kFutexOp},
    {"FUTEX_WAKE_BITSET", 10, kFutexOp},
    {"FUTEX_WAIT_REQUEUE_PI", 11, kFutexOp},
    {"FUTEX_CMP_REQUEUE_PI", 12, kFutexOp},
    {"FUTEX_LOCK_PI2", 13, kFutexOp},
    {"FUTEX_WAIT_PRIVATE", 128, kFutexOp},
    {"FUTEX_WAKE_PRIVATE", 129, kFutexOp},
    {"FUTEX_REQUEUE_PRIVATE", 131, kFutexOp},
    {"FUTEX_CMP_REQUEUE_PRIVATE", 132, kFutexOp},
    {"FUTEX_WAKE_OP_PRIVATE", 133, kFutexOp},
    {"FUTEX_LOCK_PI_PRIVATE", 134, kFutexOp},
    {"FUTEX_UNLOCK_PI_PRIVATE", 135, kFutexOp},
    {"FUTEX_TRYLOCK_PI_PRIVATE", 136, kFutexOp},
    {"FUTEX_WAIT_BITSET_PRIVATE", 137, kFutexOp},
    {"FUTEX_WAKE_BITSET_PRIVATE", 138, kFutexOp},
    {"FUTEX_WAIT_REQUEUE_PI_PRIVATE", 139, kFutexOp},
    {"FUTEX_CMP_REQUEUE_PI_PRIVATE", 140, kFutexOp},
    {"FUTEX_LOCK_PI2_PRIVATE", 141, kFutexOp},
    {"FUTEX_CLOCK_REALTIME", FUTEX_CLOCK_REALTIME},
};
constexpr Word kClocks[] = {
    {"CLOCK_REALTIME", 0},          {"CLOCK_MONOTONIC", 1},     {"CLOCK_PROCESS_CPUTIME_ID", 2},
    {"CLOCK_THREAD_CPUTIME_ID", 3}, {"CLOCK_MONOTONIC_RAW", 4}, {"CLOCK_REALTIME_COARSE", 5},
    {"CLOCK_MONOTONIC_COARSE", 6},  {"CLOCK_BOOTTIME", 7},      {"CLOCK_REALTIME_ALARM", 8},
    {"CLOCK_BOOTTIME_ALARM", 9},    {"CLOCK_TAI", 11},
};
constexpr Word kSleep[] = {{"TIMER_ABSTIME", 1}};
constexpr Word kTimerFile[] = {{"TFD_CLOEXEC", TFD_CLOEXEC}, {"TFD_NONBLOCK", TFD_NONBLOCK}};
constexpr Word kTimerSet[] = {{"TFD_TIMER_ABSTIME", 1}, {"TFD_TIMER_CANCEL_ON_SET", 2}};
constexpr Word kSignalFile[] = {{"SFD_CLOEXEC", SFD_CLOEXEC}, {"SFD_NONBLOCK", SFD_NONBLOCK}};
constexpr Word kEventFile[] = {
    {"EFD_SEMAPHORE", EFD_SEMAPHORE}, {"EFD_CLOEXEC", EFD_CLOEXEC}, {"EFD_NONBLOCK", EFD_NONBLOCK}};
constexpr Word kPollFile[] = {{"EPOLL_CLOEXEC", EPOLL_CLOEXEC}};
constexpr Word kPollControl[] = {{"EPOLL_CTL_ADD", EPOLL_CTL_ADD},
                                 {"EPOLL_CTL_DEL", EPOLL_CTL_DEL},
                                 {"EPOLL_CTL_MOD", EPOLL_CTL_MOD}};
constexpr Word kWatchFile[] = {{"IN_CLOEXEC", IN_CLOEXEC}, {"IN_NONBLOCK", IN_NONBLOCK}};
constexpr Word kWatch[] = {
    {"IN_ACCESS", IN_ACCESS},
    {"IN_MODIFY", IN_MODIFY},
    {"IN_ATTRIB", IN_ATTRIB},
    {"IN_CLOSE_WRITE", IN_CLOSE_WRITE},
    {"IN_CLOSE_NOWRITE", IN_CLOSE_NOWRITE},
    {"IN_OPEN", IN_OPEN},
    {"IN_MOVED_FROM", IN_MOVED_FROM},
    {"IN_MOVED_TO", IN_MOVED_TO},
    {"IN_CREATE", IN_CREATE},
    {"IN_DELETE", IN_DELETE},
    {"IN_DELETE_SELF", IN_DELETE_SELF},
    {"IN_MOVE_SELF", IN_MOVE_SELF},
    {"IN_ONLYDIR", IN_ONLYDIR},
    {"IN_DONT_FOLLOW", IN_DONT_FOLLOW},
    {"IN_EXCL_UNLINK", IN_EXCL_UNLINK},
    {"IN_MASK_CREATE", 0x10000000},
    {"IN_MASK_ADD", IN_MASK_ADD},
    {"IN_ISDIR", IN_ISDIR},
    {"IN_ONESHOT", IN_ONESHOT},
};
constexpr Word kRandom[] = {{"GRND_NONBLOCK", 1}, {"GRND_RANDOM", 2}, {"GRND_INSECURE", 4}};

constexpr Word kFamilies[] = {
    {"AF_UNSPEC", AF_UNSPEC},
    {"AF_UNIX", AF_UNIX},
    {"AF_INET", AF_INET},
    {"AF_AX25", AF_AX25},
    {"AF_IPX", AF_IPX},
    {"AF_APPLETALK", AF_APPLETALK},
    {"AF_NETROM", AF_NETROM},
    {"AF_BRIDGE", AF_BRIDGE},
    {"AF_X25", AF_X25},
    {"AF_INET6", AF_INET6},
    {"AF_ROSE", AF_ROSE},
    {"AF_KEY", AF_KEY},
    {"AF_NETLINK", AF_NETLINK},
    {"AF_PACKET", AF_PACKET},
    {"AF_RDS", AF_RDS},
    {"AF_PPPOX", AF_PPPOX},
    {"AF_LLC", AF_LLC},
    {"AF_IB", AF_IB},
    {"AF_MPLS", AF_MPLS},
    {"AF_CAN", AF_CAN},
    {"AF_TIPC", AF_TIPC},
    {"AF_BLUETOOTH", AF_BLUETOOTH},
    {"AF_RXRPC", AF_RXRPC},
    {"AF_PHONET", AF_PHONET},
    {"AF_IEEE802154", AF_IEEE802154},
    {"AF_CAIF", AF_CAIF},
    {"AF_ALG", AF_ALG},
    {"AF_NFC", AF_NFC},
    {"AF_VSOCK", AF_VSOCK},
    {"AF_KCM", AF_KCM},
    {"AF_QIPCRTR", AF_QIPCRTR},
    {"AF_SMC", AF_SMC},
    {"AF_XDP", 44},
    {"AF_MCTP", 45},
};
constexpr std::uint64_t kTypeBits = 15;
constexpr Word kSocketTypes[] = {
    {"SOCK_STREAM", 1, kTypeBits},    {"SOCK_DGRAM", 2, kTypeBits},
    {"SOCK_RAW", 3, kTypeBits},       {"SOCK_RDM", 4, kTypeBits},
    {"SOCK_SEQPACKET", 5, kTypeBits}, {"SOCK_DCCP", 6, kTypeBits},
    {"SOCK_PACKET", 10, kTypeBits},   {"SOCK_CLOEXEC", SOCK_CLOEXEC},
    {"SOCK_NONBLOCK", SOCK_NONBLOCK},
};
constexpr Word kAccept[] = {{"SOCK_CLOEXEC", SOCK_CLOEXEC}, {"SOCK_NONBLOCK", SOCK_NONBLOCK}};
constexpr Word kInternet[] = {
    {"IPPROTO_IP", 0},      {"IPPROTO_ICMP", 1},   {"IPPROTO_IGMP", 2},    {"IPPROTO_IPIP", 4},
    {"IPPROTO_TCP", 6},     {"IPPROTO_EGP", 8},    {"IPPROTO_PUP", 12},    {"IPPROTO_UDP", 17},
    {"IPPROTO_IDP", 22},    {"IPPROTO_TP", 29},    {"IPPROTO_DCCP", 33},   {"IPPROTO_IPV6", 41},
    {"IPPROTO_RSVP", 46},   {"IPPROTO_GRE", 47},   {"IPPROTO_ESP", 50},    {"IPPROTO_AH", 51},
    {"IPPROTO_ICMPV6", 58}, {"IPPROTO_MTP", 92},   {"IPPROTO_BEETPH", 94}, {"IPPROTO_ENCAP", 98},
    {"IPPROTO_PIM", 103},   {"IPPROTO_COMP", 108}, {"IPPROTO_SCTP", 132},  {"IPPROTO_UDPLITE", 136},
    {"IPPROTO_MPLS", 137},  {"IPPROTO_RAW", 255},  {"IPPROTO_MPTCP", 262},
};
constexpr Word kNetlink[] = {
    {"NETLINK_ROUTE", 0},      {"NETLINK_USERSOCK", 2},   {"NETLINK_SOCK_DIAG", 4},
    {"NETLINK_NFLOG", 5},      {"NETLINK_XFRM", 6},       {"NETLINK_SELINUX", 7},
    {"NETLINK_ISCSI", 8},      {"NETLINK_AUDIT", 9},      {"NETLINK_FIB_LOOKUP", 10},
    {"NETLINK_CONNECTOR", 11}, {"NETLINK_NETFILTER", 12}, {"NETLINK_KOBJECT_UEVENT", 15},
    {"NETLINK_GENERIC", 16},   {"NETLINK_CRYPTO", 21},
};
constexpr Word kMessages[] = {
    {"MSG_OOB", MSG_OOB},
    {"MSG_PEEK", MSG_PEEK},
    {"MSG_DONTROUTE", MSG_DONTROUTE},
    {"MSG_CTRUNC", MSG_CTRUNC},
    {"MSG_TRUNC", MSG_TRUNC},
    {"MSG_DONTWAIT", MSG_DONTWAIT},
    {"MSG_EOR", MSG_EOR},
    {"MSG_WAITALL", MSG_WAITALL},
    {"MSG_FIN", MSG_FIN},
    {"MSG_SYN", MSG_SYN},
    {"MSG_CONFIRM", MSG_CONFIRM},
    {"MSG_RST", MSG_RST},
    {"MSG_ERRQUEUE", MSG_ERRQUEUE},
    {"MSG_NOSIGNAL", MSG_NOSIGNAL},
    {"MSG_MORE", MSG_MORE},
    {"MSG_WAITFORONE", MSG_WAITFORONE},
    {"MSG_BATCH", 0x40000},
    {"MSG_ZEROCOPY", 0x4000000},
    {"MSG_FASTOPEN", 0x20000000},
    {"MSG_CMSG_CLOEXEC", 0x40000000},
};
constexpr Word kShutdown[] = {{"SHUT_RD", 0}, {"SHUT_WR", 1}, {"SHUT_RDWR", 2}};
constexpr Word kLevels[] = {
    {"SOL_IP", 0},       {"SOL_SOCKET", 1},    {"SOL_TCP", 6},    {"SOL_UDP", 17},
    {"SOL_IPV6", 41},    {"SOL_ICMPV6", 58},   {"SOL_SCTP", 132}, {"SOL_RAW", 255},
    {"SOL_PACKET", 263}, {"SOL_NETLINK", 270}, {"SOL_ALG", 279},  {"SOL_TLS", 282},
    {"SOL_XDP", 283},
};
constexpr Word kSocketOptions[] = {
    {"SO_DEBUG", SO_DEBUG},
    {"SO_REUSEADDR", SO_REUSEADDR},
    {"SO_TYPE", SO_TYPE},
    {"SO_ERROR", SO_ERROR},
    {"SO_DONTROUTE", SO_DONTROUTE},
    {"SO_BROADCAST", SO_BROADCAST},
    {"SO_SNDBUF", SO_SNDBUF},
    {"SO_RCVBUF", SO_RCVBUF},
    {"SO_KEEPALIVE", SO_KEEPALIVE},
    {"SO_OOBINLINE", SO_OOBINLINE},
    {"SO_NO_CHECK", SO_NO_CHECK},
    {"SO_PRIORITY", SO_PRIORITY},
    {"SO_LINGER", SO_LINGER},
    {"SO_BSDCOMPAT", SO_BSDCOMPAT},
    {"SO_REUSEPORT", SO_REUSEPORT},
    {"SO_PASSCRED", SO_PASSCRED},
    {"SO_PEERCRED", SO_PEERCRED},
    {"SO_RCVLOWAT", SO_RCVLOWAT},
    {"SO_SNDLOWAT", SO_SNDLOWAT},
    {"SO_RCVTIMEO_OLD", 20},
    {"SO_SNDTIMEO_OLD", 21},
    {"SO_BINDTODEVICE", SO_BINDTODEVICE},
    {"SO_ATTACH_FILTER", SO_ATTACH_FILTER},
    {"SO_DETACH_FILTER", SO_DETACH_FILTER},
    {"SO_PEERNAME", SO_PEERNAME},
    {"SO_ACCEPTCONN", SO_ACCEPTCONN},
    {"SO_PEERSEC", SO_PEERSEC},
    {"SO_SNDBUFFORCE", SO_SNDBUFFORCE},
    {"SO_RCVBUFFORCE", SO_RCVBUFFORCE},
    {"SO_PASSSEC", SO_PASSSEC},
    {"SO_MARK", SO_MARK},
    {"SO_PROTOCOL", SO_PROTOCOL},
    {"SO_DOMAIN", SO_DOMAIN},
    {"SO_TIMESTAMP_OLD", 29},
    {"SO_TIMESTAMPNS_OLD", 35},
    {"SO_TIMESTAMPING_OLD", 37},
    {"SO_RXQ_OVFL", 40},
    {"SO_WIFI_STATUS", 41},
    {"SO_PEEK_OFF", 42},
    {"SO_NOFCS", 43},
    {"SO_LOCK_FILTER", 44},
    {"SO_SELECT_ERR_QUEUE", 45},
    {"SO_BUSY_POLL", 46},
    {"SO_MAX_PACING_RATE", 47},
    {"SO_BPF_EXTENSIONS", 48},
    {"SO_INCOMING_CPU", 49},
    {"SO_ATTACH_BPF", 50},
    {"SO_ATTACH_REUSEPORT_CBPF", 51},
    {"SO_ATTACH_REUSEPORT_EBPF", 52},
    {"SO_CNX_ADVICE", 53},
    {"SO_MEMINFO", 55},
    {"SO_INCOMING_NAPI_ID", 56},
    {"SO_COOKIE", 57},
    {"SO_PEERGROUPS", 59},
    {"SO_ZEROCOPY", 60},
    {"SO_TXTIME", 61},
    {"SO_BINDTOIFINDEX", 62},
    {"SO_TIMESTAMP_NEW", 63},
    {"SO_TIMESTAMPNS_NEW", 64},
    {"SO_TIMESTAMPING_NEW", 65},
    {"SO_RCVTIMEO_NEW", 66},
    {"SO_SNDTIMEO_NEW", 67},
    {"SO_DETACH_REUSEPORT_BPF", 68},
    {"SO_PREFER_BUSY_POLL", 69},
    {"SO_BUSY_POLL_BUDGET", 70},
    {"SO_NETNS_COOKIE", 71},
    {"SO_BUF_LOCK", 72},
    {"SO_RESERVE_MEM", 73},
    {"SO_TXREHASH", 74},
    {"SO_RCVMARK", 75},
};
constexpr Word kTcpOptions[] = {
    {"TCP_NODELAY", 1},
    {"TCP_MAXSEG", 2},
    {"TCP_CORK", 3},
    {"TCP_KEEPIDLE", 4},
    {"TCP_KEEPINTVL", 5},
    {"TCP_KEEPCNT", 6},
    {"TCP_SYNCNT", 7},
    {"TCP_LINGER2", 8},
    {"TCP_DEFER_ACCEPT", 9},
    {"TCP_WINDOW_CLAMP", 10},
    {"TCP_INFO", 11},
    {"TCP_QUICKACK", 12},
    {"TCP_CONGESTION", 13},
    {"TCP_MD5SIG", 14},
    {"TCP_USER_TIMEOUT", 18},
    {"TCP_FASTOPEN", 23},
    {"TCP_TIMESTAMP", 24},
    {"TCP_NOTSENT_LOWAT", 25},
    {"TCP_ULP", 31},
    {"TCP_COOKIE_TRANSACTIONS", 15},
    {"TCP_THIN_LINEAR_TIMEOUTS", 16},
    {"TCP_THIN_DUPACK", 17},
    {"TCP_REPAIR", 19},
    {"TCP_REPAIR_QUEUE", 20},
    {"TCP_QUEUE_SEQ", 21},
    {"TCP_REPAIR_OPTIONS", 22},
    {"TCP_CC_INFO", 26},
    {"TCP_SAVE_SYN", 27},
    {"TCP_SAVED_SYN", 28},
    {"TCP_REPAIR_WINDOW", 29},
    {"TCP_FASTOPEN_CONNECT", 30},
    {"TCP_MD5SIG_EXT", 32},
    {"TCP_FASTOPEN_KEY", 33},
    {"TCP_FASTOPEN_NO_COOKIE", 34},
    {"TCP_ZEROCOPY_RECEIVE", 35},
    {"TCP_INQ", 36},
    {"TCP_TX_DELAY", 37},
};

/// How an argument's value is converted to words.
enum Kind {
  flags,        ///< several words
  choice,       ///< one word
  with_signal,  ///< several, and a signal in the lowest byte
};

constexpr std::size_t kAlways = ~std::size_t{0};

struct Use {
  std::string_view calls;  ///< calls with this argument: "mmap,mmap2"
  std::size_t number;
  std::span<const Word> words;
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
    {"fcntl,fcntl64", 1, kControls, choice},
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
    {"lseek", 2, kSeek, choice},
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
    {"fsconfig", 1, kFsConfig, choice},
    {"fsmount", 1, kFsMount},
    {"fsmount", 2, kMountAttributes},
    {"fspick", 2, kFsPick},
    {"mmap,mmap2", 2, kProtection, flags, true},
    {"mmap,mmap2", 3, kMapping, flags, true},
    {"mprotect,pkey_mprotect", 2, kProtection, flags, true},
    {"mremap", 3, kRemap, flags, true},
    {"madvise", 2, kAdvice, choice},
    {"process_madvise", 3, kAdvice, choice},
    {"msync", 2, kSync},
    {"mlockall", 0, kLockMemory},
    {"clone", 0, kClone, with_signal},
    {"unshare", 0, kNamespaces, flags, true},
    {"setns", 1, kNamespaces},
    {"wait4", 2, kWait},
    {"waitid", 0, kWaitWhich, choice},
    {"waitid", 3, kWait},
    {"sched_setscheduler", 1, kPolicies, choice},
    {"getpriority,setpriority", 0, kPriorityOf, choice},
    {"rt_sigprocmask", 0, kMaskHow, choice},
    {"prlimit64", 1, kLimits, choice},
    {"getrlimit,setrlimit", 0, kLimits, choice},
    {"prctl", 0, kProcess, choice},
    {"futex,futex_time64", 1, kFutex},
    {"clock_gettime,clock_settime,clock_getres,clock_nanosleep,clock_adjtime", 0, kClocks, choice},
    {"clock_nanosleep", 1, kSleep},
    {"timer_create", 0, kClocks, choice},
    {"timerfd_create", 0, kClocks, choice},
    {"timerfd_create", 1, kTimerFile},
    {"timerfd_settime", 1, kTimerSet},
    {"timer_settime", 1, kSleep},
    {"signalfd4", 3, kSignalFile},
    {"eventfd2", 1, kEventFile},
    {"epoll_create1", 0, kPollFile},
    {"epoll_ctl", 1, kPollControl, choice},
    {"inotify_init1", 0, kWatchFile},
    {"inotify_add_watch", 2, kWatch},
    {"getrandom", 2, kRandom},
    {"socket,socketpair", 0, kFamilies, choice},
    {"socket,socketpair", 1, kSocketTypes},
    {"socket,socketpair", 2, kInternet, choice, false, 0, AF_INET, AF_INET6},
    {"socket,socketpair", 2, kNetlink, choice, false, 0, AF_NETLINK, AF_NETLINK},
    {"accept4", 3, kAccept},
    {"sendto,recvfrom,sendmmsg,recvmmsg", 3, kMessages},
    {"sendmsg,recvmsg", 2, kMessages},
    {"shutdown", 1, kShutdown, choice},
    {"setsockopt,getsockopt", 1, kLevels, choice},
    {"setsockopt,getsockopt", 2, kSocketOptions, choice, false, 1, SOL_SOCKET, SOL_SOCKET},
    {"setsockopt,getsockopt", 2, kTcpOptions, choice, false, 1, SOL_TCP, SOL_TCP},
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

std::string one_word(std::span<const Word> words, std::uint64_t value) {
  for (auto& word : words)
    if (word.value == value) return std::string(word.name);
  return fmt::format("{:#x}", value);
}

}  // namespace

std::span<const FlagWord> open_flag_words() { return kOpen; }

bool open_reads_mode(std::uint64_t flags) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}
std::span<const FlagWord> mount_attribute_words() { return kMountAttributes; }

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
    if (use.kind == choice) return one_word(use.words, value);
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
  std::string name;
  for (char c : text) name += static_cast<char>(toupper(static_cast<unsigned char>(c)));
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
