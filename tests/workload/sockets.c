/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binds, listens and connects sockets in a network namespace of its own, and says what came of each
 * call. */
#include "workload.h"
#include "loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define BINDS 9
#define BINDS_FAILED 2
#define LISTENS 3
#define CONNECTS 4

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

static uint64_t rounds = 1;
static bool tell;

struct end {
	int family; /* of the socket */
	const char *address;
	in_port_t port;
};

static socklen_t name_of(const struct end *e, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)e->family;
	four->sin_port = htons(e->port); /* at the same place in both */
	if (e->family == AF_INET) {
		inet_pton(AF_INET, e->address, &four->sin_addr);
		return sizeof(*four);
	}
	inet_pton(AF_INET6, e->address, &six->sin6_addr);
	return sizeof(*six);
}

static in_port_t port_of(int fd)
{
	struct sockaddr_storage name = {0};
	socklen_t size = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &size))
		wl_die(WL_FAILED, "getsockname: %m");
	return ntohs(((struct sockaddr_in *)&name)->sin_port);
}

static int open_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		wl_die(WL_CANNOT, "no socket: %m");
	return fd;
}

static void set(int fd, int level, int option)
{
	int one = 1;

	if (setsockopt(fd, level, option, &one, sizeof(one)))
		wl_die(WL_CANNOT, "option %d: %m", option);
}

static void say(const char *protocol, const struct end *e, in_port_t port, int failed)
{
	wl_open(NULL, '{');
	wl_str("protocol", protocol);
	wl_u64("ip", strchr(e->address, ':') && !strchr(e->address, '.') ? 6 : 4);
	wl_str("address", strchr(e->address, '.') && strrchr(e->address, ':')
				  ? strrchr(e->address, ':') + 1
				  : e->address);
	wl_u64("port", port);
	wl_i64("errno", failed);
}

static int try_bind(int fd, const char *protocol, const struct end *e, const char *options,
		    int interface)
{
	struct sockaddr_storage name;
	socklen_t size = name_of(e, &name);
	int failed = bind(fd, (struct sockaddr *)&name, size) ? errno : 0;

	if (tell) {
		say(protocol, e, failed ? e->port : port_of(fd), failed);
		wl_str("options", options);
		wl_i64("interface", interface);
		wl_close('}');
	}
	return fd;
}

static void bind_all(void)
{
	struct end here = {AF_INET, "127.0.0.1", 0}, six = {AF_INET6, "::1", 0},
		   away = {AF_INET, "192.0.2.1", 5000}, web = {AF_INET, "198.51.100.7", 80},
		   mapped = {AF_INET6, "::ffff:127.0.0.1", 0}, taken = here;
	int fd[BINDS];

	fd[0] = try_bind(open_socket(AF_INET, SOCK_STREAM), "TCP", &here, ".....", 0);
	taken.port = port_of(fd[0]);
	fd[1] = try_bind(open_socket(AF_INET, SOCK_STREAM), "TCP", &taken, ".....", 0);
	fd[2] = open_socket(AF_INET6, SOCK_DGRAM);
	set(fd[2], SOL_SOCKET, SO_REUSEADDR);
	set(fd[2], SOL_SOCKET, SO_REUSEPORT);
	try_bind(fd[2], "UDP", &six, "...Rr", 0);
	fd[3] = try_bind(open_socket(AF_INET, SOCK_DGRAM), "UDP", &away, ".....", 0);
	fd[4] = open_socket(AF_INET, SOCK_DGRAM);
	set(fd[4], IPPROTO_IP, IP_FREEBIND);
	try_bind(fd[4], "UDP", &away, "F....", 0);
	fd[5] = open_socket(AF_INET, SOCK_STREAM);
	set(fd[5], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
	try_bind(fd[5], "TCP", &here, "..N..", 0);
	fd[6] = open_socket(AF_INET, SOCK_STREAM);
	set(fd[6], IPPROTO_IP, IP_TRANSPARENT);
	try_bind(fd[6], "TCP", &web, ".T...", 0);
	fd[7] = try_bind(open_socket(AF_INET6, SOCK_STREAM), "TCP", &mapped, ".....", 0);
	fd[8] = open_socket(AF_INET, SOCK_DGRAM);
	if (setsockopt(fd[8], SOL_SOCKET, SO_BINDTODEVICE, "lo", 3))
		wl_die(WL_CANNOT, "SO_BINDTODEVICE: %m");
	try_bind(fd[8], "UDP", &here, ".....", 1);
	for (int i = 0; i < BINDS; i++)
		close(fd[i]);
}

static void try_listen(int fd, const char *protocol, const struct end *e, int backlog)
{
	in_port_t port;
	int failed;

	failed = listen(fd, backlog) ? errno : 0;
	port = port_of(fd);
	if (tell) {
		say(protocol, e, port, failed);
		wl_i64("backlog", backlog);
		wl_close('}');
	}
	close(fd);
}

/* A socket that is not bound gets a port from listen(). */
static void listen_all(void)
{
	const struct end four = {AF_INET, "0.0.0.0", 0}, six = {AF_INET6, "::", 0};

	try_listen(open_socket(AF_INET, SOCK_STREAM), "TCPv4", &four, 7);
	try_listen(open_socket(AF_INET6, SOCK_STREAM), "TCPv6", &six, 1000000);
	try_listen(open_socket(AF_INET, SOCK_DGRAM), "UDPv4", &four, 5);
}

static void try_connect(const struct end *e)
{
	int fd = open_socket(e->family, SOCK_DGRAM), failed;
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_storage name;
	socklen_t size = name_of(e, &name);

	failed = connect(fd, (struct sockaddr *)&name, size) ? errno : 0;
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
	const struct end ends[CONNECTS] = {{AF_INET, "127.0.0.1", 53},
					   {AF_INET6, "::1", 5353},
					   {AF_INET6, "::ffff:127.0.0.1", 443},
					   {AF_INET, "192.0.2.1", 53}};
	struct sockaddr_storage name;
	socklen_t size = name_of(&ends[0], &name);
	int tcp = open_socket(AF_INET, SOCK_STREAM);

	for (int i = 0; i < CONNECTS; i++)
		try_connect(&ends[i]);
	if (!connect(tcp, (struct sockaddr *)&name, size))
		wl_die(WL_FAILED, "something listens there");
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

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"rounds", WL_NUM, &rounds, "N", "how often each call is made"},
		{0},
	};

	wl_start(argc, argv, "sockets", "Binds, listens and connects sockets.", opts);
	lo_up();
	wl_ready();
	wl_line_begin();
	scene("binds", bind_all);
	scene("listens", listen_all);
	scene("connects", connect_all);
	wl_u64("bind_calls", rounds * BINDS);
	wl_u64("bound", rounds * (BINDS - BINDS_FAILED));
	wl_u64("listen_calls", rounds * LISTENS);
	wl_u64("connect_calls", rounds * CONNECTS);
	wl_finish();
	return WL_OK;
}
