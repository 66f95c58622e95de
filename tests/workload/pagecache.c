/* Reads, maps and writes a file of known size, cold and warm, to move the page cache by known
 * amounts. */
#include "workload.h"

static const char *dir, *phases = "cold,warm,write,mmap";
static uint64_t size = 4 * WL_MIB, read_size = 65536, rounds = 1;
static bool random_access;
static uint64_t page;

static const char *const vm_keys[] = {"nr_dirtied", "nr_written", "pgpgin",
				      "pgpgout",    "pgfault",	  "pgmajfault"};

struct phase {
	char name[16];
	uint64_t calls, bytes, page_accesses, took_ns;
	uint64_t resident_before, resident_after;
	uint64_t minor_faults, major_faults;
	struct wl_counters before, after;
};

/* What mincore() says of a mapping of our own; mapping alone brings no page in. */
static uint64_t resident(int fd)
{
	uint64_t pages = (size + page - 1) / page, found = 0;
	unsigned char *map = malloc(pages);
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (!map || at == MAP_FAILED || mincore(at, size, map))
		wl_die(WL_FAILED, "mincore: %m");
	for (uint64_t i = 0; i < pages; i++)
		found += map[i] & 1;
	munmap(at, size);
	free(map);
	return found;
}

/* Pages still being added to an LRU list cannot be dropped; another CPU may hold some. */
static void drop(int fd)
{
	uint64_t left = 0;

	for (int i = 0; i < 50; i++) {
		if (fsync(fd))
			wl_die(WL_FAILED, "fsync: %m");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		left = resident(fd);
		if (!left)
			return;
		wl_nap_ms(10);
	}
	wl_die(WL_CANNOT, "%llu pages cannot be dropped from the cache", (unsigned long long)left);
}

static uint64_t spanned(uint64_t at, uint64_t bytes)
{
	return (at + bytes - 1) / page - at / page + 1;
}

static void transfer(struct phase *p, int fd, char *buffer, bool writing)
{
	for (uint64_t at = 0; at < size; at += read_size) {
		uint64_t want = size - at < read_size ? size - at : read_size;
		ssize_t got = writing ? pwrite(fd, buffer, want, (off_t)at)
				      : pread(fd, buffer, want, (off_t)at);

		if (got != (ssize_t)want)
			wl_die(errno == ENOSPC ? WL_CANNOT : WL_FAILED, "%s: %s", p->name,
			       got < 0 ? strerror(errno) : "short");
		p->calls++;
		p->bytes += want;
		p->page_accesses += spanned(at, want);
	}
}

static void touch(struct phase *p, int fd)
{
	volatile char *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	if (random_access)
		madvise((void *)at, size, MADV_RANDOM);
	for (uint64_t i = 0; i < size; i += page) {
		(void)at[i];
		p->page_accesses++;
	}
	p->bytes += size;
	p->calls++;
	munmap((void *)at, size);
}

/* Reads the file ahead and waits until it is there, but reads another one, which is cached. */
static void read_ahead(struct phase *p, int fd, char *buffer)
{
	uint64_t pages = (size + page - 1) / page;
	char path[WL_PATH];
	int other = wl_temp_file(dir, 0, path, sizeof(path));

	unlink(path);
	wl_undo_count = wl_undo_count - 1;
	transfer(&(struct phase){.name = "making another"}, other, buffer, true);
	/* One call reads no more than a device's read-ahead. */
	for (uint64_t at = 0; at < size; at += 65536)
		if (posix_fadvise(fd, (off_t)at, 65536, POSIX_FADV_WILLNEED))
			wl_die(WL_FAILED, "posix_fadvise: %m");
	for (int i = 0; resident(fd) < pages; i++) {
		if (i == 500)
			wl_die(WL_CANNOT, "the file is not read ahead");
		wl_nap_ms(10);
	}
	transfer(p, other, buffer, false);
	close(other);
}

static void run(struct phase *p, int file_fd, char *buffer)
{
	bool ahead = !strcmp(p->name, "ahead");
	bool cold = ahead || !strcmp(p->name, "cold") || !strcmp(p->name, "mmap-cold");
	bool map = !strncmp(p->name, "mmap", 4), writing = !strcmp(p->name, "write");
	struct rusage before, after;
	char path[WL_PATH];
	int file = file_fd;

	if (cold)
		drop(file);
	else if (!writing)
		transfer(&(struct phase){.name = "warm-up"}, file, buffer, false);
	if (writing) {
		file = wl_temp_file(dir, 0, path, sizeof(path));
		unlink(path);
		wl_undo_count = wl_undo_count - 1;
	} else {
		p->resident_before = resident(file);
		if (!cold && p->resident_before != (size + page - 1) / page)
			wl_die(WL_CANNOT, "the cache does not keep the file");
	}
	wl_count(&p->before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	getrusage(RUSAGE_SELF, &before);
	p->took_ns = wl_now();
	if (map)
		touch(p, file);
	else if (ahead)
		read_ahead(p, file, buffer);
	else
		transfer(p, file, buffer, writing);
	p->took_ns = wl_now() - p->took_ns;
	getrusage(RUSAGE_SELF, &after);
	wl_count(&p->after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	p->resident_after = resident(file);
	p->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
	p->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
	if (writing)
		close(file);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"dir", WL_STR, &dir, "D", "where the file is made (default: one on a disk)"},
		{"size", WL_NUM, &size, "BYTES", "size of the file"},
		{"read-size", WL_NUM, &read_size, "S", "bytes of each read or write"},
		{"rounds", WL_NUM, &rounds, "M", "how often all phases are done"},
		{"phase", WL_STR, &phases, "LIST", "of cold, warm, write, mmap, mmap-cold, ahead"},
		{"random", WL_FLAG, &random_access, NULL, "advise against read-ahead"},
		{0},
	};
	char path[WL_PATH], *list, *save, *word, *buffer;
	struct phase *all;
	size_t n = 0, room;
	uint64_t accesses = 0;
	struct stat st;
	int fd;

	wl_start(argc, argv, "pagecache", "Accesses a known number of pages of a file's cache.",
		 opts);
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!size || size > WL_GIB || !read_size || read_size > 64 * WL_MIB || rounds < 1 ||
	    rounds > 1000)
		wl_die(WL_USAGE, "want a size up to 1g, a read size up to 64m, 1 to 1000 rounds");
	list = strdup(phases);
	room = (strlen(list) / 2 + 1) * rounds;
	all = calloc(room, sizeof(*all));
	for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		static const char *const known[] = {"cold", "warm",	 "write",
						    "mmap", "mmap-cold", "ahead"};
		size_t i = 0;

		while (i < WL_COUNT(known) && strcmp(known[i], word))
			i++;
		if (i == WL_COUNT(known))
			wl_die(WL_USAGE, "--phase: %s", word);
		snprintf(all[n++].name, sizeof(all[0].name), "%s", word);
	}
	if (!n)
		wl_die(WL_USAGE, "--phase: which?");
	for (size_t i = n; i < n * rounds; i++)
		all[i] = all[i - n];
	n *= rounds;

	if (!dir)
		dir = wl_disk_dir(NULL);
	buffer = malloc(read_size);
	memset(buffer, 0x5a, read_size);
	fd = wl_temp_file(dir, 0, path, sizeof(path));
	transfer(&(struct phase){.name = "making the file"}, fd, buffer, true);
	if (fsync(fd) || fstat(fd, &st))
		wl_die(WL_FAILED, "%s: %m", path);
	if (random_access)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	if (!strncmp(phases, "cold", 4) || !strncmp(phases, "mmap-cold", 9) ||
	    !strncmp(phases, "ahead", 5))
		drop(fd);

	wl_ready_begin();
	wl_str("path", path);
	wl_u64("ino", st.st_ino);
	wl_u64("dev_major", major(st.st_dev));
	wl_u64("dev_minor", minor(st.st_dev));
	wl_ready_end();

	for (size_t i = 0; i < n; i++)
		run(&all[i], fd, buffer);

	wl_line_begin();
	wl_str("path", path);
	wl_u64("page_size", page);
	wl_u64("file_bytes", size);
	wl_u64("file_pages", (size + page - 1) / page);
	wl_u64("read_size", read_size);
	wl_open("phases", '[');
	for (size_t i = 0; i < n; i++) {
		struct phase *p = &all[i];

		wl_open(NULL, '{');
		wl_str("phase", p->name);
		wl_u64("calls", p->calls);
		wl_u64("bytes", p->bytes);
		wl_u64("page_accesses", p->page_accesses);
		wl_u64("resident_before", p->resident_before);
		wl_u64("resident_after", p->resident_after);
		wl_u64("pages_added", p->resident_after - p->resident_before);
		wl_u64("minor_faults", p->minor_faults);
		wl_u64("major_faults", p->major_faults);
		wl_u64("took_ns", p->took_ns);
		wl_growth("vmstat", &p->before, &p->after);
		wl_close('}');
		accesses += p->page_accesses;
	}
	wl_close(']');
	wl_u64("page_accesses", accesses);
	wl_finish();
	return WL_OK;
}
