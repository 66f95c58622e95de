/* Has functions with the names that tools trace in database servers, TLS libraries and Java's
 * virtual machine, and calls them a known number of times, as the real programs do. */
#include "workload.h"

#include <setjmp.h>

WL_TEXT("kind", kind, "mysql", "mysql, postgres, tls or java");
WL_NUMBER("count", count, 1, "rounds of each thread");
WL_NUMBER("ms", ms, 0, "that each call takes");
static uint64_t server_queries, parses, tls_calls, tls_bytes, pauses;
static char longest[20000], beyond[40000];

/* Minimum duration of a traced call. */
static void work(void)
{
	if (ms)
		wl_nap_ms((unsigned int)ms);
}

WL_FRAME void _ZN11Query_cache21send_result_to_clientEP3THDPcj(void *, void *, char *, unsigned int)
{
	WL_KEEP_FRAME();
	__asm__ volatile("");
}

WL_FRAME int _Z16dispatch_command19enum_server_commandP3THDPcjb(int command, void *thd, char *text,
								unsigned int bytes, bool)
{
	static char executed[] = "select 'executed'";

	WL_KEEP_FRAME();
	if (command == 23)
		_ZN11Query_cache21send_result_to_clientEP3THDPcj(NULL, thd, executed,
								 sizeof(executed) - 1);
	work();
	/* Servers use the packet for the answer. */
	memset(text, 'x', bytes < 64 ? bytes : 64);
	return 0;
}

WL_FRAME void pgstat_report_activity(int, const char *)
{
	WL_KEEP_FRAME();
	__asm__ volatile("");
}

static sigjmp_buf on_error;

WL_FRAME bool PortalRun(bool fails)
{
	WL_KEEP_FRAME();
	work();
	if (fails)
		siglongjmp(on_error, 1);
	return true;
}

WL_FRAME int SSL_read(void *, void *buffer, int bytes)
{
	WL_KEEP_FRAME();
	memset(buffer, 'r', (size_t)bytes);
	return bytes;
}

WL_FRAME int SSL_write(void *, const void *, int bytes)
{
	WL_KEEP_FRAME();
	work();
	return bytes;
}

WL_FRAME int SSL_write_ex(void *, const void *, size_t bytes, size_t *written)
{
	WL_KEEP_FRAME();
	*written = bytes / 2;
	return 1;
}

WL_FRAME void _ZN15VM_GC_Operation15notify_gc_beginEb(bool)
{
	WL_KEEP_FRAME();
	__asm__ volatile("");
}

WL_FRAME void _ZN15VM_GC_Operation13notify_gc_endEv(void)
{
	WL_KEEP_FRAME();
	__asm__ volatile("");
}

static void java(void)
{
	_ZN15VM_GC_Operation15notify_gc_beginEb(true);
	work();
	_ZN15VM_GC_Operation13notify_gc_endEv();
	pauses += 1;
}

static void ask(int command, const char *text, size_t bytes)
{
	static char packet[sizeof(beyond)];

	memcpy(packet, text, bytes);
	_Z16dispatch_command19enum_server_commandP3THDPcjb(command, NULL, packet,
							   (unsigned int)bytes, true);
	if (command != 14)
		server_queries += 1;
}

static void mysql(void)
{
	static const char hostile[] = "select '\x1b[31m', '\n', '\xff'";

	ask(3, hostile, sizeof(hostile) - 1);
	ask(22, "select ?", 8);
	ask(23, "\1\0\0\0", 4);
	ask(3, longest, sizeof(longest));
	ask(3, beyond, sizeof(beyond));
	ask(14, "", 0); /* ping */
}

static void postgres(void)
{
	pgstat_report_activity(2, "select 'simple'");
	PortalRun(false);
	pgstat_report_activity(1, NULL);
	for (int part = 0; part < 3; part++) /* parse, bind, execute */
		pgstat_report_activity(2, "select $1");
	PortalRun(false);
	/* The next one of a pipeline. */
	for (int part = 0; part < 2; part++)
		pgstat_report_activity(2, "select 'next'");
	PortalRun(false);
	pgstat_report_activity(1, NULL);
	pgstat_report_activity(2, "select 1/g");
	if (!sigsetjmp(on_error, 0))
		PortalRun(true);
	pgstat_report_activity(1, NULL);
	pgstat_report_activity(2, "selekt");
	pgstat_report_activity(1, NULL);
	server_queries += 5;
	parses += 1;
}

static void tls(void)
{
	char buffer[3000] = "GET /secret HTTP/1.1\r\n";
	size_t written;

	SSL_write(NULL, buffer, 22);
	SSL_read(NULL, buffer, sizeof(buffer));
	SSL_write_ex(NULL, buffer, 600, &written);
	tls_calls += 3;
	tls_bytes += 22 + sizeof(buffer) + 300;
}

static int workload(void)
{
	wl_one_of("kind", kind, "mysql postgres tls java");
	memset(longest, 'q', sizeof(longest));
	memset(beyond, 'b', sizeof(beyond));
	wl_ready();
	for (uint64_t i = 0; i < count; i++) {
		if (!strcmp(kind, "mysql"))
			mysql();
		else if (!strcmp(kind, "postgres"))
			postgres();
		else if (!strcmp(kind, "tls"))
			tls();
		else
			java();
	}
	return wl_result("queries %lu parses %lu tls_calls %lu tls_bytes %lu pauses %lu",
			 server_queries, parses, tls_calls, tls_bytes, pauses);
}
