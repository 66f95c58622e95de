#include "stacks/wait_rules.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coretap/syscalls.hpp"
#include "lib/core/shared.h"
#include "lib/sched/wait_facts.h"

namespace coretap {

namespace {

constexpr WaitReason kReasons[] = {
    {"disk_read", WaitClass::disk, "a read that was not in the page cache"},
    {"disk_direct", WaitClass::disk, "direct I/O, past the page cache"},
    {"disk_metadata", WaitClass::disk, "metadata of a file system"},
    {"sync", WaitClass::disk, "data to reach the disk: fsync, O_SYNC"},
    {"journal", WaitClass::disk, "the journal or the log of a file system"},
    {"discard", WaitClass::disk, "blocks to be discarded"},
    {"io_tag", WaitClass::disk, "a place in the queue of a disk"},
    {"io_throttle", WaitClass::disk, "a limit of I/O: of the cgroup, or of writeback"},
    {"dirty_throttle", WaitClass::disk, "fewer dirty pages, before it may write more"},
    {"disk_other", WaitClass::disk, "a disk, nothing more is known"},
    {"fault_file", WaitClass::memory, "a page of a mapped file"},
    {"swap_in", WaitClass::memory, "a page from swap"},
    {"reclaim", WaitClass::memory, "memory to be freed"},
    {"compaction", WaitClass::memory, "memory to be compacted"},
    {"memory_high", WaitClass::memory, "memory.high of its cgroup"},
    {"oom", WaitClass::memory, "the end of a process that the kernel kills for memory"},
    {"fault_numa", WaitClass::memory, "a page that moves between nodes"},
    {"userfault", WaitClass::memory, "a page that a program fills in (userfaultfd)"},
    {"lock", WaitClass::lock, "a lock of the kernel"},
    {"mmap_lock", WaitClass::lock, "the lock of its process's address space"},
    {"futex", WaitClass::lock, "a futex: locks and conditions of programs"},
    {"file_lock", WaitClass::lock, "a lock of a file"},
    {"dentry", WaitClass::lock, "another look-up of the same name"},
    {"inode", WaitClass::lock, "an inode that another task reads or frees"},
    {"pipe_read", WaitClass::peer, "data in a pipe"},
    {"pipe_write", WaitClass::peer, "room in a pipe"},
    {"terminal_write", WaitClass::peer, "room for output to a terminal"},
    {"unix", WaitClass::peer, "the other end of a Unix socket"},
    {"tcp_read", WaitClass::peer, "data on a TCP connection"},
    {"tcp_write", WaitClass::peer, "room on a TCP connection"},
    {"tcp_connect", WaitClass::peer, "a connection to be established"},
    {"udp_read", WaitClass::peer, "a datagram"},
    {"remote_fs", WaitClass::peer, "a file server"},
    {"fuse", WaitClass::peer, "the program that serves a FUSE file system"},
    {"supervisor", WaitClass::peer, "a program that decides on its calls: fanotify, seccomp"},
    {"eventfd", WaitClass::peer, "an eventfd"},
    {"sysv", WaitClass::peer, "semaphores and message queues"},
    {"children", WaitClass::peer, "child processes"},
    {"vfork", WaitClass::peer, "the child of vfork to run its program"},
    {"read", WaitClass::peer, "short waits in calls that read"},
    {"write", WaitClass::peer, "short waits in calls that write"},
    {"epoll", WaitClass::work, "events of epoll"},
    {"poll", WaitClass::work, "poll and select"},
    {"accept", WaitClass::work, "connections"},
    {"sleep", WaitClass::work, "time to pass"},
    {"timer", WaitClass::work, "a timerfd"},
    {"signal", WaitClass::work, "a signal"},
    {"io_uring", WaitClass::work, "completions of io_uring, or requests for it"},
    {"aio", WaitClass::work, "completions of asynchronous I/O"},
    {"terminal", WaitClass::work, "input from a terminal"},
    {"notify", WaitClass::work, "messages of the kernel: inotify, FUSE servers, tun, logs"},
    {"vcpu", WaitClass::work, "something to do for an idle virtual CPU (KVM)"},
    {"kthread_idle", WaitClass::work, "work for a thread of the kernel"},
    {"rcu", WaitClass::kernel, "a grace period of RCU"},
    {"workqueue", WaitClass::kernel, "work in a work queue"},
    {"cpu_stop", WaitClass::kernel, "another CPU, or a move to it"},
    {"exec", WaitClass::kernel, "other threads to end before exec"},
    {"exit", WaitClass::kernel, "the end of other threads, or a core dump"},
    {"stopped", WaitClass::stopped, "stopped by job control"},
    {"traced", WaitClass::stopped, "stopped by a debugger"},
    {"frozen", WaitClass::stopped, "stopped by the freezer"},
    {"other", WaitClass::other, "no witness has a name for it"},
};

constexpr WaitRule kRules[] = {
    {1, "traced", "ptrace_stop"},
    {1, "stopped", "do_signal_stop"},
    {1, "stopped", "do_group_exit_stop"},
    {1, "frozen", "refrigerator"},
    {1, "frozen", "do_freezer_trap"},
    // As the flag says from 5.19 on: these call nothing that waits for anything else.
    {8, "lock", "rwsem_down_"},
    {8, "lock", "mutex_lock"},
    {8, "lock", "rt_mutex_slowlock"},
    {9, "oom", "out_of_memory"},
    {9, "oom", "mem_cgroup_oom"},
    {9, "oom", "mem_cgroup_out_of_memory"},
    {9, "memory_high", "mem_cgroup_handle_over_high"},
    {10, "reclaim", "reclaim_throttle"},
    {10, "reclaim", "try_to_free_pages"},
    {10, "reclaim", "try_to_free_mem_cgroup_pages"},
    {10, "reclaim", "throttle_direct_reclaim"},
    {10, "reclaim", "shrink_node"},
    {10, "reclaim", "shrink_lruvec"},
    {11, "compaction", "compact_zone"},
    {11, "compaction", "try_to_compact_pages"},
    {12, "swap_in", "do_swap_page"},
    {12, "swap_in", "swapin_readahead"},
    {12, "swap_in", "read_swap_cache_async"},
    {12, "swap_in", "swap_read"},
    {13, "userfault", "handle_userfault"},
    {13, "fault_file", "filemap_fault"},
    {13, "fault_file", "filemap_map_pages"},
    {13, "fault_numa", "do_numa_page"},
    {13, "fault_numa", "migration_entry_wait"},
    {14, "io_throttle", "blk_throtl"},
    {14, "io_throttle", "blkcg_maybe_throttle"},
    {14, "io_throttle", "rq_qos_wait"},
    {14, "io_throttle", "ioc_rqos_throttle"},
    {14, "dirty_throttle", "balance_dirty_pages"},
    {15, "journal", "jbd2_log_wait_commit"},
    {15, "journal", "jbd2_complete_transaction"},
    {15, "journal", "jbd2_journal_"},
    {15, "journal", "start_this_handle"},
    {15, "journal", "wait_transaction_locked"},
    {15, "journal", "add_transaction_credits"},
    {15, "journal", "xlog_"},
    {15, "journal", "xfs_log_"},
    {15, "journal", "btrfs_commit_transaction"},
    {15, "journal", "btrfs_sync_log"},
    {16, "file_lock", "locks_lock_inode_wait"},
    {16, "file_lock", "flock_lock_inode_wait"},
    {16, "file_lock", "posix_lock_inode_wait"},
    {16, "file_lock", "fcntl_setlk"},
    {16, "file_lock", "break_lease"},
    {16, "dentry", "d_wait_lookup"},
    {16, "dentry", "d_alloc_parallel"},
    {16, "inode", "wait_on_freeing_inode"},
    {16, "inode", "wait_on_new_inode"},
    {16, "inode", "iget_locked"},
    {16, "inode", "find_inode"},
    {16, "lock", "percpu_rwsem_wait"},
    {16, "notify", "fuse_dev_"},
    {16, "supervisor", "fanotify_handle_event"},
    {16, "supervisor", "seccomp_"},
    {17, "remote_fs", "p9_client_rpc"},
    {17, "remote_fs", "nfs_"},
    {17, "remote_fs", "nfs4_"},
    {17, "remote_fs", "rpc_"},
    {17, "remote_fs", "cifs_"},
    {17, "remote_fs", "smb2_"},
    {17, "remote_fs", "ceph_"},
    {17, "fuse", "request_wait_answer"},
    {17, "fuse", "fuse_"},
    {18, "futex", "futex_wait"},
    {18, "futex", "futex_do_wait"},
    {18, "futex", "futex_lock_pi"},
    {18, "futex", "do_futex"},
    {19, "discard", "blkdev_issue_discard"},
    {19, "discard", "blkdev_issue_zeroout"},
    {19, "sync", "vfs_fsync_range"},
    {19, "sync", "do_fsync"},
    {19, "sync", "ext4_sync_file"},
    {19, "sync", "xfs_file_fsync"},
    {19, "sync", "btrfs_sync_file"},
    {19, "sync", "blkdev_issue_flush"},
    {19, "sync", "file_write_and_wait_range"},
    {19, "sync", "filemap_fdatawait"},
    {19, "sync", "sync_inodes_sb"},
    {19, "sync", "sync_filesystem"},
    {19, "sync", "sync_dirty_buffer"},
    {19, "sync", "ksys_sync"},
    {20, "disk_direct", "iomap_dio_"},
    {20, "disk_direct", "blockdev_direct_IO"},
    {20, "disk_direct", "blkdev_direct_IO"},
    {21, "disk_metadata", "ext4_find_entry"},
    {21, "disk_metadata", "ext4_get_inode_loc"},
    {21, "disk_metadata", "ext4_bread"},
    {21, "disk_metadata", "ext4_read_bh"},
    {21, "disk_metadata", "ext4_read_block_bitmap"},
    {21, "disk_metadata", "ext4_wait_block_bitmap"},
    {21, "disk_metadata", "bread_gfp"},
    {21, "disk_metadata", "bh_read"},
    {21, "disk_metadata", "wait_on_buffer"},
    {21, "disk_metadata", "xfs_buf_"},
    {21, "disk_metadata", "read_extent_buffer"},
    {22, "disk_read", "filemap_read"},
    {22, "disk_read", "filemap_get_pages"},
    {22, "disk_read", "filemap_update_page"},
    {22, "disk_read", "page_cache_ra_"},
    {22, "disk_read", "page_cache_sync_ra"},
    {22, "disk_read", "do_read_cache_"},
    {22, "disk_read", "generic_file_read_iter"},
    {22, "disk_read", "generic_file_buffered_read"},
    {23, "io_tag", "blk_mq_get_tag"},
    {24, "sync", "folio_wait_writeback"},
    {24, "sync", "wait_on_page_writeback"},
    {25, "accept", "inet_csk_accept"},
    {25, "accept", "unix_accept"},
    {25, "terminal", "n_tty_read"},
    {25, "terminal_write", "n_tty_write"},
    {25, "notify", "inotify_read"},
    {25, "notify", "fanotify_read"},
    {25, "notify", "devkmsg_read"},
    {25, "notify", "do_syslog"},
    {25, "notify", "tun_do_read"},
    {25, "notify", "tap_do_read"},
    {25, "notify", "userfaultfd_read"},
    {25, "notify", "tracing_read_pipe"},
    {25, "notify", "tracing_wait_pipe"},
    {25, "notify", "netlink_recvmsg"},
    {25, "pipe_read", "pipe_read"},
    {25, "pipe_read", "anon_pipe_read"},
    {25, "pipe_read", "pipe_wait_readable"},
    {25, "pipe_read", "fifo_open"},
    {25, "pipe_write", "pipe_write"},
    {25, "pipe_write", "anon_pipe_write"},
    {25, "pipe_write", "pipe_wait_writable"},
    {25, "unix", "unix_stream_"},
    {25, "unix", "unix_dgram_"},
    {25, "unix", "unix_wait_for_peer"},
    {25, "tcp_connect", "inet_stream_connect"},
    {25, "tcp_connect", "inet_wait_for_connect"},
    {26, "tcp_read", "tcp_recvmsg"},
    {26, "tcp_read", "mptcp_recvmsg"},
    {26, "tcp_read", "tcp_splice_read"},
    {26, "tcp_write", "tcp_sendmsg"},
    {26, "tcp_write", "sk_stream_wait_"},
    {26, "udp_read", "udp_recvmsg"},
    {26, "udp_read", "udpv6_recvmsg"},
    {26, "udp_read", "skb_recv_udp"},
    {27, "udp_read", "skb_wait_for_more_packets"},
    {26, "eventfd", "eventfd_read"},
    {26, "eventfd", "eventfd_write"},
    {26, "sysv", "do_semtimedop"},
    {26, "sysv", "do_msgrcv"},
    {26, "sysv", "do_msgsnd"},
    {26, "sysv", "do_mq_timed"},
    {26, "timer", "timerfd_read"},
    {26, "signal", "do_sigtimedwait"},
    {26, "signal", "sigsuspend"},
    {26, "signal", "signalfd_"},
    {26, "signal", "x64_sys_pause"},
    {26, "children", "do_wait$"},
    {26, "children", "kernel_wait"},
    {28, "vfork", "kernel_clone"},
    {28, "vfork", "do_fork$"},
    {28, "rcu", "synchronize_rcu"},
    {28, "rcu", "synchronize_srcu"},
    {28, "rcu", "wait_rcu_gp"},
    {28, "rcu", "rcu_barrier"},
    {28, "rcu", "exp_funnel_lock"},
    {28, "workqueue", "flush_work"},
    {28, "workqueue", "drain_workqueue"},
    {28, "workqueue", "cancel_work_sync"},
    {28, "cpu_stop", "stop_one_cpu"},
    {28, "cpu_stop", "stop_two_cpus"},
    {28, "cpu_stop", "stop_machine"},
    {28, "cpu_stop", "affine_move_task"},
    {28, "exec", "de_thread"},
    {28, "exec", "begin_new_exec"},
    {28, "exit", "coredump_task_exit"},
    {28, "exit", "zap_pid_ns_processes"},
    {28, "exit", "exit_mm"},
    {30, "io_uring", "io_cqring_wait"},
    {30, "io_uring", "io_wq_worker"},
    {30, "io_uring", "io_wqe_worker"},
    {30, "io_uring", "io_sq_thread"},
    {30, "aio", "read_events"},
    {30, "epoll", "do_epoll_wait"},
    {30, "epoll", "ep_poll"},
    {30, "poll", "do_sys_poll"},
    {30, "poll", "do_select"},
    {30, "poll", "poll_schedule_timeout"},
    {30, "vcpu", "kvm_vcpu_block"},
    {30, "vcpu", "kvm_vcpu_halt"},
    {30, "sleep", "hrtimer_nanosleep"},
    {30, "sleep", "do_nanosleep"},
    {35, "disk_other", "submit_bio_wait"},
    {35, "disk_other", "blk_io_schedule"},
    {35, "disk_other", "blk_execute_rq"},
    {36, "disk_read", "folio_wait_bit"},
    {36, "disk_read", "wait_on_page_bit"},
    {39, "frozen", "get_signal"},  // do_freezer_trap is inline
    {40, "kthread_idle", "worker_thread"},
    {40, "kthread_idle", "rescuer_thread"},
    {40, "kthread_idle", "smpboot_thread_fn"},
    {40, "kthread_idle", "kthread_worker_fn"},
};

/// The callers that wait for mmap_lock: locks themselves are not in the stacks of waits.
constexpr std::string_view kMmapCallers[] = {"vm_munmap",
                                             "vm_mmap_pgoff",
                                             "do_mprotect_pkey",
                                             "do_madvise",
                                             "mm_populate",
                                             "do_user_addr_fault",
                                             "lock_mm_and_find_vma",
                                             "mmap_read_lock",
                                             "mmap_write_lock",
                                             "vm_brk",
                                             "x64_sys_brk",
                                             "x64_sys_mremap",
                                             "do_mlock",
                                             "dup_mmap",
                                             "exit_mmap",
                                             "do_page_fault"};

constexpr std::pair<std::string_view, std::string_view> kCalls[] = {
    {"epoll_wait", "epoll"},
    {"epoll_pwait", "epoll"},
    {"epoll_pwait2", "epoll"},
    {"poll", "poll"},
    {"ppoll", "poll"},
    {"select", "poll"},
    {"pselect6", "poll"},
    {"nanosleep", "sleep"},
    {"clock_nanosleep", "sleep"},
    {"futex", "futex"},
    {"futex_wait", "futex"},
    {"futex_waitv", "futex"},
    {"wait4", "children"},
    {"waitid", "children"},
    {"accept", "accept"},
    {"accept4", "accept"},
    {"connect", "tcp_connect"},
    {"read", "read"},
    {"readv", "read"},
    {"pread64", "read"},
    {"preadv", "read"},
    {"preadv2", "read"},
    {"recvfrom", "read"},
    {"recvmsg", "read"},
    {"recvmmsg", "read"},
    {"splice", "read"},
    {"sendfile", "read"},
    {"write", "write"},
    {"writev", "write"},
    {"pwrite64", "write"},
    {"pwritev", "write"},
    {"pwritev2", "write"},
    {"sendto", "write"},
    {"sendmsg", "write"},
    {"sendmmsg", "write"},
    {"fsync", "sync"},
    {"fdatasync", "sync"},
    {"sync", "sync"},
    {"syncfs", "sync"},
    {"msync", "sync"},
    {"sync_file_range", "sync"},
    {"flock", "file_lock"},
    {"rt_sigtimedwait", "signal"},
    {"rt_sigsuspend", "signal"},
    {"pause", "signal"},
    {"io_uring_enter", "io_uring"},
    {"io_getevents", "aio"},
    {"io_pgetevents", "aio"},
    {"semop", "sysv"},
    {"semtimedop", "sysv"},
    {"msgrcv", "sysv"},
    {"msgsnd", "sysv"},
    {"vfork", "vfork"},
    {"execve", "exec"},
    {"execveat", "exec"},
    {"exit", "exit"},
    {"exit_group", "exit"},
    {"membarrier", "rcu"},
    {"sched_setaffinity", "cpu_stop"},
    {"restart_syscall", "sleep"},
};

std::string_view bare(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name.substr(0, name.find_first_of("+ "));
}

bool matches(const WaitRule& rule, std::string_view name) {
  auto prefix = rule.prefix;
  if (!prefix.ends_with('$')) return name.starts_with(prefix);
  prefix.remove_suffix(1);
  return name == prefix;
}

bool waits_for_mmap_lock(const Frames& frames, std::string_view call) {
  if (call == "mmap" || call == "munmap" || call == "mprotect" || call == "brk") return true;
  return std::ranges::any_of(frames, [](auto& frame) {
    auto name = bare(frame);
    return std::ranges::any_of(kMmapCallers, [&](auto caller) { return name.starts_with(caller); });
  });
}

bool is_of(std::size_t reason, WaitClass of) { return kReasons[reason].of == of; }

}  // namespace

std::span<const WaitReason> wait_reasons() { return kReasons; }
std::span<const WaitRule> wait_rules() { return kRules; }

std::size_t wait_reason(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kReasons, name, &WaitReason::name) -
                                  std::begin(kReasons));
}

std::optional<std::size_t> reason_by_stack(const Frames& frames) {
  const WaitRule* best = nullptr;
  for (auto& frame : frames)
    for (auto& rule : kRules)
      if ((!best || rule.rank < best->rank) && matches(rule, bare(frame))) best = &rule;
  if (!best) return {};
  return wait_reason(best->reason);
}

std::optional<std::size_t> reason_by_call(std::string_view call) {
  auto* found = std::ranges::find(kCalls, call, [](auto& c) { return c.first; });
  if (found == std::end(kCalls)) return {};
  return wait_reason(found->second);
}

std::size_t reason_of_wait(WaitFlags flags, const Frames& frames, std::string_view call) {
  if (flags.traced) return wait_reason("traced");
  if (flags.stopped) return wait_reason("stopped");
  if (flags.frozen) return wait_reason("frozen");
  auto by_stack = reason_by_stack(frames);
  if (flags.lock || by_stack == wait_reason("lock"))
    return wait_reason(waits_for_mmap_lock(frames, call) ? "mmap_lock" : "lock");
  if (flags.memstall)
    return by_stack && is_of(*by_stack, WaitClass::memory) ? *by_stack : wait_reason("reclaim");
  if (by_stack) return *by_stack;
  auto by_call = reason_by_call(call);
  if (flags.io) {
    if (by_call && (is_of(*by_call, WaitClass::disk) || *by_call == wait_reason("io_uring")))
      return *by_call;
    return wait_reason(by_call == wait_reason("read") ? "disk_read" : "disk_other");
  }
  if (flags.kthread) return wait_reason("kthread_idle");
  return by_call.value_or(wait_reason("other"));
}

std::size_t reason_of_wait(std::uint64_t facts, const Frames& frames) {
  auto has = [&](std::uint64_t flag) { return (facts & flag) != 0; };
  auto call = static_cast<std::uint32_t>(facts & WALL_CALL);
  return reason_of_wait({.stopped = has(WALL_STOPPED),
                         .traced = has(WALL_TRACED),
                         .frozen = has(WALL_FROZEN),
                         .lock = has(WALL_LOCK),
                         .memstall = has(WALL_MEMSTALL),
                         .io = has(WALL_IOWAIT),
                         .kthread = has(WALL_KTHREAD)},
                        frames, call < CALLS ? syscall_name(call) : "");
}

std::size_t reason_of_stack(const Frames& frames) {
  std::string_view call;
  bool kthread = false;
  for (auto& frame : frames) {
    auto name = bare(frame);
    kthread |= name == "kthread";
    for (std::string_view prefix : {"x64_sys_", "arm64_sys_", "se_sys_", "ksys_"})
      if (name.starts_with(prefix)) call = name.substr(prefix.size());
  }
  return reason_of_wait({.kthread = kthread}, frames, call.substr(0, call.find('.')));
}

}  // namespace coretap
