// Reasons of waits against stacks that kernels of 6.1 to 7.2 gave for waits that were made.
#include "stacks/wait_rules.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "expect.hpp"

namespace coretap {
namespace {

struct Recorded {
  const char *reason, *call, *frames;
  WaitFlags flags = {};
};
constexpr WaitFlags kIo{.io = true}, kLock{.lock = true}, kStall{.memstall = true},
    kKernel{.kthread = true};
const Recorded kRecorded[] = {
    {"disk_direct", "read", "__iomap_dio_rw iomap_dio_rw ext4_file_read_iter vfs_read", kIo},
    {"disk_read", "read", "folio_wait_bit_common filemap_get_pages filemap_read vfs_read", kIo},
    {"fault_file", "", "folio_wait_bit_common filemap_read_folio filemap_fault __do_fault", kIo},
    {"sync", "fsync", "submit_bio_wait blkdev_issue_flush ext4_sync_file do_fsync", kIo},
    {"sync", "write", "folio_wait_writeback ext4_sync_file ext4_buffered_write_iter", kIo},
    {"sync", "fsync", "__sync_dirty_buffer ext4_commit_super", kIo},
    {"journal", "fsync", "jbd2_log_wait_commit ext4_sync_file do_fsync", kIo},
    {"discard", "open", "submit_bio_wait blkdev_issue_discard ext4_truncate", kIo},
    {"disk_metadata", "unlink", "__ext4_find_entry ext4_lookup", kIo},
    {"disk_other", "unlink", "", kIo},
    {"disk_read", "pread64", "", kIo},
    {"lock", "rename", "do_renameat2 __x64_sys_rename", kLock},
    {"lock", "pwrite64", "ext4_file_write_iter vfs_write", kLock},
    {"mmap_lock", "munmap", "__vm_munmap __x64_sys_munmap", kLock},
    {"mmap_lock", "", "do_user_addr_fault exc_page_fault", kLock},
    {"mmap_lock", "mmap", "rwsem_down_write_slowpath vm_mmap_pgoff do_syscall_64"},
    {"mmap_lock", "", "rwsem_down_read_slowpath do_user_addr_fault exc_page_fault"},
    {"lock", "fsync", "__mutex_lock.isra.0 ext4_sync_file do_fsync"},
    {"reclaim", "read", "reclaim_throttle shrink_lruvec try_to_free_mem_cgroup_pages filemap_read",
     kStall},
    {"swap_in", "", "folio_wait_bit_common do_swap_page handle_mm_fault", kStall},
    {"reclaim", "read", "", kStall},
    {"futex", "futex", "futex_do_wait __futex_wait futex_wait do_futex"},
    {"futex", "futex", "futex_wait_queue __futex_wait do_futex"},
    {"file_lock", "flock", "locks_lock_inode_wait __x64_sys_flock"},
    {"file_lock", "fcntl", "fcntl_setlk do_fcntl"},
    {"pipe_read", "read", "anon_pipe_read vfs_read"},
    {"pipe_read", "read", "pipe_read vfs_read"},
    {"pipe_write", "write", "anon_pipe_write vfs_write"},
    {"unix", "read", "unix_stream_read_generic unix_stream_recvmsg sock_recvmsg"},
    {"tcp_read", "read", "wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg"},
    {"tcp_connect", "connect", "wait_woken __inet_stream_connect inet_stream_connect"},
    {"accept", "accept4", "inet_csk_accept inet_accept do_accept"},
    {"udp_read", "recvfrom", "__skb_wait_for_more_packets __skb_recv_udp udp_recvmsg"},
    {"epoll", "epoll_wait", "do_epoll_wait __x64_sys_epoll_wait"},
    {"poll", "poll", "poll_schedule_timeout do_sys_poll"},
    {"poll", "select", "do_select core_sys_select"},
    {"sleep", "clock_nanosleep", "hrtimer_nanosleep common_nsleep"},
    {"sleep", "restart_syscall", "do_syscall_64 entry_SYSCALL_64_after_hwframe"},
    {"timer", "read", "timerfd_read_iter vfs_read"},
    {"signal", "rt_sigtimedwait", "do_sigtimedwait __x64_sys_rt_sigtimedwait"},
    {"io_uring", "io_uring_enter", "io_cqring_wait __do_sys_io_uring_enter", kIo},
    {"aio", "io_getevents", "read_events do_io_getevents"},
    {"children", "wait4", "do_wait kernel_wait4"},
    {"sysv", "semtimedop", "__do_semtimedop do_semtimedop"},
    {"eventfd", "read", "eventfd_read vfs_read"},
    {"stopped", "", "do_signal_stop get_signal"},
    {"traced", "", "ptrace_stop ptrace_do_notify"},
    {"frozen", "", "get_signal arch_do_signal_or_restart"},
    {"remote_fs", "open", "p9_client_rpc v9fs_vfs_lookup"},
    {"kthread_idle", "", "kauditd_thread kthread", kKernel},
    {"userfault", "", "handle_userfault __handle_mm_fault handle_mm_fault exc_page_fault"},
    {"supervisor", "openat", "fanotify_handle_event fsnotify __fsnotify_parent do_dentry_open"},
    {"supervisor", "fsync", "__seccomp_filter syscall_trace_enter do_syscall_64"},
    {"terminal_write", "write", "n_tty_write file_tty_write.isra.0 vfs_write"},
    {"notify", "read", "tun_do_read tun_chr_read_iter vfs_read"},
    {"rcu", "membarrier", ""},
    {"cpu_stop", "sched_setaffinity", ""},
    {"read", "read", ""},
    {"other", "", "no_such_function"},
};

TEST(WaitRules, RecordedStacks) {
  for (auto& r : kRecorded) {
    std::istringstream words(r.frames);
    Frames frames(std::istream_iterator<std::string>(words), {});
    auto reason = wait_reasons()[reason_of_wait(r.flags, frames, r.call)].name;
    EXPECT_EQ(reason, r.reason) << r.call << ": " << r.frames;
  }
}

// A rule behind one of a better rank with the same or a shorter prefix has no effect.
TEST(WaitRules, FromAStackAlone) {
  auto name = [](const Frames& frames) { return wait_reasons()[reason_of_stack(frames)].name; };
  EXPECT_EQ(name({"schedule", "hrtimer_nanosleep+0x1"}), "sleep");
  EXPECT_EQ(name({"schedule", "unheard_of", "__x64_sys_fsync", "do_syscall_64"}), "sync");
  EXPECT_EQ(name({"schedule", "unheard_of", "__arm64_sys_flock.isra.0"}), "file_lock");
  EXPECT_EQ(name({"schedule", "unheard_of", "kthread", "ret_from_fork"}), "kthread_idle");
  EXPECT_EQ(name({"schedule", "unheard_of"}), "other");
}

TEST(WaitRules, EachRuleHasAReasonAndAnEffect) {
  std::set<std::string_view> with_rule;
  for (auto& rule : wait_rules()) {
    EXPECT_LT(wait_reason(rule.reason), wait_reasons().size()) << rule.reason;
    EXPECT_FALSE(rule.prefix.starts_with('_')) << rule.prefix;
    for (auto& other : wait_rules())
      EXPECT_FALSE(&other != &rule && other.rank <= rule.rank &&
                   rule.prefix.starts_with(other.prefix))
          << rule.prefix << " is behind " << other.prefix;
  }
}

}  // namespace
}  // namespace coretap
