/* A private network namespace with only its loopback, and names of its sockets. */
#ifndef WORKLOAD_LOOPBACK_H
#define WORKLOAD_LOOPBACK_H

#include "workload.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

static inline void lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};

	cannot_if(unshare(CLONE_NEWNET), "no network namespace");
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cannot_if(fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r), "no loopback");
	r.ifr_flags |= IFF_UP;
	cannot_if(ioctl(fd, SIOCSIFFLAGS, &r), "no loopback");
	close(fd);
}

static inline int lo_socket(int family, int type)
{
	return can(socket(family, type | SOCK_CLOEXEC, 0), "no socket");
}

struct lo_name {
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
	socklen_t size;
};

/* Ports are in network byte order. */
static inline struct lo_name lo_name(const char *address, in_port_t port)
{
	struct lo_name n = {.four = {.sin_family = AF_INET, .sin_port = port},
			    .size = sizeof(n.four)};

	if (!strchr(address, ':')) {
		inet_pton(AF_INET, address, &n.four.sin_addr);
		return n;
	}
	n = (struct lo_name){.six = {.sin6_family = AF_INET6, .sin6_port = port},
			     .size = sizeof(n.six)};
	inet_pton(AF_INET6, address, &n.six.sin6_addr);
	return n;
}

static inline int lo_bind(int fd, struct lo_name name)
{
	return bind(fd, &name.any, name.size);
}

static inline int lo_connect(int fd, struct lo_name name)
{
	return connect(fd, &name.any, name.size);
}

static inline in_port_t lo_port(int fd)
{
	struct lo_name name = {.size = sizeof(name.six)};

	fail_if(getsockname(fd, &name.any, &name.size), "getsockname");
	return name.four.sin_port; /* at the same offset in both */
}

#endif
