/* Messages over a TCP connection in a private network namespace: each is sent and received in a
 * known number of calls, and waits in the receiver's socket for a known minimum time. */
#include "loopback.h"

#include <netinet/tcp.h>
#include <sys/sendfile.h>

WL_NUMBER("messages", messages, 10, "one after another, each when the last is taken");
WL_NUMBER("size", size, 1000, "bytes of a message");
WL_NUMBER("pieces", pieces, 1, "sends of a message");
WL_FLAG("together", together, "send all before the first is received");
WL_NUMBER("nap", nap_ms, 0, "that a message waits before it is received");
WL_NUMBER("gap", gap_ms, 0, "between two sends of all together");
WL_TEXT("way", way, "send", "send or sendfile");
WL_TEXT("take", take, "recv",
	"recv, splice, or waitall: with MSG_WAITALL, half is sent when the call waits");
WL_FLAG("peek", peek, "look at each message before");
WL_FLAG("fail", fail, "also sends and receives that fail");
WL_TEXT("family", family, "4", "4 or 6");
WL_NUMBER("keep", rest_of, 0, "send as many bytes that are never received");

static char buffer[1 << 16];
static int to_reader[2], to_writer[2];

struct reader_says {
	uint64_t receives;
	uint64_t least_ns; /* sums over messages: from their detection until received */
};

static bool takes(const char *how)
{
	return !strcmp(take, how);
}

static void await_bytes(int fd, uint64_t bytes)
{
	int there = 0;

	while (must(ioctl(fd, FIONREAD, &there), "FIONREAD"), (uint64_t)there < bytes)
		sched_yield();
}

/* Through a pipe; the bytes that one call has moved. */
static ssize_t splice_some(int fd, uint64_t most)
{
	static int pipes[2];
	ssize_t left;

	if (!pipes[0])
		wl_pipe(pipes);
	ssize_t n = left = splice(fd, NULL, pipes[1], NULL, most, 0);
	while (left > 0)
		left -= must(read(pipes[0], buffer, sizeof(buffer)), "read");
	return n;
}

static void take_all(int fd, struct reader_says *r, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; r->receives++) {
		uint64_t want = bytes - at < sizeof(buffer) ? bytes - at : sizeof(buffer);
		ssize_t n = takes("splice")
				    ? splice_some(fd, bytes - at)
				    : recv(fd, buffer, want, takes("waitall") ? MSG_WAITALL : 0);

		check(n > 0, take);
		at += (uint64_t)n;
	}
}

static void read_messages(int fd, struct reader_says *r)
{
	uint64_t unit = together ? messages * size : size;

	for (uint64_t i = 0; i < (together ? 1 : messages); i++) {
		/* Waits in the call for the data after the first half. */
		if (takes("waitall")) {
			await_bytes(fd, size / 2);
			wl_tell(to_writer);
			take_all(fd, r, size);
			wl_tell(to_writer);
			continue;
		}
		await_bytes(fd, unit);
		uint64_t seen = wl_now();
		if (nap_ms)
			wl_nap_ms(nap_ms);
		check(!peek || recv(fd, buffer, sizeof(buffer), MSG_PEEK) > 0, "MSG_PEEK");
		r->least_ns += wl_now() - seen;
		take_all(fd, r, unit);
		if (!together)
			wl_tell(to_writer);
	}
}

static void put(int fd, int file, uint64_t bytes)
{
	off_t at = 0;

	check((strcmp(way, "sendfile") ? send(fd, buffer, bytes, MSG_NOSIGNAL)
				       : sendfile(fd, file, &at, bytes)) == (ssize_t)bytes,
	      way);
}

static int workload(void)
{
	struct reader_says *says;
	int fd, yes = 1;
	uint64_t most_ns = 0;

	wl_one_of("way", way, "send sendfile");
	wl_one_of("take", take, "recv splice waitall");
	wl_one_of("family", family, "4 6");
	usage_if(!messages || !size || !pieces || size % pieces || size / pieces > sizeof(buffer),
		 "--size: a multiple of --pieces, at most 64k for each");
	usage_if(together && messages * size > sizeof(buffer), "--together: at most 64k in all");
	if (takes("waitall"))
		pieces = 2;
	lo_up();
	const char *own = strcmp(family, "6") ? "127.0.0.1" : "::1";
	says = wl_shared(sizeof(*says));
	int file = must(memfd_create("tcpio", MFD_CLOEXEC), "memfd");
	must(ftruncate(file, sizeof(buffer)), "memfd");
	int listener = lo_socket(lo_name(own, 0).any.sa_family, SOCK_STREAM);
	must(lo_bind(listener, lo_name(own, 0)), "bind");
	must(listen(listener, 1), "listen");
	wl_pipe(to_reader);
	wl_pipe(to_writer);
	pid_t reader = wl_fork();
	if (!reader) {
		fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC), "accept");
		read_messages(fd, says);
		check(!fail || recv(fd, buffer, 1, MSG_DONTWAIT) < 0, "a receive without data");
		wl_tell(to_writer);
		wl_hear(to_reader);
		_exit(WL_OK);
	}
	fd = lo_socket(lo_name(own, 0).any.sa_family, SOCK_STREAM);
	must(lo_connect(fd, lo_name(own, lo_port(listener))), "connect");
	must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), "TCP_NODELAY");

	wl_ready_with("reader_pid %d port %d", reader, ntohs(lo_port(listener)));

	for (uint64_t i = 0; i < messages; i++) {
		uint64_t start = wl_now();

		for (uint64_t n = 0; n < pieces; n++) {
			if (n && takes("waitall")) {
				wl_hear(to_writer);
				wl_nap_ms(20);
			}
			put(fd, file, size / pieces);
		}
		if (together) {
			wl_nap_ms(gap_ms);
			continue;
		}
		wl_hear(to_writer);
		most_ns += wl_now() - start;
	}
	if (fail) {
		check(send(-1, buffer, 1, 0) < 0, "a send to no socket");
		check(send(fd, NULL, 1, MSG_NOSIGNAL) < 0, "a send of no memory");
	}
	wl_hear(to_writer);
	if (rest_of)
		put(fd, file, rest_of);
	wl_tell(to_reader);
	wl_reap(reader);

	return wl_result("port %d sends %lu receives %lu calls %lu sent %lu received %lu "
			 "messages %lu least_ns %lu most_ns %lu",
			 ntohs(lo_port(fd)), messages * pieces + !!rest_of, says->receives,
			 messages * pieces + !!rest_of + says->receives, messages * size + rest_of,
			 messages * size, messages, says->least_ns, most_ns);
}
