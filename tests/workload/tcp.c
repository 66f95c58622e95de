/* TCP over the loopback of a private network namespace: known sessions, known bytes, and segments
 * that are lost on purpose. */
#include "loopback.h"
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

WL_BOUNDED("sessions", sessions, 3, 1, 10000, "one after the other");
WL_TEXT("family", family, "4", "4, 6, or mapped: IPv4 by IPv6 sockets");
WL_NUMBER("client-bytes", client_bytes, 5000, "that the client sends");
WL_NUMBER("server-bytes", server_bytes, 70000, "that the server sends");
WL_TEXT("closer", closer, "client", "client, server, or reset: the client, by a reset");
WL_FLAG("older", older, "one session, that begins before the ready line");
WL_FLAG("refused", refused, "connect to a port without a listener");
WL_FLAG("extended", extended, "its packets have extension headers (IPv6)");
WL_FLAG("fragmented", fragmented, "a SYN in a fragment for each attempt (IPv6)");
WL_FLAG("unreachable", unreachable, "connect to where there is no route (IPv4)");
WL_FLAG("exhausted", exhausted, "connect without a free port");
WL_FLAG("handshake", handshake, "lose the answer to one SYN, for a second");
WL_FLAG("late", late, "the same, and connect with the second answer");
WL_NUMBER("give-up", give_up_ms, 0, "the same, and close the socket after MS");
WL_NUMBER("delayed", delayed_ms, 0, "one is acknowledged later, less than 150");
WL_FLAG("nonblocking", nonblocking, "connect without blocking");
WL_FLAG("unbound", unbound, "the kernel chooses the client's port");
WL_NUMBER("queued", queued, 0, "sessions that are not accepted, instead");
WL_NUMBER("overflow", overflow, 0, "attempts after these, which are not answered");
WL_FLAG("listens-late", listens_late, "listen after the ready line (--queued)");
WL_NUMBER("backlog", backlog, 128, "of listen(2)");
WL_NUMBER("lost", lost, 0, "of each session's segments are sent again, at least");
WL_NUMBER("server-lost", server_lost, 0, "the same of those that the server sends");
WL_FLAG("hole", hole, "the client's first segment is lost, six that follow it are not");
WL_TEXT("off", off, NULL, "a number in /proc/sys/net/ipv4 that is set to 0");
WL_TEXT("congestion", congestion, NULL, "algorithm of the client's end");
WL_FLAG("mptcp", mptcp, "by MPTCP");
WL_FLAG("handed", handed, "another process serves than accepts");
static uint64_t listen_overflows, listen_drops, threshold;
static char algorithm[16];
static uint64_t round_trip_ns, smoothed_us, segments_in, session_ns, hole_ns, connect_ns;

static const char *own_address;
static pid_t server;
static in_port_t server_port, *client_ports;
static int to_server[2], to_client[2];
static char buffer[1 << 16];

static int tcp_socket(void)
{
	int family = strchr(own_address, ':') ? AF_INET6 : AF_INET;

	return mptcp ? can(socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP), "no MPTCP")
		     : lo_socket(family, SOCK_STREAM);
}

static bool closed_by(const char *who)
{
	return !strcmp(closer, who);
}

/* Each packet has a hop-by-hop header of eight bytes of padding, and a destination header of
 * sixteen bytes with an experimental option (RFC 4727) that receivers skip. */
static void extend(int fd)
{
	const char hops[8] = {0, 0, 1, 4}, destination[16] = {0, 1, 0x1e, 12};

	cannot_if(setsockopt(fd, IPPROTO_IPV6, IPV6_HOPOPTS, hops, sizeof(hops)) ||
			  setsockopt(fd, IPPROTO_IPV6, IPV6_DSTOPTS, destination,
				     sizeof(destination)),
		  "extension headers");
}

static int bound(void)
{
	int fd = tcp_socket();

	cannot_if(lo_bind(fd, lo_name(own_address, 0)), "bind");
	if (extended)
		extend(fd);
	return fd;
}

static void send_all(int fd, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer),
				 MSG_NOSIGNAL);

		fail_if(n < 0, "send");
		bytes -= n;
	}
}

static void receive(int fd, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = recv(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer), 0);

		fail_if(n <= 0, "recv");
		bytes -= n;
	}
}

static void await_end(int fd)
{
	while (recv(fd, buffer, sizeof(buffer), 0) > 0)
		;
}

/* Makes a socket drop all it receives: the other end has to retransmit. */
static void deaf(int fd, bool on)
{
	struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog program = {1, &nothing};

	fail_if(on ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))
		   : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof(program)),
		"socket filter");
}

/* Waits until a deaf socket has dropped this many segments: sent ones may be in transit. */
static void await_drops(int fd, uint64_t wanted)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t size = sizeof(info);

	while (info[SK_MEMINFO_DROPS] < wanted) {
		fail_if(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size), "SO_MEMINFO");
		wl_nap_ms(1);
	}
}

/* The ends take turns, so that the order of closing is not a race. */
static void serve_one(int fd)
{
	if (lost) {
		deaf(fd, true);
		wl_tell(to_client);
		wl_hear(to_server);
		await_drops(fd, 1 + lost);
		deaf(fd, false);
	}
	if (hole) {
		deaf(fd, true);
		wl_tell(to_client);
		await_drops(fd, 1);
		deaf(fd, false);
		wl_tell(to_client);
	}
	receive(fd, client_bytes + (hole ? 6 : 0));
	if (server_lost) {
		wl_tell(to_client);
		wl_hear(to_server);
	}
	for (int n = 0; n < 2 && delayed_ms; n++) {
		wl_hear(to_server);
		send_all(fd, 1);
	}
	send_all(fd, server_bytes);
	if (older) {
		wl_tell(to_client);
		wl_hear(to_server);
	}
	if (closed_by("reset"))
		wl_hear(to_server);
	else if (closed_by("client"))
		await_end(fd);
	close(fd);
	if (!closed_by("server"))
		wl_tell(to_client);
}

/* The accepting process keeps nothing of the connection before the other one starts. */
static void hand_over(int fd)
{
	int begun[2];

	wl_pipe(begun);
	pid_t heir = wl_fork();
	if (!heir) {
		wl_hear(begun);
		serve_one(fd);
		_exit(WL_OK);
	}
	close(fd);
	wl_tell(begun);
	wl_reap(heir);
	close(begun[0]);
	close(begun[1]);
}

static void serve(int listener)
{
	for (uint64_t i = 0; i < sessions; i++) {
		int fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC), "accept");

		handed ? hand_over(fd) : serve_one(fd);
	}
	_exit(WL_OK);
}

static uint64_t retransmits(void)
{
	char text[8192], *line, *second;
	uint64_t values[16] = {0};
	int n = 0;

	fail_if(wl_slurp("/proc/thread-self/net/snmp", text, sizeof(text)) < 0 ||
			!(line = strstr(text, "\nTcp: ")) ||
			!(second = strstr(line + 1, "\nTcp: ")),
		"no /proc/net/snmp");
	for (char *at = strtok(second + 6, " \n"); at && n < 16; at = strtok(NULL, " \n"))
		values[n++] = strtoull(at, NULL, 10);
	return values[11]; /* RetransSegs */
}

static void await_retransmits(uint64_t wanted)
{
	while (retransmits() < wanted)
		wl_nap_ms(5);
}

/* The number below this column of TcpExt, and the text after it. */
static char *tcp_ext(const char *column, char text[static 16384])
{
	char *title = NULL, *value = NULL;
	size_t length = strlen(column);

	fail_if(wl_slurp("/proc/thread-self/net/netstat", text, 16384) < 0 ||
			!(title = strstr(text, "TcpExt: ")) ||
			!(value = strstr(title + 1, "TcpExt: ")),
		"no /proc/net/netstat");
	while (strncmp(title, column, length) || title[length] != ' ') {
		title = strchr(title, ' ') + 1;
		value = strchr(value, ' ') + 1;
	}
	return value;
}

static void count_refused(void)
{
	char text[16384], *value = tcp_ext("ListenOverflows", text);

	listen_overflows = strtoull(value, &value, 10);
	listen_drops = strtoull(value, NULL, 10);
}

/* Of all sockets here: segments merged with queued ones, as the socket was in use. */
static uint64_t backlog_joined(void)
{
	char text[16384];

	return strtoull(tcp_ext("TCPBacklogCoalesce", text), NULL, 10);
}

static uint64_t fast_retransmits(void)
{
	char text[16384];

	return strtoull(tcp_ext("TCPFastRetrans", text), NULL, 10);
}

/* Waits until the attempt has ended: 0, or its error. */
static int outcome(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error;

	fail_if(poll(&ready, 1, -1) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ||
			fcntl(fd, F_SETFL, 0),
		"outcome of connect");
	return error;
}

static int attempt(int fd)
{
	fail_if(nonblocking && fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
	/* There is no route to the other address. */
	if (!lo_connect(fd, lo_name(unreachable ? "192.0.2.1" : own_address, server_port)))
		return 0;
	return nonblocking && errno == EINPROGRESS ? outcome(fd) : errno;
}

static void expect_attempt(int fd, int wanted)
{
	int error = attempt(fd);

	if (error != wanted)
		wl_die(WL_FAILED, "connect: %s", strerror(error));
}

/* The attempt continues in the background. */
static void begin_attempt(int fd)
{
	fail_if(fcntl(fd, F_SETFL, O_NONBLOCK) ||
			!lo_connect(fd, lo_name(own_address, server_port)) || errno != EINPROGRESS,
		"connect");
}

static int client(void)
{
	return unbound ? tcp_socket() : bound();
}

/* Includes the pseudo header: protocol and length, and two addresses of ::1. */
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
static void send_fragment(in_port_t from)
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
		.tcp = {.source = from,
			.dest = server_port,
			.doff = 5,
			.syn = 1,
			.window = htons(1000)},
	};
	struct lo_name to = lo_name("::1", 0);
	int fd = can(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW), "no raw socket");

	packet.ip.payload_len = htons(sizeof(packet) - sizeof(packet.ip));
	packet.ip.saddr.s6_addr[15] = packet.ip.daddr.s6_addr[15] = 1;
	packet.tcp.check = checksum_of((uint16_t *)&packet.tcp, sizeof(packet.tcp));
	check(sendto(fd, &packet, sizeof(packet), 0, &to.any, to.size) == sizeof(packet), "sendto");
	close(fd);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	fail_if(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
	return info;
}

/* None is accepted: each finds the queue longer by one than the previous one. */
static void queue_up(int listener, uint64_t count)
{
	fail_if(listens_late && listen(listener, backlog), "listen");
	for (uint64_t i = 0; i < count; i++) {
		int fd = client();

		expect_attempt(fd, 0);
		client_ports[i] = lo_port(fd);
		while (info_of(listener).tcpi_unacked <= i)
			;
	}
	/* Their SYNs are dropped. */
	for (uint64_t i = 0; i < overflow; i++) {
		int fd = client();

		begin_attempt(fd);
		close(fd);
	}
	count_refused();
}

/* The client's segment is acknowledged MS later, before a retransmission. */
static void delay_answer(int fd)
{
	uint64_t start = wl_now();

	deaf(fd, true);
	send_all(fd, client_bytes);
	wl_nap_ms(delayed_ms);
	deaf(fd, false);
	wl_tell(to_server);
	receive(fd, 1);
	round_trip_ns = wl_now() - start;
	wl_tell(to_server);
	receive(fd, 1);
}

/* The server's data are then received only after a retransmission. */
static void lose_answers(int fd)
{
	wl_hear(to_client);
	deaf(fd, true);
	uint64_t before = retransmits();
	wl_tell(to_server);
	await_retransmits(before + server_lost);
	await_drops(fd, 1 + server_lost);
	deaf(fd, false);
}

/* Acknowledgements of the segments behind the lost one show that it is lost. */
static void leave_hole(int fd)
{
	int one = 1;

	fail_if(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
	wl_hear(to_client);
	send_all(fd, client_bytes);
	wl_hear(to_client);
	for (int i = 0; i < 6; i++)
		send_all(fd, 1);
}

static void begin_talk(int fd)
{
	uint64_t since = 0;

	expect_attempt(fd, 0);
	fail_if(congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
					 (socklen_t)strlen(congestion)),
		"TCP_CONGESTION");
	if (lost)
		wl_hear(to_client);
	if (delayed_ms)
		delay_answer(fd);
	else if (hole)
		leave_hole(fd);
	else
		send_all(fd, client_bytes);
	if (server_lost)
		lose_answers(fd);
	if (lost) {
		await_retransmits(retransmits() + lost);
		since = wl_now();
		wl_tell(to_server);
	}
	receive(fd, server_bytes);
	if (lost)
		hole_ns += wl_now() - since;
	struct tcp_info info = info_of(fd);
	segments_in += info.tcpi_segs_in - 1; /* except the answer to SYN */
	smoothed_us = info.tcpi_rtt;
	threshold = info.tcpi_snd_ssthresh;
	socklen_t size = sizeof(algorithm);
	fail_if(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &size), "TCP_CONGESTION");
	if (older)
		wl_hear(to_client);
}

static void end_talk(int fd)
{
	struct linger now = {.l_onoff = 1};

	if (closed_by("server"))
		await_end(fd);
	if (closed_by("reset"))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	if (closed_by("reset"))
		wl_tell(to_server);
	if (!closed_by("server"))
		wl_hear(to_client);
}

/* SYN and answer are both retransmitted, after the first timeout of a second. The answer is then
 * received if the client is late; nothing is retransmitted if it gives up before. */
static void lose_answer(int fd, int listener)
{
	uint64_t before = retransmits(), start = wl_now();

	deaf(fd, true);
	begin_attempt(fd);
	if (give_up_ms) {
		wl_nap_ms(give_up_ms);
	} else if (late) {
		wl_nap_ms(300);
		deaf(fd, false);
		fail_if(outcome(fd), "not connected");
	} else {
		await_retransmits(before + 2);
	}
	connect_ns = wl_now() - start;
	/* Closes both, so that no end retransmits after the last count. */
	close(fd);
	close(listener);
}

/* The kernel may choose only one port, which a session to the same server uses. */
static void exhaust(int listener)
{
	unsigned int only = ntohs(server_port) == 40000 ? 40001 : 40000;

	wl_set("/proc/sys/net/ipv4/ip_local_port_range", wl_format("%u %u", only, only));
	queue_up(listener, 1);
}

static void one_session(uint64_t i, int listener)
{
	uint64_t start;
	int fd = client();

	client_ports[i] = lo_port(fd);
	if (handshake)
		return lose_answer(fd, listener);
	if (fragmented) {
		send_fragment(client_ports[i]);
	} else if (refused || unreachable || exhausted) {
		expect_attempt(fd, refused	 ? ECONNREFUSED
				   : unreachable ? ENETUNREACH
						 : EADDRNOTAVAIL);
	} else {
		start = wl_now();
		begin_talk(fd);
		client_ports[i] = lo_port(fd);
		end_talk(fd);
		session_ns += wl_now() - start;
		return;
	}
	close(fd);
}

static int workload(void)
{
	int fd = -1;

	wl_one_of("family", family, "4 6 mapped");
	wl_one_of("closer", closer, "client server reset");
	handshake |= late || give_up_ms;
	unbound |= exhausted;
	if (older || handshake)
		sessions = 1;
	if (queued)
		sessions = queued;
	/* By an IPv6 socket; the server then has one as well. */
	own_address = !strcmp(family, "4")   ? "127.0.0.1"
		      : !strcmp(family, "6") ? "::1"
					     : "::ffff:127.0.0.1";
	client_ports = calloc(sessions, sizeof(*client_ports));
	lo_up();
	if (off)
		wl_set(wl_format("/proc/sys/net/ipv4/%s", off), "0");
	int listener = bound();
	fail_if(!refused && !listens_late && listen(listener, backlog), "listen");
	server_port = lo_port(listener);
	wl_pipe(to_server);
	wl_pipe(to_client);
	if (!refused && !unreachable && !exhausted && !handshake && !queued) {
		server = wl_fork();
		if (!server)
			serve(listener);
		close(listener);
	}
	if (older) {
		fd = bound();
		client_ports[0] = lo_port(fd);
		begin_talk(fd);
	}

	wl_ready_with("server_pid %d server_port %d", server, ntohs(server_port));

	uint64_t before = retransmits(), joined = backlog_joined(), fast = fast_retransmits();
	if (queued)
		queue_up(listener, queued);
	if (exhausted)
		exhaust(listener);
	if (older) {
		wl_tell(to_server);
		end_talk(fd);
	}
	for (uint64_t i = 0; i < sessions && !queued && !older; i++)
		one_session(i, listener);
	if (server)
		wl_reap(server);

	wl_open("client_ports", '[');
	for (uint64_t i = 0; i < sessions; i++)
		wl_u64(NULL, ntohs(client_ports[i]));
	wl_close(']');
	wl_str("algorithm", algorithm);
	return wl_result("ssthresh %lu client_pid %d server_pid %d server_port %d client_bytes %lu "
			 "server_bytes %lu connect_ns %lu listen_overflows %lu listen_drops %lu "
			 "session_ns %lu hole_ns %lu round_trip_ns %lu smoothed_us %lu "
			 "segments_in %lu retransmits %lu fast_retransmits %lu backlog_joined %lu",
			 threshold, getpid(), server, ntohs(server_port), client_bytes,
			 server_bytes, connect_ns, listen_overflows, listen_drops, session_ns,
			 hole_ns, round_trip_ns, smoothed_us, segments_in, retransmits() - before,
			 fast_retransmits() - fast, backlog_joined() - joined);
}
