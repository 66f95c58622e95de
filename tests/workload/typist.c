/* Types known lines into an interactive bash on a terminal of its own. */
#include "workload.h"

#include <pty.h>

static uint64_t lines = 5, length = 20;
static const char *shell = "/bin/bash", *last_wanted = ": \\\"\\xc3\\xa9\\xff\\\"";
static char typed[8192], seen[1 << 16], link_path[WL_PATH];
static size_t seen_size;

#define PROMPT "<ready>"

/* Reads what the terminal shows until there is another prompt. */
static void await_prompt(int terminal)
{
	for (;;) {
		char *prompt;
		ssize_t n;

		seen[seen_size] = '\0';
		prompt = strstr(seen, PROMPT);
		if (prompt) {
			seen_size = 0;
			return;
		}
		if (seen_size > sizeof(seen) / 2) /* the echo of a long line */
			seen_size = 0;
		n = read(terminal, seen + seen_size, sizeof(seen) - seen_size - 1);
		if (n <= 0)
			wl_die(WL_FAILED, "the shell has gone: %m");
		for (ssize_t i = 0; i < n; i++)
			if (!seen[seen_size + i])
				seen[seen_size + i] = '?';
		seen_size += n;
	}
}

static void type(int terminal, const char *text)
{
	size_t size = strlen(text), done = 0;

	while (done < size) {
		ssize_t n = write(terminal, text + done, size - done);

		if (n < 0)
			wl_die(WL_FAILED, "the terminal: %m");
		done += n;
	}
}

static void become_shell(const char *name)
{
	static char *const environment[] = {
		"PATH=/usr/bin:/bin", "TERM=dumb", "PS1=" PROMPT,    "HISTFILE=/dev/null",
		"INPUTRC=/dev/null",  "HOME=/",	   "LC_ALL=C.UTF-8", NULL};

	execle(name, name, "--norc", "--noprofile", "-i", (char *)NULL, environment);
	_exit(127);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"lines", WL_NUM, &lines, "N", "lines of the form \": line N xxx\""},
		{"length", WL_NUM, &length, "BYTES", "of each of them"},
		{"last", WL_STR, &last_wanted, "LINE", "typed after them; \\xNN gives any byte"},
		{"shell", WL_STR, &shell, "PATH", "the program; with --comm under that name"},
		{0},
	};
	char last[512];
	int terminal;
	pid_t pid;

	wl_start(argc, argv, "typist", "Types lines into bash.", opts);
	if (length < 20 || length > sizeof(typed) - 2)
		wl_die(WL_USAGE, "--length: 20 to %zu", sizeof(typed) - 2);
	if (access(shell, X_OK))
		wl_die(WL_CANNOT, "%s: %m", shell);
	wl_unescape(last_wanted, last, sizeof(last) - 1);
	if (wl_comm_wanted) {
		char name[64];

		wl_unescape(wl_comm_wanted, name, sizeof(name));
		wl_alias(shell, "/tmp", name, link_path, sizeof(link_path));
	}
	wl_ready();

	pid = forkpty(&terminal, NULL, NULL, NULL);
	if (pid < 0)
		wl_die(WL_CANNOT, "forkpty: %m");
	if (pid == 0)
		become_shell(link_path[0] ? link_path : shell);
	wl_undo(WL_UNDO_KILL, pid, NULL, NULL);
	await_prompt(terminal);
	for (uint64_t i = 0; i < lines; i++) {
		int n = snprintf(typed, sizeof(typed), ": line %llu ", (unsigned long long)i);

		memset(typed + n, 'x', length - n);
		strcpy(typed + length, "\r");
		type(terminal, typed);
		await_prompt(terminal);
	}
	type(terminal, last);
	type(terminal, "\r");
	await_prompt(terminal);
	type(terminal, "\004"); /* no line: the end */
	while (read(terminal, seen, sizeof(seen)) > 0)
		;
	wl_reap(pid);

	wl_line_begin();
	wl_i64("shell_pid", pid);
	wl_u64("lines", lines);
	wl_u64("length", length);
	wl_hex("last_hex", last, strlen(last));
	wl_finish();
	return WL_OK;
}
