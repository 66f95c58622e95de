/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network namespace of the workload's own, with nothing but its loopback. */
#ifndef WORKLOAD_LOOPBACK_H
#define WORKLOAD_LOOPBACK_H

#include "workload.h"

#include <net/if.h>
#include <sys/socket.h>

static inline void lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd;

	if (unshare(CLONE_NEWNET))
		wl_die(WL_CANNOT, "no network namespace: %m");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r))
		wl_die(WL_CANNOT, "no loopback: %m");
	r.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		wl_die(WL_CANNOT, "no loopback: %m");
	close(fd);
}

#endif
