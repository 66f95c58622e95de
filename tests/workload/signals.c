/* Sends signals to its child in all ways, and prints each call's result. */
#include "workload.h"

#define CALLS 13

WL_NUMBER("rounds", rounds, 1, "rounds of calls");
static int taken[2];
static pid_t child, gone;

/* Handles all signals but SIGTTIN, which stays pending, and SIGURG, which is ignored unblocked. */
static void take_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGTTIN);
	sigdelset(&set, SIGURG);
	sigdelset(&set, SIGALRM);
	while (sigwaitinfo(&set, NULL) > 0 || errno == EINTR)
		(void)!write(taken[1], "x", 1);
	_exit(0);
}

static long send_queued(int nr, int signal)
{
	siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};

	if (nr == SYS_rt_sigqueueinfo)
		return syscall(nr, child, signal, &info);
	return syscall(nr, child, child, signal, &info);
}

static long as_nobody(void)
{
	can(setresuid(65534, 65534, 0), "setresuid");
	long ret = kill(child, SIGUSR1) ? -errno : 0;
	must(setresuid(0, 0, 0), "setresuid");
	return ret;
}

static void said(bool tell, const char *call, int signal, pid_t to, long ret, bool is_taken)
{
	if (ret == -1)
		ret = -errno;
	if (is_taken)
		wl_hear(taken);
	if (tell)
		wl_object(NULL, "call %s signal %d to %d ret %ld", call, signal, to, ret);
}

static void round_of_calls(bool tell, int pidfd)
{
	int rt = SIGRTMIN + 3;

	said(tell, "kill", SIGUSR1, child, kill(child, SIGUSR1), true);
	said(tell, "tkill", SIGUSR2, child, syscall(SYS_tkill, child, SIGUSR2), true);
	said(tell, "tgkill", SIGUSR2, child, syscall(SYS_tgkill, child, child, SIGUSR2), true);
	said(tell, "rt_sigqueueinfo", rt, child, send_queued(SYS_rt_sigqueueinfo, rt), true);
	said(tell, "rt_tgsigqueueinfo", rt, child, send_queued(SYS_rt_tgsigqueueinfo, rt), true);
	said(tell, "pidfd_send_signal", SIGUSR1, child,
	     syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, NULL, 0), true);
	said(tell, "kill", SIGURG, child, kill(child, SIGURG), false);
	said(tell, "kill", SIGTTIN, child, kill(child, SIGTTIN), false);
	said(tell, "kill", SIGTTIN, child, kill(child, SIGTTIN), false);
	said(tell, "kill", 0, child, kill(child, 0), false);
	said(tell, "kill", SIGTERM, gone, kill(gone, SIGTERM), false);
	said(tell, "kill", 65, child, kill(child, 65), false);
	said(tell, "kill", SIGUSR1, child, as_nobody(), false);
}

static int workload(void)
{
	sigset_t all;

	gone = wl_fork();
	if (!gone)
		_exit(0);
	wl_reap(gone);
	wl_pipe(taken);
	/* Before the fork: none arrives too early. */
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigprocmask(SIG_BLOCK, &all, NULL);
	child = wl_fork();
	if (!child) {
		sigset_t urgent;

		sigemptyset(&urgent);
		sigaddset(&urgent, SIGURG);
		sigprocmask(SIG_UNBLOCK, &urgent, NULL);
		(void)!write(taken[1], "x", 1);
		take_signals();
	}
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	said(false, "", 0, 0, 0, true); /* it is ready */
	int pidfd = can(syscall(SYS_pidfd_open, child, 0), "pidfd_open");

	wl_ready_with("child %d gone %d", child, gone);
	wl_open("scene", '[');
	for (uint64_t i = 0; i < rounds; i++)
		round_of_calls(i == 0, pidfd);
	said(true, "kill", SIGKILL, child, kill(child, SIGKILL), false);
	wl_close(']');
	wl_reap(child);
	return wl_result("calls %lu", rounds * CALLS + 1);
}
