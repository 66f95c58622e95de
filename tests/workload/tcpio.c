/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages over a TCP connection in a network namespace of its own: each is sent and received in a
 * known number of calls, and waits in the receiver's socket for a known time at least. */
#include "workload.h"
#include "loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>

static uint64_t messages = 10, size = 1000, pieces = 1, nap_ms, gap_ms, rest_of;
static const char *family = "4", *way = "send", *take = "recv";
static bool peek, fail, together;

static char buffer[1 << 16];
static int to_reader[2], to_writer[2];

struct reader_says {
	uint64_t receives;
	uint64_t bytes;
	uint64_t least_ns; /* sums over messages: from when it was seen to be there until taken */
};

static void check(bool fine, const char *what)
{
	if (!fine)
		wl_die(WL_FAILED, "%s: %m", what);
}

static void pass(const int *pipe)
{
	check(write(pipe[1], "x", 1) == 1, "pipe");
}

static void await(const int *pipe)
{
	char what;

	check(read(pipe[0], &what, 1) == 1, "pipe");
}

static socklen_t loopback(struct sockaddr_storage *to, in_port_t port)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (!strcmp(family, "6")) {
		six->sin6_family = AF_INET6;
		six->sin6_addr = in6addr_loopback;
		six->sin6_port = port;
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	four->sin_port = port;
	return sizeof(*four);
}

static in_port_t port_of(int fd)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);

	check(!getsockname(fd, (struct sockaddr *)&name, &length), "getsockname");
	return ((struct sockaddr_in *)&name)->sin_port; /* at the same place in both */
}

static int tcp_socket(void)
{
	int fd = socket(strcmp(family, "6") ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		wl_die(WL_CANNOT, "no TCP: %m");
	return fd;
}

static void await_bytes(int fd, uint64_t bytes)
{
	int there = 0;

	for (;;) {
		check(!ioctl(fd, FIONREAD, &there), "FIONREAD");
		if ((uint64_t)there >= bytes)
			return;
		sched_yield();
	}
}

static void take_all(int fd, struct reader_says *r, uint64_t bytes)
{
	static int pipes[2];

	if (!strcmp(take, "splice")) {
		if (!pipes[0])
			check(!pipe2(pipes, O_CLOEXEC), "pipe");
		for (uint64_t at = 0; at < bytes;) {
			ssize_t n = splice(fd, NULL, pipes[1], NULL, bytes - at, 0);

			check(n > 0, "splice");
			r->receives++;
			at += (uint64_t)n;
			for (ssize_t out = 0; out < n;) {
				ssize_t gone = read(pipes[0], buffer, sizeof(buffer));

				check(gone > 0, "read");
				out += gone;
			}
		}
		return;
	}
	for (uint64_t at = 0; at < bytes; r->receives++) {
		uint64_t want = bytes - at < sizeof(buffer) ? bytes - at : sizeof(buffer);
		ssize_t n = recv(fd, buffer, want, strcmp(take, "waitall") ? 0 : MSG_WAITALL);

		check(n > 0, "recv");
		at += (uint64_t)n;
	}
}

static void read_messages(int fd, struct reader_says *r)
{
	uint64_t unit = together ? messages * size : size;

	for (uint64_t i = 0; i < (together ? 1 : messages); i++) {
		uint64_t seen;

		/* Waits in the call for what follows the first half. */
		if (!strcmp(take, "waitall")) {
			await_bytes(fd, size / 2);
			pass(to_writer);
			take_all(fd, r, size);
			pass(to_writer);
			continue;
		}
		await_bytes(fd, unit);
		seen = wl_now();
		if (nap_ms)
			wl_nap_ms(nap_ms);
		if (peek)
			check(recv(fd, buffer, sizeof(buffer), MSG_PEEK) > 0, "MSG_PEEK");
		r->least_ns += wl_now() - seen;
		take_all(fd, r, unit);
		if (!together)
			pass(to_writer);
	}
	r->bytes = messages * size;
}

static void put(int fd, int file, uint64_t bytes)
{
	if (!strcmp(way, "sendfile")) {
		off_t at = 0;

		check(sendfile(fd, file, &at, bytes) == (ssize_t)bytes, "sendfile");
		return;
	}
	check(send(fd, buffer, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "send");
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"messages", WL_NUM, &messages, "N",
		 "one after another, each when the last is taken"},
		{"size", WL_NUM, &size, "N", "bytes of a message"},
		{"pieces", WL_NUM, &pieces, "N", "sends of a message"},
		{"together", WL_FLAG, &together, NULL, "send all before the first is received"},
		{"nap", WL_NUM, &nap_ms, "MS", "that a message waits before it is received"},
		{"gap", WL_NUM, &gap_ms, "MS", "between two sends of all together"},
		{"way", WL_STR, &way, "HOW", "send or sendfile"},
		{"take", WL_STR, &take, "HOW",
		 "recv, splice, or waitall: with MSG_WAITALL, half is sent when the call waits"},
		{"peek", WL_FLAG, &peek, NULL, "look at each message before"},
		{"fail", WL_FLAG, &fail, NULL, "also sends and receives that fail"},
		{"family", WL_STR, &family, "F", "4 or 6"},
		{"keep", WL_NUM, &rest_of, "N", "send as many bytes that are never received"},
		{0},
	};
	struct sockaddr_storage address;
	struct reader_says *says;
	int listener, fd, file, yes = 1;
	in_port_t port;
	uint64_t most_ns = 0;
	pid_t reader;

	wl_start(argc, argv, "tcpio", "Sends known messages over TCP.", opts);
	if (!messages || !size || !pieces || size % pieces || size / pieces > sizeof(buffer))
		wl_die(WL_USAGE, "--size: a multiple of --pieces, at most %zu for each",
		       sizeof(buffer));
	if (together && messages * size > sizeof(buffer))
		wl_die(WL_USAGE, "--together: at most %zu bytes in all", sizeof(buffer));
	if (!strcmp(take, "waitall"))
		pieces = 2;
	lo_up();
	says = mmap(NULL, sizeof(*says), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(says != MAP_FAILED, "mmap");
	file = (int)syscall(SYS_memfd_create, "tcpio", 1 /* MFD_CLOEXEC */);
	check(file >= 0 && !ftruncate(file, sizeof(buffer)), "memfd");
	listener = tcp_socket();
	check(!bind(listener, (struct sockaddr *)&address, loopback(&address, 0)), "bind");
	check(!listen(listener, 1), "listen");
	port = port_of(listener);
	check(!pipe2(to_reader, O_CLOEXEC) && !pipe2(to_writer, O_CLOEXEC), "pipe");
	reader = wl_fork();
	if (!reader) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		check(fd >= 0, "accept");
		read_messages(fd, says);
		if (fail)
			check(recv(fd, buffer, 1, MSG_DONTWAIT) < 0, "a receive without data");
		pass(to_writer);
		await(to_reader);
		_exit(WL_OK);
	}
	fd = tcp_socket();
	check(!connect(fd, (struct sockaddr *)&address, loopback(&address, port)), "connect");
	check(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), "TCP_NODELAY");

	wl_ready_begin();
	wl_i64("reader_pid", reader);
	wl_u64("port", ntohs(port));
	wl_ready_end();

	for (uint64_t i = 0; i < messages; i++) {
		uint64_t start = wl_now();

		for (uint64_t n = 0; n < pieces; n++) {
			if (n && !strcmp(take, "waitall")) {
				await(to_writer);
				wl_nap_ms(20);
			}
			put(fd, file, size / pieces);
		}
		if (together) {
			wl_nap_ms(gap_ms);
			continue;
		}
		await(to_writer);
		most_ns += wl_now() - start;
	}
	if (fail) {
		check(send(-1, buffer, 1, 0) < 0, "a send to no socket");
		check(send(fd, NULL, 1, MSG_NOSIGNAL) < 0, "a send of no memory");
	}
	await(to_writer);
	if (rest_of)
		put(fd, file, rest_of);
	pass(to_reader);
	wl_reap(reader);

	wl_line_begin();
	wl_u64("port", ntohs(port_of(fd)));
	wl_u64("sends", messages * pieces + !!rest_of);
	wl_u64("receives", says->receives);
	wl_u64("calls", messages * pieces + !!rest_of + says->receives);
	wl_u64("sent", messages * size + rest_of);
	wl_u64("received", messages * size);
	wl_u64("messages", messages);
	wl_u64("least_ns", says->least_ns);
	wl_u64("most_ns", most_ns);
	wl_finish();
	return WL_OK;
}
