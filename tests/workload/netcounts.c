/* TCP and UDP over the loopback of a private network namespace, and the kernel's counters of it.
 * Its process connects and sends; a child accepts and receives. */
#include "loopback.h"

WL_NUMBER("sessions", sessions, 5, "connections that both ends close in turn");
WL_NUMBER("messages", messages, 3, "of 100 bytes in each direction of each");
WL_NUMBER("resets", resets, 0, "connections that the client resets");
WL_NUMBER("refused", refused, 0, "connects to a port without a listener");
WL_NUMBER("again", again, 0, "more of these, all by the same socket");
WL_NUMBER("overflow", overflow, 0, "connects to a full queue");
WL_NUMBER("datagrams", datagrams, 0, "that are received");
WL_NUMBER("surplus", surplus, 0, "datagrams for which there is no room, before the next word");
WL_FLAG("open", stay_open, "the last session's sockets stay open until the end");
WL_FLAG("older", older, "the first session begins before the ready line");
WL_FLAG("handed", handed, "the server hands each connection to a child");
static int to_server[2], to_client[2];
static in_port_t server_port;

/* The number in a column of a file in /proc/net with lines "Group: titles" and "Group: values". */
static uint64_t counter(const char *file, const char *group, const char *column)
{
	char text[32768], titles[8192], *line, *second, *title, *value, *t, *v;

	fail_if(wl_slurp(wl_format("/proc/thread-self/net/%s", file), text, sizeof(text)) < 0 ||
			!(line = strstr(text, group)) ||
			!(second = strstr(line + strlen(group), group)),
		"no counters");
	snprintf(titles, sizeof(titles), "%.*s", (int)strcspn(line, "\n"), line);
	title = strtok_r(titles, " ", &t);
	value = strtok_r(second, " \n", &v);
	for (; title && value; title = strtok_r(NULL, " ", &t), value = strtok_r(NULL, " \n", &v))
		if (!strcmp(title, column))
			return strtoull(value, NULL, 10);
	wl_die(WL_CANNOT, "no counter %s", column);
}

static const struct {
	const char *file, *group, *column, *key;
} counters[] = {
	{"snmp", "Tcp: ", "InSegs", "segments_in"},
	{"snmp", "Tcp: ", "OutSegs", "segments_out"},
	{"snmp", "Tcp: ", "RetransSegs", "retransmits"},
	{"snmp", "Tcp: ", "ActiveOpens", "active_opens"},
	{"snmp", "Tcp: ", "PassiveOpens", "passive_opens"},
	{"snmp", "Tcp: ", "AttemptFails", "failed"},
	{"snmp", "Tcp: ", "EstabResets", "established_resets"},
	{"snmp", "Tcp: ", "OutRsts", "resets_out"},
	{"netstat", "TcpExt: ", "ListenDrops", "listen_drops"},
	{"netstat", "TcpExt: ", "TCPOFOQueue", "out_of_order"},
	{"snmp", "Udp: ", "InDatagrams", "datagrams_in"},
	{"snmp", "Udp: ", "OutDatagrams", "datagrams_out"},
	{"snmp", "Udp: ", "RcvbufErrors", "udp_drops"},
};
static uint64_t before[WL_COUNT(counters)];

static uint64_t counter_at(size_t i)
{
	return counter(counters[i].file, counters[i].group, counters[i].column);
}

static void exchange(int fd, bool first)
{
	char text[100] = "";

	for (uint64_t i = 0; i < messages; i++) {
		if (first)
			fail_if(send(fd, text, sizeof(text), MSG_NOSIGNAL) != sizeof(text), "send");
		fail_if(recv(fd, text, sizeof(text), MSG_WAITALL) != sizeof(text), "recv");
		if (!first)
			fail_if(send(fd, text, sizeof(text), MSG_NOSIGNAL) != sizeof(text), "send");
	}
}

static int client(void)
{
	int fd = lo_socket(AF_INET, SOCK_STREAM);

	fail_if(lo_connect(fd, lo_name("127.0.0.1", server_port)), "connect");
	return fd;
}

/* No end closes its socket before the other's FIN: a socket counts that, too. */
static void end_session(int fd, bool first)
{
	char byte;

	if (first)
		fail_if(shutdown(fd, SHUT_WR), "shutdown");
	fail_if(recv(fd, &byte, 1, 0), "recv");
	close(fd);
}

static void serve_one(int fd, bool last)
{
	exchange(fd, false);
	if (last && stay_open) {
		wl_hear(to_server);
		wl_tell(to_client);
		wl_hear(to_server);
		return;
	}
	end_session(fd, false);
}

static void serve(int listener)
{
	char byte;

	for (uint64_t i = 0; i < sessions + resets; i++) {
		int fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC), "accept");

		if (i >= sessions) {
			exchange(fd, false);
			wl_tell(to_client);
			fail_if(recv(fd, &byte, 1, 0) >= 0 || errno != ECONNRESET, "no reset");
			close(fd);
			wl_tell(to_client);
			continue;
		}
		if (!handed) {
			serve_one(fd, i + 1 == sessions);
			continue;
		}
		pid_t heir = wl_fork();
		if (!heir) {
			close(listener);
			serve_one(fd, i + 1 == sessions);
			_exit(WL_OK);
		}
		close(fd);
		wl_reap(heir);
	}
	_exit(WL_OK);
}

static void reset_one(void)
{
	struct linger now = {.l_onoff = 1};
	int fd = client();

	exchange(fd, true);
	wl_hear(to_client);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	wl_hear(to_client);
}

static void refuse(in_port_t nobody)
{
	int fd = -1;

	for (uint64_t i = 0; i < refused + again; i++) {
		if (i <= refused)
			fd = lo_socket(AF_INET, SOCK_STREAM);
		fail_if(!lo_connect(fd, lo_name("127.0.0.1", nobody)) || errno != ECONNREFUSED,
			"connect");
		if (i + 1 < refused)
			close(fd);
	}
}

/* The queue of a listener holds one more than it says; further SYNs are dropped. */
static void overflow_queue(void)
{
	int listener = lo_socket(AF_INET, SOCK_STREAM);
	uint64_t first = counter("netstat", "TcpExt: ", "ListenDrops");

	fail_if(lo_bind(listener, lo_name("127.0.0.1", 0)) || listen(listener, 0), "listen");
	for (uint64_t i = 0; i <= overflow; i++) {
		int fd = lo_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);

		fail_if(!lo_connect(fd, lo_name("127.0.0.1", lo_port(listener))) ||
				errno != EINPROGRESS,
			"connect");
	}
	while (counter("netstat", "TcpExt: ", "ListenDrops") < first + overflow)
		wl_nap_ms(1);
}

static void send_datagrams(void)
{
	int to = lo_socket(AF_INET, SOCK_DGRAM), from = lo_socket(AF_INET, SOCK_DGRAM), least = 1;
	char text[1000] = "";

	fail_if(lo_bind(to, lo_name("127.0.0.1", 0)) ||
			setsockopt(to, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) ||
			lo_connect(from, lo_name("127.0.0.1", lo_port(to))),
		"datagram sockets");
	for (uint64_t i = 0; i < datagrams; i++) {
		fail_if(send(from, text, i % 2 * sizeof(text), 0) < 0, "send");
		fail_if(recv(to, text, sizeof(text), MSG_PEEK) < 0 ||
				recv(to, text, sizeof(text), 0) < 0,
			"recv");
	}
	if (!surplus)
		return;
	uint64_t first = counter("snmp", "Udp: ", "RcvbufErrors");
	while (counter("snmp", "Udp: ", "RcvbufErrors") < first + surplus)
		fail_if(send(from, text, sizeof(text), 0) < 0, "send");
	while (recv(to, text, sizeof(text), MSG_DONTWAIT) >= 0)
		;
}

static int workload(void)
{
	int listener, nobody, fd = -1;
	pid_t server;

	lo_up();
	nobody = lo_socket(AF_INET, SOCK_STREAM);
	listener = lo_socket(AF_INET, SOCK_STREAM);
	fail_if(lo_bind(nobody, lo_name("127.0.0.1", 0)) ||
			lo_bind(listener, lo_name("127.0.0.1", 0)) || listen(listener, 128),
		"listen");
	server_port = lo_port(listener);
	wl_pipe(to_server);
	wl_pipe(to_client);
	/* A child of wl_fork() ends before the process lingers. */
	server = stay_open ? must(fork(), "fork") : wl_fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener);
	}
	close(listener);
	if (older) {
		fd = client();
		wl_nap_ms(50); /* the last acknowledgement */
	}
	wl_ready_with("server_pid %d", server);

	for (size_t i = 0; i < WL_COUNT(counters); i++)
		before[i] = counter_at(i);
	for (uint64_t i = 0; i < sessions; i++) {
		if (!older || i)
			fd = client();
		exchange(fd, true);
		if (i + 1 == sessions && stay_open)
			break;
		end_session(fd, true);
	}
	for (uint64_t i = 0; i < resets; i++)
		reset_one();
	refuse(lo_port(nobody));
	if (overflow)
		overflow_queue();
	if (datagrams || surplus)
		send_datagrams();
	if (stay_open) {
		wl_tell(to_server);
		wl_hear(to_client);
	}
	wl_nap_ms(100); /* acknowledgements that are delayed */
	for (size_t i = 0; i < WL_COUNT(counters); i++)
		wl_u64(counters[i].key, counter_at(i) - before[i]);
	if (!stay_open)
		wl_reap(server);
	return wl_result("server_pid %d", server);
}
