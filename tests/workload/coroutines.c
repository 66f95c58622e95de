// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * coroutines CALLS FILE: two coroutines call a function that switches to the other one, CALLS times
 * each; then a function calls itself, CALLS deep. FILE gets the order in which calls returned.
 */
#define WL_OWN_MAIN
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t begun, both[2];
static FILE *to;
static int calls;

WL_FRAME int switches(int from)
{
	swapcontext(&both[from], &both[!from]);
	return from;
}

WL_FRAME int nests(int depth)
{
	int below = depth > 1 ? nests(depth - 1) : 0;

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static void runs(int which)
{
	for (int i = 0; i < calls; i++)
		fprintf(to, "%d", switches(which));
}

int main(int argc, char **argv)
{
	enum { STACK = 1 << 16 };

	if (argc != 3)
		return 2;
	calls = atoi(argv[1]);
	to = fopen(argv[2], "w");
	if (!to)
		return 1;
	for (int i = 0; i < 2; i++) {
		getcontext(&both[i]);
		both[i].uc_stack.ss_sp = malloc(STACK);
		both[i].uc_stack.ss_size = STACK;
		both[i].uc_link = i ? &begun : &both[1];
		makecontext(&both[i], (void (*)(void))runs, 1, i);
	}
	swapcontext(&begun, &both[0]);
	fprintf(to, " %d", nests(calls));
	return fclose(to) != 0;
}
