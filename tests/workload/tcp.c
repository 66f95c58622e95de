/* TCP over the loopback of a network namespace of its own: known sessions, known bytes, and
 * segments that are lost on purpose. */
#include "workload.h"
#include "loopback.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

static uint64_t sessions = 3, client_bytes = 5000, server_bytes = 70000, lost;
static const char *family = "4", *closer = "client";
static uint64_t queued, overflow, listen_overflows, listen_drops, backlog = 128, give_up_ms,
								  connect_ns;
static uint64_t delayed_ms, round_trip_ns, smoothed_us, segments_in, session_ns, hole_ns;
static uint64_t server_lost;
static bool handed, extended, fragmented;
static bool older, listens_late, refused, handshake, nonblocking, unbound, late, unreachable,
	exhausted;

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

/*
 * Each packet has a header for all hops, eight bytes of padding, and one for its destination,
 * sixteen with an option for experiments (RFC 4727) that receivers skip.
 */
static void extend(int fd)
{
	const char hops[8] = {0, 0, 1, 4}, destination[16] = {0, 1, 0x1e, 12};

	if (setsockopt(fd, IPPROTO_IPV6, IPV6_HOPOPTS, hops, sizeof(hops)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_DSTOPTS, destination, sizeof(destination)))
		wl_die(WL_CANNOT, "extension headers: %m");
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
	if (extended)
		extend(fd);
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
static void serve_one(int fd)
{
	if (lost) {
		deaf(fd, true);
		pass(to_client, 'd');
		await(to_server);
		deaf(fd, false);
	}
	receive(fd, client_bytes);
	if (server_lost) {
		pass(to_client, 'd');
		await(to_server);
	}
	for (int n = 0; n < 2 && delayed_ms; n++) {
		await(to_server);
		send_all(fd, 1);
	}
	send_all(fd, server_bytes);
	if (older) {
		pass(to_client, 'o');
		await(to_server);
	}
	if (!strcmp(closer, "server")) {
		close(fd);
		return;
	}
	if (!strcmp(closer, "reset"))
		await(to_server);
	else
		await_end(fd);
	close(fd);
	pass(to_client, 'c');
}

/* The process that accepts keeps nothing of the connection before the other one has begun. */
static void hand_over(int fd)
{
	int begun[2];
	pid_t heir;

	if (pipe2(begun, O_CLOEXEC))
		wl_die(WL_FAILED, "pipe: %m");
	heir = wl_fork();
	if (!heir) {
		await(begun);
		serve_one(fd);
		_exit(WL_OK);
	}
	close(fd);
	pass(begun, 'b');
	wl_reap(heir);
	close(begun[0]);
	close(begun[1]);
}

static void serve(int listener)
{
	for (uint64_t i = 0; i < sessions; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			wl_die(WL_FAILED, "accept: %m");
		if (handed)
			hand_over(fd);
		else
			serve_one(fd);
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

/* The column ListenOverflows, and ListenDrops behind it. */
static void count_refused(void)
{
	char text[16384], *title, *value;

	if (wl_slurp("/proc/thread-self/net/netstat", text, sizeof(text)) < 0 ||
	    !(title = strstr(text, "TcpExt: ")) || !(value = strstr(title + 1, "TcpExt: ")))
		wl_die(WL_FAILED, "no /proc/net/netstat");
	while (strncmp(title, "ListenOverflows ", 16)) {
		title = strchr(title, ' ') + 1;
		value = strchr(value, ' ') + 1;
	}
	listen_overflows = strtoull(value, &value, 10);
	listen_drops = strtoull(value, NULL, 10);
}

/* Until the attempt has its outcome: 0, or what it failed with. */
static int outcome(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error;

	if (poll(&ready, 1, -1) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ||
	    fcntl(fd, F_SETFL, 0))
		wl_die(WL_FAILED, "outcome of connect: %m");
	return error;
}

static int attempt(int fd, in_port_t port)
{
	struct sockaddr_storage address;
	socklen_t size = loopback(&address, port);

	if (unreachable) /* there is no route */
		inet_pton(AF_INET, "192.0.2.1", &((struct sockaddr_in *)&address)->sin_addr);
	if (nonblocking && fcntl(fd, F_SETFL, O_NONBLOCK))
		wl_die(WL_FAILED, "fcntl: %m");
	if (!connect(fd, (struct sockaddr *)&address, size))
		return 0;
	return nonblocking && errno == EINPROGRESS ? outcome(fd) : errno;
}

static void connect_to(int fd, in_port_t port)
{
	int error = attempt(fd, port);

	if (error)
		wl_die(WL_FAILED, "connect: %s", strerror(error));
}

static int client(void)
{
	int fd = unbound ? socket(ip_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : bound();

	if (fd < 0)
		wl_die(WL_CANNOT, "no TCP: %m");
	return fd;
}

/* Of what follows the pseudo header: protocol and length, then two addresses of ::1. */
static uint16_t checksum_of(const uint16_t *words, size_t bytes)
{
	uint32_t sum = htons(IPPROTO_TCP) + htons(bytes) + 2 * htons(1);

	for (size_t i = 0; i < bytes / 2; i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* A SYN that is a fragment, and the only one. */
static void send_fragment(in_port_t from, in_port_t to)
{
	struct {
		struct ipv6hdr ip;
		struct {
			uint8_t next, reserved;
			uint16_t offset;
			uint32_t id;
		} fragment;
		struct tcphdr tcp;
	} packet = {
		.ip = {.version = 6, .nexthdr = IPPROTO_FRAGMENT, .hop_limit = 64},
		.fragment = {.next = IPPROTO_TCP, .id = htonl(from)},
		.tcp = {.source = from, .dest = to, .doff = 5, .syn = 1, .window = htons(1000)},
	};
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	if (fd < 0)
		wl_die(WL_CANNOT, "no raw socket: %m");
	packet.ip.payload_len = htons(sizeof(packet) - sizeof(packet.ip));
	packet.ip.saddr.s6_addr[15] = packet.ip.daddr.s6_addr[15] = 1;
	packet.tcp.check = checksum_of((uint16_t *)&packet.tcp, sizeof(packet.tcp));
	address.sin6_addr = in6addr_loopback;
	if (sendto(fd, &packet, sizeof(packet), 0, (struct sockaddr *)&address, sizeof(address)) !=
	    sizeof(packet))
		wl_die(WL_FAILED, "sendto: %m");
	close(fd);
}

/* None is accepted: each finds one more in the queue than the one before. */
static void queue_up(int listener, in_port_t port, in_port_t *ports)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	if (listens_late && listen(listener, backlog))
		wl_die(WL_FAILED, "listen: %m");
	for (uint64_t i = 0; i < queued; i++) {
		int fd = client();

		connect_to(fd, port);
		ports[i] = port_of(fd);
		do
			if (getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size))
				wl_die(WL_FAILED, "TCP_INFO: %m");
		while (info.tcpi_unacked <= i);
	}
	/* Their SYN are dropped. */
	for (uint64_t i = 0; i < overflow; i++) {
		struct sockaddr_storage address;
		socklen_t length = loopback(&address, port);
		int fd = client();

		if (fcntl(fd, F_SETFL, O_NONBLOCK) ||
		    !connect(fd, (struct sockaddr *)&address, length) || errno != EINPROGRESS)
			wl_die(WL_FAILED, "connect: %m");
		close(fd);
	}
	count_refused();
}

/* What acknowledges the client's segment comes MS later, before it is sent again. */
static void delay_answer(int fd)
{
	uint64_t start = wl_now();

	deaf(fd, true);
	send_all(fd, client_bytes);
	wl_nap_ms(delayed_ms);
	deaf(fd, false);
	pass(to_server, 'a');
	receive(fd, 1);
	round_trip_ns = wl_now() - start;
	pass(to_server, 'b');
	receive(fd, 1);
}

/* What the client's socket has received since it is connected. */
static void look_at(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		wl_die(WL_FAILED, "TCP_INFO: %m");
	segments_in += info.tcpi_segs_in - 1; /* but for the answer to SYN */
	smoothed_us = info.tcpi_rtt;
}

/* What the server sends then is not received before it was sent again. */
static void lose_answers(int fd)
{
	uint64_t before;

	await(to_client);
	deaf(fd, true);
	before = retransmits();
	pass(to_server, 'h');
	while (retransmits() < before + server_lost)
		wl_nap_ms(5);
	deaf(fd, false);
}

/* The client's port. */
static in_port_t talk(int fd, in_port_t port, bool begin)
{
	in_port_t own = 0;
	uint64_t hole = 0;

	if (begin) {
		connect_to(fd, port);
		own = port_of(fd);
		if (lost)
			await(to_client);
		if (delayed_ms)
			delay_answer(fd);
		else
			send_all(fd, client_bytes);
		if (server_lost)
			lose_answers(fd);
		if (lost) {
			uint64_t before = retransmits();

			while (retransmits() < before + lost)
				wl_nap_ms(5);
			hole = wl_now();
			pass(to_server, 'h');
		}
		receive(fd, server_bytes);
		if (lost)
			hole_ns += wl_now() - hole;
		look_at(fd);
		if (older) {
			await(to_client);
			return own;
		}
	} else {
		pass(to_server, 'g');
	}
	if (!strcmp(closer, "server")) {
		await_end(fd);
		close(fd);
		return own;
	}
	if (!strcmp(closer, "reset")) {
		reset(fd);
		pass(to_server, 'r');
	} else {
		close(fd);
	}
	await(to_client);
	return own;
}

/*
 * SYN and answer are both sent again, after the first timeout of a second. The answer is received
 * then if the client is late; nothing is sent again if it gives up before.
 */
static void lose_answer(int fd, int listener, in_port_t port)
{
	struct sockaddr_storage address;
	socklen_t size = loopback(&address, port);
	uint64_t before = retransmits(), start = wl_now();

	deaf(fd, true);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !connect(fd, (struct sockaddr *)&address, size) ||
	    errno != EINPROGRESS)
		wl_die(WL_FAILED, "connect: %m");
	if (give_up_ms) {
		wl_nap_ms(give_up_ms);
	} else if (late) {
		wl_nap_ms(300);
		deaf(fd, false);
		if (outcome(fd))
			wl_die(WL_FAILED, "not connected");
	} else {
		while (retransmits() < before + 2)
			wl_nap_ms(5);
	}
	connect_ns = wl_now() - start;
	/* Neither end is left to send again after the last count. */
	close(fd);
	close(listener);
}

/* The kernel may choose one port only, which a session to the same server takes. */
static void exhaust(int listener, in_port_t port, in_port_t *ports)
{
	in_port_t only = ntohs(port) == 40000 ? 40001 : 40000;
	char range[32];

	snprintf(range, sizeof(range), "%u %u", only, only);
	if (!wl_write_file("/proc/sys/net/ipv4/ip_local_port_range", range))
		wl_die(WL_CANNOT, "no range of ports: %m");
	queued = 1;
	queue_up(listener, port, ports);
	queued = 0;
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
		{"extended", WL_FLAG, &extended, NULL,
		 "the client's packets have IPv6 extension headers"},
		{"fragmented", WL_FLAG, &fragmented, NULL,
		 "with --refused, a SYN in one fragment of IPv6 instead of each attempt"},
		{"unreachable", WL_FLAG, &unreachable, NULL, "connect to where there is no route"},
		{"exhausted", WL_FLAG, &exhausted, NULL,
		 "connect without a free port, after one session"},
		{"handshake", WL_FLAG, &handshake, NULL,
		 "lose the answer to one SYN, for a second"},
		{"late", WL_FLAG, &late, NULL, "the same, and connect with the second answer"},
		{"give-up", WL_NUM, &give_up_ms, "MS", "the same, and close the socket after MS"},
		{"delayed", WL_NUM, &delayed_ms, "MS",
		 "later a segment of each session is acknowledged, less than 150"},
		{"nonblocking", WL_FLAG, &nonblocking, NULL, "connect without blocking"},
		{"unbound", WL_FLAG, &unbound, NULL, "the kernel chooses the client's port"},
		{"queued", WL_NUM, &queued, "N", "sessions that are not accepted, instead"},
		{"overflow", WL_NUM, &overflow, "N",
		 "attempts after these, which are not answered"},
		{"listens-late", WL_FLAG, &listens_late, NULL,
		 "listen after the ready line, with --queued"},
		{"backlog", WL_NUM, &backlog, "N", "of listen(2)"},
		{"lost", WL_NUM, &lost, "N", "of each session's segments are sent again, at least"},
		{"server-lost", WL_NUM, &server_lost, "N",
		 "the same of those that the server sends"},
		{"handed", WL_FLAG, &handed, NULL,
		 "another process than the one that accepts serves each session"},
		{0},
	};
	in_port_t port, *ports;
	int listener, fd = -1;
	uint64_t before, start;

	wl_start(argc, argv, "tcp", "Makes known TCP sessions over the loopback.", opts);
	if (strcmp(family, "4") && strcmp(family, "6") && strcmp(family, "mapped"))
		wl_die(WL_USAGE, "--family: 4, 6 or mapped");
	if (strcmp(closer, "client") && strcmp(closer, "server") && strcmp(closer, "reset"))
		wl_die(WL_USAGE, "--closer: client, server or reset");
	handshake |= late || give_up_ms;
	unbound |= exhausted;
	if ((extended || fragmented) && strcmp(family, "6"))
		wl_die(WL_USAGE, "--extended, --fragmented: IPv6 only");
	if (fragmented && !refused)
		wl_die(WL_USAGE, "--fragmented: with --refused only");
	if (unreachable && strcmp(family, "4"))
		wl_die(WL_USAGE, "--unreachable: IPv4 only");
	if (older || handshake)
		sessions = 1;
	if (queued)
		sessions = queued;
	if (sessions < 1 || sessions > 10000)
		wl_die(WL_USAGE, "want 1 to 10000 sessions");
	ip_family = strcmp(family, "4") ? AF_INET6 : AF_INET;
	ports = calloc(sessions, sizeof(*ports));
	lo_up();
	listener = bound();
	if (!refused && !listens_late && listen(listener, backlog))
		wl_die(WL_FAILED, "listen: %m");
	port = port_of(listener);
	if (pipe2(to_server, O_CLOEXEC) || pipe2(to_client, O_CLOEXEC))
		wl_die(WL_FAILED, "pipe: %m");
	if (!refused && !unreachable && !exhausted && !handshake && !queued) {
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
	if (queued)
		queue_up(listener, port, ports);
	if (exhausted)
		exhaust(listener, port, ports);
	for (uint64_t i = 0; i < sessions && !queued; i++) {
		if (older) {
			talk(fd, port, false);
			break;
		}
		fd = client();
		ports[i] = port_of(fd);
		if (handshake) {
			lose_answer(fd, listener, port);
			break;
		}
		if (fragmented) {
			send_fragment(ports[i], port);
			close(fd);
			continue;
		}
		if (refused || unreachable || exhausted) {
			int error = attempt(fd, port);

			if (error != (refused	    ? ECONNREFUSED
				      : unreachable ? ENETUNREACH
						    : EADDRNOTAVAIL))
				wl_die(WL_FAILED, "connect: %s", strerror(error));
			close(fd);
			continue;
		}
		start = wl_now();
		ports[i] = talk(fd, port, true);
		session_ns += wl_now() - start;
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
	wl_u64("connect_ns", connect_ns);
	wl_u64("listen_overflows", listen_overflows);
	wl_u64("listen_drops", listen_drops);
	wl_u64("session_ns", session_ns);
	wl_u64("hole_ns", hole_ns);
	wl_u64("round_trip_ns", round_trip_ns);
	wl_u64("smoothed_us", smoothed_us);
	wl_u64("segments_in", segments_in);
	wl_u64("retransmits", retransmits() - before);
	wl_finish();
	return WL_OK;
}
