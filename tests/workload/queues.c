/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets that come by known queues of an interface of its own, and packets over the loopback of a
 * network namespace of its own; says what the kernel has counted. */
#include "workload.h"
#include "loopback.h"

#include <linux/if_tun.h>
#include <netinet/in.h>

#define QUEUES 4
#define INTERFACE "many0"

static uint64_t packets = 40, size = 100, datagrams = 10;
static bool even;
static char buffer[1 << 16];

static void check(bool fine, const char *what)
{
	if (!fine)
		wl_die(WL_FAILED, "%s: %m", what);
}

/* Received and sent packets of an interface, then their bytes. */
static void counters(const char *interface, uint64_t c[4])
{
	char text[8192], name[32], *line;

	check(wl_slurp("/proc/thread-self/net/dev", text, sizeof(text)) > 0, "/proc/net/dev");
	snprintf(name, sizeof(name), "%s:", interface);
	line = strstr(text, name);
	check(line && sscanf(line + strlen(name), "%lu %lu %*u %*u %*u %*u %*u %*u %lu %lu", &c[2],
			     &c[0], &c[3], &c[1]) == 4,
	      "/proc/net/dev");
}

static void open_queues(int fd[QUEUES])
{
	struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE,
			  .ifr_name = INTERFACE};
	int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < QUEUES; i++) {
		fd[i] = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
		if (fd[i] < 0 || ioctl(fd[i], TUNSETIFF, &r))
			wl_die(WL_CANNOT, "no interface with several queues: %m");
	}
	r.ifr_flags = IFF_UP;
	check(control >= 0 && !ioctl(control, SIOCSIFFLAGS, &r), "SIOCSIFFLAGS");
	close(control);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"packets", WL_NUM, &packets, "N", "that come by the interface"},
		{"size", WL_NUM, &size, "N", "bytes of a packet"},
		{"even", WL_FLAG, &even, NULL,
		 "the same number by each queue; else of 4 packets 3 by queue 2, 1 by queue 0"},
		{"datagrams", WL_NUM, &datagrams, "N", "over the loopback, of as many bytes"},
		{0},
	};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	uint64_t by[QUEUES] = {0}, before[4], after[4];
	int fd[QUEUES], udp;

	wl_start(argc, argv, "queues", "Makes known packets by the queues of an interface.", opts);
	if (size < 28 || size > 60000 || packets % 4)
		wl_die(WL_USAGE, "--size: 28 to 60000; --packets: a multiple of 4");
	lo_up();
	if (packets)
		open_queues(fd);
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(udp >= 0, "socket");
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	buffer[0] = 0x45; /* IPv4, to an address that no host has */
	wl_ready();

	counters("lo", before);
	for (uint64_t i = 0; i < packets; i++) {
		uint64_t queue = even ? i % QUEUES : i % 4 ? 2 : 0;

		check(write(fd[queue], buffer, size) == (ssize_t)size, "write");
		by[queue]++;
	}
	for (uint64_t i = 0; i < datagrams; i++) {
		/* The refusal of the one before is this one's error. */
		if (sendto(udp, buffer, size - 28, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			check(errno == ECONNREFUSED, "sendto");
	}
	counters("lo", after);

	wl_line_begin();
	wl_u64("packets", packets);
	wl_u64("size", size);
	wl_open("by_queue", '[');
	for (int i = 0; i < QUEUES; i++)
		wl_u64(NULL, by[i]);
	wl_close(']');
	wl_u64("lo_received", after[0] - before[0]);
	wl_u64("lo_sent", after[1] - before[1]);
	wl_u64("lo_received_bytes", after[2] - before[2]);
	wl_u64("all", packets + after[0] - before[0] + after[1] - before[1]);
	wl_finish();
	return WL_OK;
}
