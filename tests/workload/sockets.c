/* Binds, listens and connects sockets in a private network namespace, and prints each call's
 * result. */
#include "loopback.h"

#define BINDS 9
#define BINDS_FAILED 2
#define LISTENS 3
#define CONNECTS 4

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

WL_NUMBER("rounds", rounds, 1, "how often each call is made");
static bool tell;

struct end {
	const char *address;
	in_port_t port;
};

static struct lo_name name_of(const struct end *e)
{
	return lo_name(e->address, htons(e->port));
}

static in_port_t port_of(int fd)
{
	return ntohs(lo_port(fd));
}

static void say(const char *protocol, const struct end *e, in_port_t port, int failed)
{
	wl_open(NULL, '{');
	wl_fields("protocol %s ip %d address %s port %d errno %d", protocol,
		  strchr(e->address, ':') && !strchr(e->address, '.') ? 6 : 4,
		  strchr(e->address, '.') && strrchr(e->address, ':') ? strrchr(e->address, ':') + 1
								      : e->address,
		  port, failed);
}

struct bind_call {
	int type;
	const struct end *end;
	const char *shown;
	int options[2][2], interface;
};

/* A socket for the address's IP version. */
static int try_bind(const struct bind_call *b)
{
	struct lo_name name = name_of(b->end);
	int fd = lo_socket(name.any.sa_family, b->type), one = 1, failed;

	for (int i = 0; i < 2 && b->options[i][1]; i++)
		can(setsockopt(fd, b->options[i][0], b->options[i][1], &one, sizeof(one)),
		    b->shown);
	if (b->interface)
		can(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), "SO_BINDTODEVICE");
	failed = lo_bind(fd, name) ? errno : 0;
	if (tell) {
		say(b->type == SOCK_STREAM ? "TCP" : "UDP", b->end,
		    failed ? b->end->port : port_of(fd), failed);
		wl_fields("options %s interface %d", b->shown, b->interface);
		wl_close('}');
	}
	return fd;
}

static void bind_all(void)
{
	const struct end here = {"127.0.0.1", 0}, six = {"::1", 0}, away = {"192.0.2.1", 5000},
			 web = {"198.51.100.7", 80}, mapped = {"::ffff:127.0.0.1", 0};
	struct end taken = here;
	const struct bind_call calls[BINDS] = {
		{SOCK_STREAM, &here, .shown = "....."},
		{SOCK_STREAM, &taken, .shown = "....."},
		{SOCK_DGRAM, &six, .shown = "...Rr",
		 .options = {{SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_REUSEPORT}}},
		{SOCK_DGRAM, &away, .shown = "....."},
		{SOCK_DGRAM, &away, .shown = "F....", .options = {{IPPROTO_IP, IP_FREEBIND}}},
		{SOCK_STREAM, &here, .shown = "..N..",
		 .options = {{IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT}}},
		{SOCK_STREAM, &web, .shown = ".T...", .options = {{IPPROTO_IP, IP_TRANSPARENT}}},
		{SOCK_STREAM, &mapped, .shown = "....."},
		{SOCK_DGRAM, &here, ".....", .interface = 1},
	};
	int fd[BINDS];

	for (int i = 0; i < BINDS; i++) {
		fd[i] = try_bind(&calls[i]);
		if (i == 0)
			taken.port = port_of(fd[0]);
	}
	for (int i = 0; i < BINDS; i++)
		close(fd[i]);
}

/* A socket that is not bound gets a port from listen(). */
static void try_listen(int family, int type, const char *protocol, int backlog)
{
	const struct end any = {family == AF_INET ? "0.0.0.0" : "::", 0};
	int fd = lo_socket(family, type), failed = listen(fd, backlog) ? errno : 0;
	in_port_t port = port_of(fd);

	if (tell) {
		say(protocol, &any, port, failed);
		wl_i64("backlog", backlog);
		wl_close('}');
	}
	close(fd);
}

static void listen_all(void)
{
	try_listen(AF_INET, SOCK_STREAM, "TCPv4", 7);
	try_listen(AF_INET6, SOCK_STREAM, "TCPv6", 1000000);
	try_listen(AF_INET, SOCK_DGRAM, "UDPv4", 5);
}

static void try_connect(const struct end *e)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct lo_name name = name_of(e);
	int fd = lo_socket(name.any.sa_family, SOCK_DGRAM);
	int failed = lo_connect(fd, name) ? errno : 0;

	if (tell) {
		say("UDP", e, e->port, failed);
		wl_u64("local_port", failed ? 0 : port_of(fd));
		wl_close('}');
	}
	connect(fd, &none, sizeof(none));
	close(fd);
}

static void connect_all(void)
{
	const struct end ends[CONNECTS] = {
		{"127.0.0.1", 53}, {"::1", 5353}, {"::ffff:127.0.0.1", 443}, {"192.0.2.1", 53}};
	int tcp = lo_socket(AF_INET, SOCK_STREAM);

	for (int i = 0; i < CONNECTS; i++)
		try_connect(&ends[i]);
	check(lo_connect(tcp, name_of(&ends[0])), "something listens there");
	close(tcp);
}

static void scene(const char *key, void (*run)(void))
{
	wl_open(key, '[');
	for (uint64_t i = 0; i < rounds; i++) {
		tell = i == 0;
		run();
	}
	wl_close(']');
}

static int workload(void)
{
	lo_up();
	wl_ready();
	scene("binds", bind_all);
	scene("listens", listen_all);
	scene("connects", connect_all);
	return wl_result("bind_calls %lu bound %lu listen_calls %lu connect_calls %lu",
			 rounds * BINDS, rounds * (BINDS - BINDS_FAILED), rounds * LISTENS,
			 rounds * CONNECTS);
}
