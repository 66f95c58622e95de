/* Asks the C library for names, a known number of times; nothing leaves the machine. */
#include "workload.h"

#include <netdb.h>

static uint64_t count = 5, threads = 1, short_lived;
static const char *name_wanted = "\\x1b[31m\\x0a\\xff\"\\\\x.invalid";
static char hostile[300], longest[400];
static uint64_t calls[5], failures, nameless, took_ns[5];

enum { ADDRINFO, BYNAME, BYNAME2, BYNAME_R, BYNAME2_R };

static int ask(const char *name, int flags)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *found = NULL;
	uint64_t start = wl_clock(CLOCK_MONOTONIC);
	int error = getaddrinfo(name, name ? NULL : "80", &hints, &found);

	__atomic_add_fetch(&took_ns[ADDRINFO], wl_clock(CLOCK_MONOTONIC) - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&calls[ADDRINFO], 1, __ATOMIC_RELAXED);
	if (error)
		__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	else
		freeaddrinfo(found);
	return error;
}

static void ask_all(void)
{
	struct hostent host, *found;
	char buffer[2048];
	int error;

	ask("127.0.0.1", AI_NUMERICHOST);
	ask("::1", AI_NUMERICHOST);
	ask("not-a-number.invalid", AI_NUMERICHOST);
	ask(hostile, AI_NUMERICHOST);
	ask(longest, AI_NUMERICHOST);
	ask(NULL, AI_PASSIVE | AI_NUMERICSERV);
	nameless++;

	calls[BYNAME]++; /* calls gethostbyname_r itself */
	failures += !gethostbyname("localhost");
	calls[BYNAME2]++;
	failures += !gethostbyname2("127.0.0.3", AF_INET);
	calls[BYNAME_R]++;
	failures += gethostbyname_r("127.0.0.4", &host, buffer, sizeof(buffer), &found, &error) ||
		    !found;
	/* No room for the answer. */
	calls[BYNAME_R]++;
	failures += gethostbyname_r("127.0.0.5", &host, buffer, 1, &found, &error) || !found;
	calls[BYNAME2_R]++;
	failures += gethostbyname2_r("127.0.0.6", AF_INET, &host, buffer, sizeof(buffer), &found,
				     &error) ||
		    !found;
}

static void *thread_main(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < count; i++)
		ask("127.0.1.1", AI_NUMERICHOST);
	return NULL;
}

static void *short_lived_main(void *arg)
{
	(void)arg;
	ask("127.0.1.2", AI_NUMERICHOST);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "rounds of all kinds of calls"},
		{"threads", WL_NUM, &threads, "K", "threads that ask for numbers too"},
		{"short-lived", WL_NUM, &short_lived, "K", "threads that ask once and end"},
		{"name", WL_STR, &name_wanted, "NAME", "a hostile name; \\xNN gives any byte"},
		{0},
	};
	static const char *const keys[] = {"getaddrinfo", "gethostbyname", "gethostbyname2",
					   "gethostbyname_r", "gethostbyname2_r"};
	pthread_t thread[64];

	wl_start(argc, argv, "resolver", "Resolves names that need no network.", opts);
	if (threads < 1 || threads > WL_COUNT(thread) || count < 1 || count > 1000000)
		wl_die(WL_USAGE, "want 1 to 64 threads and 1 to 1000000 rounds");
	wl_unescape(name_wanted, hostile, sizeof(hostile));
	memset(longest, 'a', 300);
	wl_ready();
	for (uint64_t i = 0; i < count; i++)
		ask_all();
	for (uint64_t i = 0; i + 1 < threads; i++)
		if (pthread_create(&thread[i], NULL, thread_main, NULL))
			wl_die(WL_FAILED, "cannot make a thread");
	for (uint64_t i = 0; i + 1 < threads; i++)
		pthread_join(thread[i], NULL);
	for (uint64_t i = 0; i < short_lived; i++) {
		if (pthread_create(&thread[0], NULL, short_lived_main, NULL))
			wl_die(WL_FAILED, "cannot make a thread");
		pthread_join(thread[0], NULL);
	}

	wl_line_begin();
	for (size_t i = 0; i < WL_COUNT(keys); i++)
		wl_u64(keys[i], calls[i]);
	wl_u64("failures", failures);
	wl_u64("nameless", nameless);
	wl_u64("took_ns", took_ns[ADDRINFO]);
	wl_hex("name_hex", hostile, strlen(hostile));
	wl_finish();
	return WL_OK;
}
