/* Direct I/O, one request at a time, so that the device gets a known number of requests; or, with
 * --buffered, the same number of pages through the page cache. */
#include "blockdev.h"
#include <linux/fs.h>

WL_TEXT("path", path, NULL, "directory for a file of our own");
WL_TEXT("op", op, "write", "read, write, flush (write and fsync) or discard");
WL_BOUNDED("count", count, 100, 1, 1000000, "operations");
WL_BOUNDED("size", size, 4096, 512, 64 * WL_MIB, "bytes of each");
WL_NUMBER("span", span, 0, "wrap around after that many bytes (all)");
WL_TEXT("pattern", pattern, "seq", "seq or random");
WL_FLAG("fsync", sync_each, "fsync after each write");
WL_TEXT("scheduler", scheduler, NULL, "I/O scheduler of a device by --make");
WL_NUMBER("lost", lost, 0, "reads of the last bytes of --make loop fail");
WL_FLAG("sync", o_sync, "open with O_SYNC");
WL_FLAG("buffered", buffered,
	"by the page cache; what is there is dropped at the end (a device of --make)");
WL_NUMBER("pause", pause_ms, 0, "sleep so long before each operation");
WL_TEXT("make", make, NULL,
	"first make a device, gone afterwards: loop or md (files in --path), or scsi; "
	"nvme: the machine's own");

static struct {
	unsigned int major, minor;
	char name[64], sysfs[64];
} disk;

/* Some file systems (btrfs) have separate device numbers for files: uses the mount's source. */
static dev_t device_by_mount(void)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096], source[WL_PATH];
	unsigned long long id;
	struct statx stx;
	dev_t found = 0;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx) || !(stx.stx_mask & STATX_MNT_ID))
		stx.stx_mnt_id = UINT64_MAX;
	while (mounts && !found && fgets(line, sizeof(line), mounts)) {
		const char *dash = strstr(line, " - ");
		struct stat st;

		if (dash && sscanf(line, "%llu", &id) == 1 && id == stx.stx_mnt_id &&
		    sscanf(dash, " - %*s %1023s", source) == 1 && !stat(source, &st) &&
		    S_ISBLK(st.st_mode))
			found = st.st_rdev;
	}
	if (mounts)
		fclose(mounts);
	return found;
}

static void find_disk_of(dev_t dev)
{
	char target[WL_PATH] = "", text[64];

	if (!major(dev))
		dev = device_by_mount();
	lacks_if(!dev, "no block device behind this path");
	disk.major = major(dev);
	disk.minor = minor(dev);
	/* The whole disk of a partition. */
	if (wl_slurp(wl_format("/sys/dev/block/%u:%u/partition", disk.major, disk.minor), text,
		     sizeof(text)) >= 0) {
		wl_slurp(wl_format("/sys/dev/block/%u:%u/../dev", disk.major, disk.minor), text,
			 sizeof(text));
		sscanf(text, "%u:%u", &disk.major, &disk.minor);
	}
	snprintf(disk.sysfs, sizeof(disk.sysfs), "/sys/dev/block/%u:%u", disk.major, disk.minor);
	can(readlink(disk.sysfs, target, sizeof(target) - 1), disk.sysfs);
	snprintf(disk.name, sizeof(disk.name), "%s", strrchr(target, '/') + 1);
}

static struct diskstats {
	int known;
	unsigned long long reads, writes, flushes;
} diskstats(void)
{
	FILE *file = fopen("/proc/diskstats", "re");
	struct diskstats s = {0};
	unsigned int major, minor;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		int known = sscanf(line,
				   "%u %u %*s %llu %*u %*u %*u %llu %*u %*u %*u %*u %*u %*u %*u "
				   "%*u %*u %*u %llu",
				   &major, &minor, &s.reads, &s.writes, &s.flushes);

		if (major == disk.major && minor == disk.minor) {
			s.known = known;
			break;
		}
	}
	if (file)
		fclose(file);
	if (s.known < 4)
		wl_die(WL_CANNOT, "%s is not in /proc/diskstats", disk.name);
	return s;
}

static void set_scheduler(void)
{
	const char *file = wl_format("%s/queue/scheduler", disk.sysfs);
	char text[256];

	wl_undo(WL_UNDO_WRITE, 0, file, "none");
	wl_set(file, scheduler);
	/* Loop devices of older kernels accept any name, and have no scheduler. */
	if (wl_slurp(file, text, sizeof(text)) < 0 || !strstr(text, wl_format("[%s]", scheduler)))
		wl_die(WL_CANNOT, "%s has no scheduler %s", disk.name, scheduler);
}

/* Allocated and written blocks cause no metadata updates in the measured part. */
static void prefill(int fd, const char *buffer)
{
	for (uint64_t at = 0; at < span; at += size)
		if (pwrite(fd, buffer, size, (off_t)at) != (ssize_t)size)
			wl_die(errno == ENOSPC ? WL_CANNOT : WL_FAILED, "prefill: %m");
	must(fsync(fd), "fsync");
}

static uint64_t scatter(uint64_t i)
{
	return (i * UINT64_C(0x9e3779b97f4a7c15) + (i << 7)) >> 20;
}

/* Creates its file, if it needs one, and its node. */
static int make_device(char *node)
{
	if (!strcmp(make, "loop"))
		return make_loop(path, span, node);
	if (!strcmp(make, "scsi"))
		make_scsi(span, node);
	else if (!strcmp(make, "nvme"))
		make_nvme(node);
	else
		make_md(path, span, node);
	return -1;
}

static int workload(void)
{
	uint64_t start, took = 0, fsyncs = 0, failed = 0;
	char own[WL_PATH], node[NODE_ROOM];
	struct stat st;
	void *buffer;
	int fd, file = -1;

	wl_one_of("op", op, "read write flush discard");
	wl_one_of("pattern", pattern, "seq random");
	wl_one_of("make", make ? make : "loop", "loop md scsi nvme");
	bool reading = !strcmp(op, "read");
	bool discarding = !strcmp(op, "discard");
	bool random = !strcmp(pattern, "random");
	sync_each |= !strcmp(op, "flush");
	usage_if((buffered || scheduler || discarding || lost) && !make, "that is for --make");
	usage_if(size % 512, "--size: want whole sectors");
	span = (span ? span : count * size) / size * size;
	usage_if(!span || span > 4 * WL_GIB, "want --span of at least the size and at most 4g");

	if (make) {
		file = make_device(node);
		path = node;
		/* O_EXCL on a block device: fails while it is mounted or in use. */
		fd = can(open(path, O_RDWR | O_EXCL | O_DIRECT | O_CLOEXEC), path);
		wl_undo(WL_UNDO_CLOSE, fd, NULL, NULL);
	} else {
		path = wl_disk_dir(path);
		fd = wl_temp_file(path, O_DIRECT, own);
	}
	fail_if(posix_memalign(&buffer, 4096, size), "memory");
	memset(buffer, 0x5a, size);
	if (!discarding)
		prefill(fd, buffer);
	if (o_sync && !reading) {
		int again = must(open(wl_format("/proc/self/fd/%d", fd),
				      O_RDWR | O_DIRECT | O_SYNC | O_CLOEXEC),
				 "O_SYNC");

		dup2(again, fd);
		close(again);
	}
	/* Programs that examined the new device left pages in the cache. */
	fail_if(buffered && (ioctl(fd, BLKFLSBUF) || fcntl(fd, F_SETFL, O_RDWR)), path);
	must(fstat(fd, &st), path);
	find_disk_of(make ? st.st_rdev : st.st_dev);
	if (scheduler)
		set_scheduler();
	/* Read through the page cache, older loop devices return zeros. */
	cannot_if(lost && (ftruncate(file, (off_t)(span - lost)) ||
			   ioctl(fd, LOOP_SET_DIRECT_IO, 1UL)),
		  "--lost");
	/* Other processes' dirty pages would be counted as ours. */
	sync();

	wl_ready_with("disk %s major %u minor %u", disk.name, disk.major, disk.minor);

	struct diskstats before = diskstats();
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (random ? scatter(i) : i) % (span / size) * size;
		uint64_t range[2] = {at, size};
		ssize_t got;

		if (pause_ms)
			wl_nap_ms(pause_ms);
		start = wl_now();
		if (reading)
			got = pread(fd, buffer, size, (off_t)at);
		else if (discarding)
			got = ioctl(fd, BLKDISCARD, range) ? -1 : (ssize_t)size;
		else
			got = pwrite(fd, buffer, size, (off_t)at);
		if (lost && got < 0 && errno == EIO)
			failed++;
		else if (got != (ssize_t)size)
			wl_die(errno == EOPNOTSUPP || errno == EINVAL ? WL_CANNOT : WL_FAILED,
			       "%s at %lu of %s: %s", op, at, path,
			       got < 0 ? strerror(errno) : "short");
		if (sync_each && !reading && !discarding) {
			must(fsync(fd), "fsync");
			fsyncs++;
		}
		took += wl_now() - start;
	}
	fail_if(buffered && ioctl(fd, BLKFLSBUF), path);
	struct diskstats after = diskstats();

	wl_open("diskstats", '{');
	wl_fields("reads %lu writes %lu", (uint64_t)(after.reads - before.reads),
		  (uint64_t)(after.writes - before.writes));
	if (after.known > 4)
		wl_u64("flushes", after.flushes - before.flushes);
	wl_close('}');
	return wl_result("disk %s major %u minor %u path %s count %lu size %lu "
			 "bytes %lu fsyncs %lu failed %lu took_ns %lu max_sectors_kb %lu",
			 disk.name, disk.major, disk.minor, path, count, size, count * size, fsyncs,
			 failed, took,
			 wl_number_in(wl_format("%s/queue/max_sectors_kb", disk.sysfs)));
}
