/* Direct I/O, one request at a time, so that the device sees the number the program knows; or, with
 * --buffered, as many pages of the device in the page cache. */
#include "blockdev.h"
#include <linux/fs.h>

static const char *path, *op = "write", *make, *pattern = "seq", *scheduler;
static uint64_t count = 100, size = 4096, pause_ms, span, lost;
static bool sync_each, o_sync, info_only, force, buffered;

struct disk {
	unsigned int major, minor;
	bool partition;
	char name[64], sysfs[WL_PATH];
};

static const char *const stat_names[] = {
	"reads",	"read_merges",	 "read_sectors",   "read_ms",	      "writes",
	"write_merges", "write_sectors", "write_ms",	   "in_flight",	      "io_ms",
	"weighted_ms",	"discards",	 "discard_merges", "discard_sectors", "discard_ms",
	"flushes",	"flush_ms",
};

struct diskstats {
	size_t count;
	unsigned long long value[WL_COUNT(stat_names)];
};

static bool read_link_name(const char *link, char *name, size_t room)
{
	char target[WL_PATH], *base;
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return false;
	target[n] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	if (strlen(base) >= room)
		return false;
	strcpy(name, base);
	return true;
}

/* Some file systems (btrfs) give files device numbers of their own: the mount's source tells. */
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

static struct disk disk_of(dev_t dev)
{
	struct disk disk = {0};
	char link[WL_PATH + 16], text[64];

	if (!major(dev))
		dev = device_by_mount();
	if (!dev)
		wl_die(WL_CANNOT, "no block device behind this path");
	snprintf(disk.sysfs, sizeof(disk.sysfs), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	snprintf(link, sizeof(link), "%s/partition", disk.sysfs);
	disk.partition = !access(link, F_OK);
	if (disk.partition) {
		snprintf(link, sizeof(link), "%s/../dev", disk.sysfs);
		if (wl_slurp(link, text, sizeof(text)) < 0 ||
		    sscanf(text, "%u:%u", &disk.major, &disk.minor) != 2)
			wl_die(WL_FAILED, "%s: %m", link);
		snprintf(disk.sysfs, sizeof(disk.sysfs), "/sys/dev/block/%u:%u", disk.major,
			 disk.minor);
	} else {
		disk.major = major(dev);
		disk.minor = minor(dev);
	}
	if (!read_link_name(disk.sysfs, disk.name, sizeof(disk.name)))
		wl_die(WL_CANNOT, "%s: %m", disk.sysfs);
	return disk;
}

static uint64_t queue_number(const struct disk *disk, const char *what)
{
	char file[WL_PATH + 64], text[64];

	snprintf(file, sizeof(file), "%s/queue/%s", disk->sysfs, what);
	return wl_slurp(file, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

static void print_disk(const struct disk *disk)
{
	wl_str("disk", disk->name);
	wl_u64("major", disk->major);
	wl_u64("minor", disk->minor);
	wl_bool("on_partition", disk->partition);
}

static struct diskstats diskstats_of(const struct disk *disk)
{
	FILE *file = fopen("/proc/diskstats", "re");
	struct diskstats s = {0};
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		unsigned int major, minor;
		int used, more;
		char *at = line;

		if (sscanf(at, "%u %u %*s%n", &major, &minor, &used) != 2 || major != disk->major ||
		    minor != disk->minor)
			continue;
		for (at += used; s.count < WL_COUNT(stat_names) &&
				 sscanf(at, "%llu%n", &s.value[s.count], &more) == 1;
		     at += more)
			s.count++;
	}
	if (file)
		fclose(file);
	if (s.count < 11)
		wl_die(WL_CANNOT, "%s is not in /proc/diskstats", disk->name);
	return s;
}

/* ---- devices of our own ---- */

static void set_scheduler(const struct disk *disk)
{
	char file[WL_PATH + 64], text[256], chosen[64];

	snprintf(file, sizeof(file), "%s/queue/scheduler", disk->sysfs);
	wl_undo(WL_UNDO_WRITE, 0, file, "none");
	if (!wl_write_file(file, scheduler))
		wl_die(WL_CANNOT, "%s: %m", file);
	/* Loop devices of older kernels take any word, and have none. */
	snprintf(chosen, sizeof(chosen), "[%s]", scheduler);
	if (wl_slurp(file, text, sizeof(text)) < 0 || !strstr(text, chosen))
		wl_die(WL_CANNOT, "%s has no scheduler %s", disk->name, scheduler);
}

static void make_null(uint64_t bytes, char *node, size_t room)
{
	char dir[128], file[192], text[64];

	if (access("/sys/module/null_blk", F_OK)) {
		wl_undo(WL_UNDO_RMMOD, 0, "null_blk", NULL);
		wl_modprobe("null_blk", "nr_devices=0");
	}
	if (access("/sys/module/null_blk", F_OK))
		wl_die(WL_CANNOT, "no module null_blk");
	if (access("/sys/kernel/config/nullb", F_OK)) {
		wl_undo(WL_UNDO_UMOUNT, 0, "/sys/kernel/config", NULL);
		if (mount("configfs", "/sys/kernel/config", "configfs", 0, NULL))
			wl_die(WL_CANNOT, "configfs: %m");
	}
	snprintf(dir, sizeof(dir), "/sys/kernel/config/nullb/nullbv%d", getpid());
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	if (mkdir(dir, 0700))
		wl_die(WL_CANNOT, "%s: %m", dir);
	/* Discard and a small size need memory behind the device. */
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(bytes + WL_MIB - 1) / WL_MIB);
	for (int i = 0; i < 5; i++) {
		static const char *const names[] = {"memory_backed", "discard", "completion_nsec",
						    "size", "power"};

		snprintf(file, sizeof(file), "%s/%s", dir, names[i]);
		if (i == 4)
			wl_undo(WL_UNDO_WRITE, 0, file, "0");
		if (!wl_write_file(file, i == 3 ? text : i == 2 ? "10000" : "1"))
			wl_die(WL_CANNOT, "%s: %m", file);
	}
	/* Since 6.9 the directory's name is the device's, before it was nullb and the index. */
	snprintf(node, room, "/dev/nullbv%d", getpid());
	wl_nap_ms(100);
	if (access(node, F_OK)) {
		snprintf(file, sizeof(file), "%s/index", dir);
		wl_slurp(file, text, sizeof(text));
		snprintf(node, room, "/dev/nullb%d", atoi(text));
	}
	await_node(node);
}

/* ---- the work ---- */

/* Blocks that are allocated and written leave no metadata updates for the measured part. */
static void prefill(int fd, const char *buffer, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += size)
		if (pwrite(fd, buffer, size, (off_t)at) != (ssize_t)size)
			wl_die(errno == ENOSPC ? WL_CANNOT : WL_FAILED, "prefill: %m");
	if (fsync(fd))
		wl_die(WL_FAILED, "fsync: %m");
}

static uint64_t scatter(uint64_t i)
{
	return (i * UINT64_C(0x9e3779b97f4a7c15) + (i << 7)) >> 20;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"path", WL_STR, &path, "P",
		 "directory (for a file of our own), file or block device"},
		{"op", WL_STR, &op, "OP", "read, write, flush (write and fsync) or discard"},
		{"rw", WL_STR, &op, "OP", "the same"},
		{"count", WL_NUM, &count, "N", "operations"},
		{"size", WL_NUM, &size, "S", "bytes of each"},
		{"span", WL_NUM, &span, "BYTES", "wrap around after that many (N times S)"},
		{"pattern", WL_STR, &pattern, "P", "seq or random"},
		{"fsync", WL_FLAG, &sync_each, NULL, "fsync after each write"},
		{"scheduler", WL_STR, &scheduler, "NAME", "I/O scheduler of a device by --make"},
		{"lost", WL_NUM, &lost, "BYTES",
		 "reads of the last ones of a device by --make loop fail"},
		{"sync", WL_FLAG, &o_sync, NULL, "open with O_SYNC"},
		{"buffered", WL_FLAG, &buffered, NULL,
		 "by the page cache; what is there is dropped at the end (a device of --make)"},
		{"pause", WL_NUM, &pause_ms, "MS", "sleep before each operation"},
		{"make", WL_STR, &make, "KIND",
		 "first make a device, gone afterwards: loop or md (files in --path), null_blk, "
		 "scsi or zram; "
		 "nvme: the machine's own"},
		{"disk-info", WL_FLAG, &info_only, NULL, "only tell which disk holds the path"},
		{"force", WL_FLAG, &force, NULL, "overwrite an existing file or device"},
		{0},
	};
	bool reading, discarding, random, exists, blk;
	uint64_t start, took = 0, longest = 0, slots, fsyncs = 0, failed = 0;
	char own[WL_PATH];
	struct diskstats before, after;
	struct disk disk;
	struct stat st;
	void *buffer;
	int fd, file = -1;

	wl_start(argc, argv, "blockio", "Makes N direct reads, writes, flushes or discards.", opts);
	reading = !strcmp(op, "read");
	discarding = !strcmp(op, "discard");
	random = !strcmp(pattern, "random");
	if (!strcmp(op, "flush"))
		sync_each = true;
	else if (!reading && !discarding && strcmp(op, "write"))
		wl_die(WL_USAGE, "--op: read, write, flush or discard");
	if (buffered && (!make || reading || discarding || sync_each || o_sync))
		wl_die(WL_USAGE, "--buffered: only writes to a device of --make");
	if (!random && strcmp(pattern, "seq"))
		wl_die(WL_USAGE, "--pattern: seq or random");
	if (!size || size % 512 || size > 64 * WL_MIB || count < 1 || count > 1000000)
		wl_die(WL_USAGE,
		       "want a size in whole sectors up to 64m and 1 to 1000000 operations");
	span = (span ? span : count * size) / size * size;
	if (!span || span > 4 * WL_GIB)
		wl_die(WL_USAGE, "want --span of at least the size and at most 4g");

	if (make) {
		if (!strcmp(make, "loop"))
			file = make_loop(path, span, own, sizeof(own));
		else if (!strcmp(make, "zram"))
			make_zram(span, own, sizeof(own));
		else if (!strcmp(make, "null_blk"))
			make_null(span, own, sizeof(own));
		else if (!strcmp(make, "scsi"))
			make_scsi(span, own, sizeof(own));
		else if (!strcmp(make, "nvme"))
			make_nvme(own, sizeof(own));
		else if (!strcmp(make, "md"))
			make_md(path, span, own, sizeof(own));
		else
			wl_die(WL_USAGE, "--make: loop, md, null_blk, nvme, scsi or zram");
		path = own;
		force = true;
	}
	if (lost && (file < 0 || lost > span))
		wl_die(WL_USAGE, "--lost: for --make loop, at most its bytes");
	if (scheduler && !make)
		wl_die(WL_USAGE, "--scheduler: for --make");
	if (!path)
		path = wl_disk_dir(NULL);
	exists = !stat(path, &st) && !S_ISDIR(st.st_mode);
	blk = exists && S_ISBLK(st.st_mode);

	if (info_only) {
		if (!exists && stat(path, &st))
			wl_die(WL_CANNOT, "%s: %m", path);
		disk = disk_of(blk ? st.st_rdev : st.st_dev);
		wl_line_begin();
		print_disk(&disk);
		wl_u64("logical_block_size", queue_number(&disk, "logical_block_size"));
		wl_u64("max_sectors_kb", queue_number(&disk, "max_sectors_kb"));
		wl_u64("rotational", queue_number(&disk, "rotational"));
		wl_u64("iostats", queue_number(&disk, "iostats"));
		wl_u64("discard_max_bytes", queue_number(&disk, "discard_max_bytes"));
		wl_finish();
		return WL_OK;
	}

	if (exists && !reading && !force)
		wl_die(WL_USAGE, "%s exists: --force to overwrite it", path);
	if (discarding && !blk)
		wl_die(WL_USAGE, "discard needs a block device (or --make)");
	if (!exists) {
		const char *dir = stat(path, &st) ? NULL : path;

		if (dir) {
			fd = wl_temp_file(wl_disk_dir(dir), O_DIRECT, own, sizeof(own));
		} else {
			snprintf(own, sizeof(own), "%s", path);
			wl_undo(WL_UNDO_UNLINK, 0, own, NULL);
			fd = open(own, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
		}
	} else {
		/* O_EXCL on a block device: refused while it is mounted or in use. */
		fd = open(path, (reading && !make ? O_RDONLY : O_RDWR | (blk ? O_EXCL : 0)) |
					O_DIRECT | O_CLOEXEC);
	}
	if (fd < 0)
		wl_die(errno == EPERM || errno == EINVAL || errno == ENOTSUP || errno == EBUSY
			       ? WL_CANNOT
			       : WL_FAILED,
		       "%s: %m", path);
	if (make)
		wl_undo(WL_UNDO_CLOSE, fd, NULL, NULL);
	if (posix_memalign(&buffer, 4096, size))
		wl_die(WL_FAILED, "no memory");
	memset(buffer, 0x5a, size);
	if (!exists || (make && !discarding))
		prefill(fd, buffer, span);
	if (o_sync && !reading) {
		char self[64];
		int again;

		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		again = open(self, O_RDWR | O_DIRECT | O_SYNC | O_CLOEXEC);
		if (again < 0 || dup2(again, fd) < 0)
			wl_die(WL_FAILED, "O_SYNC: %m");
		close(again);
	}
	/* What looked at the new device has left pages. */
	if (buffered && (ioctl(fd, BLKFLSBUF) || fcntl(fd, F_SETFL, O_RDWR)))
		wl_die(WL_FAILED, "%s: %m", path);
	if (fstat(fd, &st))
		wl_die(WL_FAILED, "%s: %m", path);
	if (!blk && exists && (uint64_t)st.st_size < span)
		wl_die(WL_USAGE, "%s is smaller than %llu bytes", path, (unsigned long long)span);
	disk = disk_of(blk ? st.st_rdev : st.st_dev);
	slots = span / size;
	if (scheduler)
		set_scheduler(&disk);
	/* Read through the page cache, older loop devices fill up with zeros. */
	if (lost && (ftruncate(file, (off_t)(span - lost)) || ioctl(fd, LOOP_SET_DIRECT_IO, 1UL)))
		wl_die(WL_CANNOT, "--lost: %m");
	/* What others left dirty would be counted as ours. */
	sync();

	wl_ready_begin();
	print_disk(&disk);
	wl_ready_end();

	before = diskstats_of(&disk);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (random ? scatter(i) : i) % slots * size, range[2] = {at, size};
		ssize_t got;

		if (pause_ms)
			wl_nap_ms((unsigned int)pause_ms);
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
			       "%s at %llu of %s: %s", op, (unsigned long long)at, path,
			       got < 0 ? strerror(errno) : "short");
		if (sync_each && !reading && !discarding) {
			if (fsync(fd))
				wl_die(WL_FAILED, "fsync: %m");
			fsyncs++;
		}
		start = wl_now() - start;
		took += start;
		if (start > longest)
			longest = start;
	}
	if (buffered && ioctl(fd, BLKFLSBUF))
		wl_die(WL_FAILED, "%s: %m", path);
	after = diskstats_of(&disk);

	wl_line_begin();
	print_disk(&disk);
	wl_str("path", path);
	wl_str("op", op);
	wl_str("pattern", pattern);
	wl_u64("count", count);
	wl_u64("size", size);
	wl_u64("bytes", count * size);
	wl_u64("fsyncs", fsyncs);
	wl_u64("failed", failed);
	wl_u64("took_ns", took);
	wl_u64("longest_ns", longest);
	wl_u64("max_sectors_kb", queue_number(&disk, "max_sectors_kb"));
	wl_u64("iostats", queue_number(&disk, "iostats"));
	wl_open("diskstats", '{');
	for (size_t i = 0; i < after.count; i++)
		if (strcmp(stat_names[i], "in_flight"))
			wl_u64(stat_names[i], after.value[i] - before.value[i]);
	wl_close('}');
	wl_finish();
	return WL_OK;
}
