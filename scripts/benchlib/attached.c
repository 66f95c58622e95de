/* attached SETTLE_MS TIMEOUT_MS LOG COMMAND...: prints after how many ns COMMAND made its last BPF attachment.
 * It watches COMMAND's own descriptors, so what else the machine traces does not count. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct attachments {
	int links;  /* bpf_link; kernels before 5.8 called some of them otherwise */
	int events; /* perf events: how bpftrace attaches, but also what perf buffers are made of */
};

static struct attachments scan(pid_t pid)
{
	struct attachments found = { 0, 0 };
	struct dirent *entry;
	char path[64], target[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return found;
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		found.links += strstr(target, "bpf_link") || strstr(target, "bpf-link") || strstr(target, "bpf-raw") ||
			       strstr(target, "bpf-tracing");
		found.events += !!strstr(target, "[perf_event]");
	}
	closedir(dir);
	return found;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGINT);
	for (int i = 0; i < 300; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	struct attachments seen = { 0, 0 }, found;
	uint64_t start, now, last_link = 0, last_event = 0, last, settle, timeout;
	pid_t pid;
	int status;

	if (argc < 5)
		return 2;
	settle = strtoull(argv[1], NULL, 10) * 1000000;
	timeout = strtoull(argv[2], NULL, 10) * 1000000;
	start = now_ns();
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		int log = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 0);
		dup2(log, 1);
		dup2(log, 2);
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	for (;;) {
		found = scan(pid);
		now = now_ns();
		/* A rise counts, not a change: tools try an attachment, close it, and attach in earnest later. */
		if (found.links > seen.links)
			last_link = now;
		if (found.events > seen.events)
			last_event = now;
		seen = found;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			fprintf(stderr, "ended with status %d before it was attached\n",
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
			return 1;
		}
		last = found.links ? last_link : found.events ? last_event : 0;
		if (last && now - last > settle)
			break;
		if (now - start > timeout) {
			fprintf(stderr, "not attached in time\n");
			end_child(pid);
			return 1;
		}
		usleep(100);
	}
	end_child(pid);
	printf("%llu\n", (unsigned long long)(last - start));
	return 0;
}
