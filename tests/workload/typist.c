/* Types known lines into an interactive bash on a private terminal. */
#include "workload.h"

#include <pty.h>

WL_NUMBER("lines", lines, 5, "lines of the form \": line N xxx\"");
WL_BOUNDED("length", length, 20, 20, 8190, "of each of them");
WL_TEXT("last", last_wanted, ": \\\"\\xc3\\xa9\\xff\\\"", "typed after them; \\xNN gives any byte");
WL_TEXT("shell", shell, "/bin/bash", "the program; with --comm under that name");
static char typed[8192], seen[1 << 16];
static size_t seen_size;

#define PROMPT "<ready>"

/* Reads the terminal's output until there is another prompt. */
static void await_prompt(int terminal)
{
	for (;;) {
		seen[seen_size] = '\0';
		char *prompt = strstr(seen, PROMPT);
		if (prompt) {
			seen_size = 0;
			return;
		}
		if (seen_size > sizeof(seen) / 2) /* the echo of a long line */
			seen_size = 0;
		ssize_t n = read(terminal, seen + seen_size, sizeof(seen) - seen_size - 1);
		fail_if(n <= 0, "the shell has gone");
		for (ssize_t i = 0; i < n; i++)
			if (!seen[seen_size + i])
				seen[seen_size + i] = '?';
		seen_size += n;
	}
}

static void type(int terminal, const char *text)
{
	size_t size = strlen(text);

	for (size_t done = 0; done < size;)
		done += (size_t)must(write(terminal, text + done, size - done), "the terminal");
}

static void become_shell(const char *name)
{
	static char *const environment[] = {
		"PATH=/usr/bin:/bin", "TERM=dumb", "PS1=" PROMPT,    "HISTFILE=/dev/null",
		"INPUTRC=/dev/null",  "HOME=/",	   "LC_ALL=C.UTF-8", NULL};

	execle(name, name, "--norc", "--noprofile", "-i", (char *)NULL, environment);
	_exit(127);
}

static int workload(void)
{
	char last[512];
	int terminal;

	cannot_if(access(shell, X_OK), shell);
	const char *program = shell;
	wl_unescape(last_wanted, last, sizeof(last) - 1);
	if (wl_comm_wanted) {
		char name[64];

		wl_unescape(wl_comm_wanted, name, sizeof(name));
		program = wl_alias(shell, "/tmp", name);
	}
	wl_ready();

	pid_t pid = can(forkpty(&terminal, NULL, NULL, NULL), "forkpty");
	if (pid == 0)
		become_shell(program);
	wl_undo(WL_UNDO_KILL, pid, NULL, NULL);
	await_prompt(terminal);
	for (uint64_t i = 0; i < lines; i++) {
		int n = snprintf(typed, sizeof(typed), ": line %lu ", i);

		memset(typed + n, 'x', length - n);
		strcpy(typed + length, "\r");
		type(terminal, typed);
		await_prompt(terminal);
	}
	type(terminal, last);
	type(terminal, "\r");
	await_prompt(terminal);
	type(terminal, "\004"); /* end of input */
	while (read(terminal, seen, sizeof(seen)) > 0)
		;
	wl_reap(pid);

	return wl_result("shell_pid %d lines %lu length %lu last_hex %p", pid, lines, length, last);
}
