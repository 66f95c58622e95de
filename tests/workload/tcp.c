/* TCP over the loopback of a network namespace of its own: known sessions, known bytes, and
 * segments that are lost on purpose. */
#include "workload.h"
#include "loopback.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static uint64_t sessions = 3, client_bytes = 5000, server_bytes = 70000, lost;
static const char *family = "4", *closer = "client";
static bool older, refused, handshake;

static int ip_family;
static pid_t server;
static int to_server[2], to_client[2];
static char buffer[1 << 16];

/* "mapped" is IPv4 by an IPv6 socket; the server then has one as well. */
static socklen_t loopback(struct sockaddr_storage *to, in_port_t port)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = ip_family;
	if (ip_family == AF_INET) {
		four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		four->sin_port = port;
		return sizeof(*four);
	}
	inet_pton(AF_INET6, strcmp(family, "mapped") ? "::1" : "::ffff:127.0.0.1", &six->sin6_addr);
	six->sin6_port = port;
	return sizeof(*six);
}

static in_port_t port_of(int fd)
{
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &size))
		wl_die(WL_FAILED, "getsockname: %m");
	return ((struct sockaddr_in *)&name)->sin_port; /* at the same place in both */
}

static int bound(void)
{
	int fd = socket(ip_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage address;
	socklen_t size = loopback(&address, 0);

	if (fd < 0)
		wl_die(WL_CANNOT, "no TCP: %m");
	if (bind(fd, (struct sockaddr *)&address, size))
		wl_die(WL_CANNOT, "bind: %m");
	return fd;
}

static void send_all(int fd, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer),
				 MSG_NOSIGNAL);

		if (n < 0)
			wl_die(WL_FAILED, "send: %m");
		bytes -= n;
	}
}

static void receive(int fd, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = recv(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer), 0);

		if (n <= 0)
			wl_die(WL_FAILED, "recv: %m");
		bytes -= n;
	}
}

static void await_end(int fd)
{
	while (recv(fd, buffer, sizeof(buffer), 0) > 0)
		;
}

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Lets a socket receive nothing: the other end has to send again. */
static void deaf(int fd, bool on)
{
	struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog program = {1, &nothing};

	if (on ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))
	       : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof(program)))
		wl_die(WL_FAILED, "socket filter: %m");
}

static void pass(const int *pipe, char what)
{
	if (write(pipe[1], &what, 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
}

static void await(const int *pipe)
{
	char what;

	if (read(pipe[0], &what, 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
}

/* Each end has its turn, so that who closes first is no race. */
static void serve(int listener)
{
	for (uint64_t i = 0; i < sessions; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			wl_die(WL_FAILED, "accept: %m");
		if (lost) {
			deaf(fd, true);
			pass(to_client, 'd');
			await(to_server);
			deaf(fd, false);
		}
		receive(fd, client_bytes);
		send_all(fd, server_bytes);
		if (older) {
			pass(to_client, 'o');
			await(to_server);
		}
		if (!strcmp(closer, "server")) {
			close(fd);
			continue;
		}
		if (!strcmp(closer, "reset"))
			await(to_server);
		else
			await_end(fd);
		close(fd);
		pass(to_client, 'c');
	}
}

static uint64_t retransmits(void)
{
	char text[8192], *line, *second;
	uint64_t values[16] = {0};
	int n = 0;

	if (wl_slurp("/proc/thread-self/net/snmp", text, sizeof(text)) < 0 ||
	    !(line = strstr(text, "\nTcp: ")) || !(second = strstr(line + 1, "\nTcp: ")))
		wl_die(WL_FAILED, "no /proc/net/snmp");
	for (char *at = strtok(second + 6, " \n"); at && n < 16; at = strtok(NULL, " \n"))
		values[n++] = strtoull(at, NULL, 10);
	return values[11]; /* RetransSegs */
}

static void connect_to(int fd, in_port_t port)
{
	struct sockaddr_storage address;
	socklen_t size = loopback(&address, port);

	if (connect(fd, (struct sockaddr *)&address, size))
		wl_die(WL_FAILED, "connect: %m");
}

static void talk(int fd, in_port_t port, bool begin)
{
	if (begin) {
		connect_to(fd, port);
		if (lost)
			await(to_client);
		send_all(fd, client_bytes);
		if (lost) {
			uint64_t before = retransmits();

			while (retransmits() < before + lost)
				wl_nap_ms(5);
			pass(to_server, 'h');
		}
		receive(fd, server_bytes);
		if (older) {
			await(to_client);
			return;
		}
	} else {
		pass(to_server, 'g');
	}
	if (!strcmp(closer, "server")) {
		await_end(fd);
		close(fd);
		return;
	}
	if (!strcmp(closer, "reset")) {
		reset(fd);
		pass(to_server, 'r');
	} else {
		close(fd);
	}
	await(to_client);
}

/* SYN and answer are both sent again, after the first timeout of a second. */
static void lose_answer(int fd, int listener, in_port_t port)
{
	struct sockaddr_storage address;
	socklen_t size = loopback(&address, port);
	uint64_t before = retransmits();

	deaf(fd, true);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !connect(fd, (struct sockaddr *)&address, size) ||
	    errno != EINPROGRESS)
		wl_die(WL_FAILED, "connect: %m");
	while (retransmits() < before + 2)
		wl_nap_ms(5);
	/* Neither end is left to send again after the last count. */
	close(fd);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"sessions", WL_NUM, &sessions, "N", "one after the other"},
		{"family", WL_STR, &family, "F", "4, 6, or mapped: IPv4 by IPv6 sockets"},
		{"client-bytes", WL_NUM, &client_bytes, "N", "that the client sends"},
		{"server-bytes", WL_NUM, &server_bytes, "N", "that the server sends"},
		{"closer", WL_STR, &closer, "WHO",
		 "client, server, or reset: the client, by a reset"},
		{"older", WL_FLAG, &older, NULL, "one session, that begins before the ready line"},
		{"refused", WL_FLAG, &refused, NULL, "connect to a port without a listener"},
		{"handshake", WL_FLAG, &handshake, NULL,
		 "lose the answer to one SYN, for a second"},
		{"lost", WL_NUM, &lost, "N", "of each session's segments are sent again, at least"},
		{0},
	};
	in_port_t port, *ports;
	int listener, fd = -1;
	uint64_t before;

	wl_start(argc, argv, "tcp", "Makes known TCP sessions over the loopback.", opts);
	if (strcmp(family, "4") && strcmp(family, "6") && strcmp(family, "mapped"))
		wl_die(WL_USAGE, "--family: 4, 6 or mapped");
	if (strcmp(closer, "client") && strcmp(closer, "server") && strcmp(closer, "reset"))
		wl_die(WL_USAGE, "--closer: client, server or reset");
	if (older || handshake)
		sessions = 1;
	if (sessions < 1 || sessions > 10000)
		wl_die(WL_USAGE, "want 1 to 10000 sessions");
	ip_family = strcmp(family, "4") ? AF_INET6 : AF_INET;
	ports = calloc(sessions, sizeof(*ports));
	lo_up();
	listener = bound();
	if (!refused && listen(listener, 128))
		wl_die(WL_FAILED, "listen: %m");
	port = port_of(listener);
	if (pipe2(to_server, O_CLOEXEC) || pipe2(to_client, O_CLOEXEC))
		wl_die(WL_FAILED, "pipe: %m");
	if (!refused && !handshake) {
		server = wl_fork();
		if (!server) {
			serve(listener);
			_exit(WL_OK);
		}
		close(listener);
	}
	if (older) {
		fd = bound();
		ports[0] = port_of(fd);
		talk(fd, port, true);
	}

	wl_ready_begin();
	wl_i64("server_pid", server);
	wl_u64("server_port", ntohs(port));
	wl_ready_end();

	before = retransmits();
	for (uint64_t i = 0; i < sessions; i++) {
		if (older) {
			talk(fd, port, false);
			break;
		}
		fd = bound();
		ports[i] = port_of(fd);
		if (handshake) {
			lose_answer(fd, listener, port);
			break;
		}
		if (refused) {
			struct sockaddr_storage address;
			socklen_t size = loopback(&address, port);

			if (!connect(fd, (struct sockaddr *)&address, size) ||
			    errno != ECONNREFUSED)
				wl_die(WL_FAILED, "connect: %m");
			close(fd);
			continue;
		}
		talk(fd, port, true);
	}
	if (server)
		wl_reap(server);

	wl_line_begin();
	wl_i64("client_pid", getpid());
	wl_i64("server_pid", server);
	wl_u64("server_port", ntohs(port));
	wl_open("client_ports", '[');
	for (uint64_t i = 0; i < sessions; i++)
		wl_u64(NULL, ntohs(ports[i]));
	wl_close(']');
	wl_u64("client_bytes", client_bytes);
	wl_u64("server_bytes", server_bytes);
	wl_u64("retransmits", retransmits() - before);
	wl_finish();
	return WL_OK;
}
