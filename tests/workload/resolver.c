/* Resolves names by the C library, a known number of times; nothing leaves the machine. */
#include "workload.h"

#include <netdb.h>

WL_BOUNDED("count", count, 5, 1, 1000000, "rounds of all kinds of calls");
WL_BOUNDED("threads", threads, 1, 1, 64, "threads that ask for numbers too");
WL_NUMBER("short-lived", short_lived, 0, "threads that ask once and end");
static const char hostile[] = "\x1b[31m\n\xff\"\\x.invalid";
static char longest[400];
static uint64_t calls[5], failures, nameless, took_ns;

enum { ADDRINFO, BYNAME, BYNAME2, BYNAME_R, BYNAME2_R };

static void ask(const char *name, int flags)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *found = NULL;
	uint64_t start = wl_now();
	int error = getaddrinfo(name, name ? NULL : "80", &hints, &found);

	__atomic_add_fetch(&took_ns, wl_now() - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&calls[ADDRINFO], 1, __ATOMIC_RELAXED);
	if (error)
		__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	else
		freeaddrinfo(found);
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

static void *thread_main(void *unused)
{
	for (uint64_t i = 0; i < count; i++)
		ask("127.0.1.1", AI_NUMERICHOST);
	return unused;
}

static void *short_lived_main(void *unused)
{
	ask("127.0.1.2", AI_NUMERICHOST);
	return unused;
}

static int workload(void)
{
	static const char *const keys[] = {"getaddrinfo", "gethostbyname", "gethostbyname2",
					   "gethostbyname_r", "gethostbyname2_r"};

	memset(longest, 'a', 300);
	wl_ready();
	for (uint64_t i = 0; i < count; i++)
		ask_all();
	wl_threads(threads - 1, thread_main, NULL, 0);
	for (uint64_t i = 0; i < short_lived; i++)
		wl_threads(1, short_lived_main, NULL, 0);

	for (size_t i = 0; i < WL_COUNT(keys); i++)
		wl_u64(keys[i], calls[i]);
	return wl_result("failures %lu nameless %lu took_ns %lu name_hex %p", failures, nameless,
			 took_ns, hostile);
}
