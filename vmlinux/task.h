/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks, their identities, the scheduler, signals, interrupts. */
#pragma once

/* include/linux/pid_namespace.h, include/linux/pid.h, fs/mount.h, include/linux/nsproxy.h */
struct pid_namespace {
	struct ns_common ns;
};

/* Elements of pid.numbers: indexed at run time, by the size it has here. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[0];
};

struct mnt_namespace {
	struct ns_common ns;
};

struct user_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct pid_namespace *pid_ns_for_children;
};

/* include/linux/cred.h */
struct cred {
	kuid_t uid;
};

/* include/linux/signal_types.h, include/linux/sched/signal.h */
typedef void __signalfn_t(int);
typedef __signalfn_t *__sighandler_t;

struct sigaction {
	__sighandler_t sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

struct kernel_siginfo {
	int si_code;
};

struct signal_struct {
	atomic_t live;
	int nr_threads;
	struct {
		struct {
			struct {
				unsigned int sequence;
			} seqcount;
		} seqcount;
	} stats_lock;
	int group_exit_code;
	unsigned int flags;
	unsigned long maxrss;
	short oom_score_adj;
	struct mm_struct *oom_mm;
	struct list_head thread_head;
};

/* include/linux/interrupt.h */
struct irqaction {
	const char *name;
};

/* include/linux/workqueue_types.h, kernel/workqueue.c */
struct work_struct {
	void *func;
};

struct workqueue_struct {
	char name[32];
};

struct pool_workqueue {
	struct workqueue_struct *wq;
};

/* include/linux/smp_types.h, include/linux/smp.h */
struct __call_single_node {
	unsigned int u_flags;
};

struct __call_single_data {
	struct __call_single_node node;
	void *func;
};

/* kernel/sched/sched.h */
struct rq;

struct cfs_rq;

struct task_group {
	struct cfs_rq **cfs_rq;
};

struct cfs_rq {
	unsigned int h_nr_runnable;
	struct rq *rq;
	struct task_group *tg;
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
};

struct rt_rq {
	unsigned int rt_nr_running;
};

struct dl_rq {
	unsigned int dl_nr_running;
};

struct scx_rq {
	unsigned int nr_running;
};

struct rq {
	struct cfs_rq cfs;
	struct rt_rq rt;
	struct dl_rq dl;
	struct scx_rq scx;
	struct task_struct *curr;
	u64 clock;
	u64 clock_task;
	u64 prev_steal_time_rq;
	u64 nr_switches;
	int online;
};

/* include/linux/task_io_accounting.h */
struct task_io_accounting {
	u64 syscr;
};

/* include/linux/sched.h */
struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

/* include/linux/cpumask_types.h; longer where there are more CPUs */
struct cpumask {
	unsigned long bits[1];
};

struct sched_entity {
	unsigned char sched_delayed;
	u64 exec_start;
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

/* linux/uprobes.h */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned long sas_ss_sp;
	size_t sas_ss_size;
	unsigned int flags;
	unsigned int on_cpu; /* the same */
	unsigned int on_rq;  /* int until 7.3: only unsigned numbers may shrink */
	int prio;
	unsigned int policy;
	struct sched_entity se;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct cpumask cpus_mask;
	unsigned short migration_disabled;
	struct sched_info sched_info;
	struct mm_struct *mm;
	int exit_code;
	unsigned in_execve : 1;
	unsigned in_iowait : 1;
	unsigned in_memstall : 1;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
	const struct cred *cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	u64 parent_exec_id;
	u64 self_exec_id;
	unsigned int pagefault_disabled;
	struct task_io_accounting ioac;
	struct css_set *cgroups;
	struct list_head thread_node;
	struct mutex *blocked_on;
	unsigned long blocker;
	struct uprobe_task *utask;
};
