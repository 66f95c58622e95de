/* Packets on known queues of a private interface, and over the loopback of a private network
 * namespace; prints the kernel's counts. */
#include "loopback.h"

#include <linux/if_tun.h>

#define QUEUES 4
#define INTERFACE "many0"

WL_NUMBER("packets", packets, 40, "that come by the interface");
WL_BOUNDED("size", size, 100, 28, 60000, "bytes of a packet");
WL_FLAG("even", even, "as many by each queue; else of 4 packets 3 by queue 2, 1 by queue 0");
WL_NUMBER("datagrams", datagrams, 10, "over the loopback, of as many bytes");
static char buffer[1 << 16];

/* Received and sent packets of an interface, then their bytes. */
static void counters(const char *interface, uint64_t c[4])
{
	char text[8192];
	const char *name = wl_format("%s:", interface), *line;

	check(wl_slurp("/proc/thread-self/net/dev", text, sizeof(text)) > 0, "/proc/net/dev");
	line = strstr(text, name);
	check(line && sscanf(line + strlen(name), "%lu %lu %*u %*u %*u %*u %*u %*u %lu %lu", &c[2],
			     &c[0], &c[3], &c[1]) == 4,
	      "/proc/net/dev");
}

static void open_queues(int fd[QUEUES])
{
	struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_MULTI_QUEUE,
			  .ifr_name = INTERFACE};
	int control = lo_socket(AF_INET, SOCK_DGRAM);

	for (int i = 0; i < QUEUES; i++) {
		fd[i] = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
		can(fd[i] < 0 ? -1 : ioctl(fd[i], TUNSETIFF, &r), "several queues");
	}
	r.ifr_flags = IFF_UP;
	check(!ioctl(control, SIOCSIFFLAGS, &r), "SIOCSIFFLAGS");
	close(control);
}

static int workload(void)
{
	struct lo_name to = lo_name("127.0.0.1", htons(9));
	uint64_t by[QUEUES] = {0}, before[4], after[4];
	int fd[QUEUES];

	usage_if(size < 28 || size > 60000 || packets % 4,
		 "--size: 28 to 60000; --packets: a multiple of 4");
	lo_up();
	if (packets)
		open_queues(fd);
	int udp = lo_socket(AF_INET, SOCK_DGRAM);
	buffer[0] = 0x45; /* IPv4, to an address without a host */
	wl_ready();

	counters("lo", before);
	for (uint64_t i = 0; i < packets; i++) {
		uint64_t queue = even ? i % QUEUES : i % 4 ? 2 : 0;

		check(write(fd[queue], buffer, size) == (ssize_t)size, "write");
		by[queue]++;
	}
	for (uint64_t i = 0; i < datagrams; i++) {
		/* The refusal of the previous packet is reported as this one's error. */
		if (sendto(udp, buffer, size - 28, 0, &to.any, to.size) < 0)
			check(errno == ECONNREFUSED, "sendto");
	}
	counters("lo", after);

	wl_open("by_queue", '[');
	for (int i = 0; i < QUEUES; i++)
		wl_u64(NULL, by[i]);
	wl_close(']');
	return wl_result("packets %lu size %lu lo_received %lu lo_sent %lu lo_received_bytes %lu "
			 "all %lu",
			 packets, size, after[0] - before[0], after[1] - before[1],
			 after[2] - before[2],
			 packets + after[0] - before[0] + after[1] - before[1]);
}
