/* Reads, maps and writes a file of known size, cold and warm, to move the page cache by known
 * amounts. */
#include "workload.h"

WL_TEXT("dir", dir, NULL, "where the file is made (default: one on a disk)");
WL_BOUNDED("size", size, 4 * WL_MIB, 1, WL_GIB, "size of the file");
WL_BOUNDED("read-size", read_size, 65536, 1, 64 * WL_MIB, "bytes of each read or write");
WL_BOUNDED("rounds", rounds, 1, 1, 1000, "how often all phases are done");
WL_TEXT("phase", phases, "cold,warm,write,mmap", "of cold, warm, write, mmap, mmap-cold, ahead");
WL_FLAG("random", random_access, "advise against read-ahead");
static uint64_t page, pages;
static char *buffer;

struct phase {
	const char *name;
	uint64_t calls, bytes, page_accesses, took_ns, minor_faults;
};

/* Pages still being added to an LRU list cannot be dropped; another CPU may hold some. */
static void drop(int fd)
{
	uint64_t left = 0;

	for (int i = 0; i < 50; i++) {
		fail_if(fsync(fd), "fsync");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		left = wl_resident(fd, size);
		if (!left)
			return;
		wl_nap_ms(10);
	}
	wl_die(WL_CANNOT, "%lu pages cannot be dropped from the cache", left);
}

static uint64_t spanned(uint64_t at, uint64_t bytes)
{
	return (at + bytes - 1) / page - at / page + 1;
}

static void transfer(struct phase *p, int fd, bool writing)
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

	fail_if(at == MAP_FAILED, "mmap");
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

/* Without a name. */
static int other_file(void)
{
	char path[WL_PATH];
	int fd = wl_temp_file(dir, 0, path);

	unlink(path);
	wl_undo_count = wl_undo_count - 1;
	return fd;
}

/* Reads the file ahead and waits until it is cached, but reads another, cached one. */
static void read_ahead(struct phase *p, int fd)
{
	int other = other_file();

	transfer(&(struct phase){.name = "making another"}, other, true);
	/* One call reads at most a device's read-ahead. */
	for (uint64_t at = 0; at < size; at += 65536)
		check(!posix_fadvise(fd, (off_t)at, 65536, POSIX_FADV_WILLNEED), "posix_fadvise");
	for (int i = 0; wl_resident(fd, size) < pages; i++) {
		lacks_if(i == 500, "the file is not read ahead");
		wl_nap_ms(10);
	}
	transfer(p, other, false);
	close(other);
}

static void run(struct phase *p, int file)
{
	bool ahead = !strcmp(p->name, "ahead");
	bool cold = ahead || !strcmp(p->name, "cold") || !strcmp(p->name, "mmap-cold");
	bool map = !strncmp(p->name, "mmap", 4), writing = !strcmp(p->name, "write");
	struct rusage before, after;

	if (cold)
		drop(file);
	else if (!writing)
		transfer(&(struct phase){.name = "warm-up"}, file, false);
	if (writing)
		file = other_file();
	else if (!cold && wl_resident(file, size) != pages)
		wl_die(WL_CANNOT, "the cache does not keep the file");
	getrusage(RUSAGE_SELF, &before);
	p->took_ns = wl_now();
	if (map)
		touch(p, file);
	else if (ahead)
		read_ahead(p, file);
	else
		transfer(p, file, writing);
	p->took_ns = wl_now() - p->took_ns;
	getrusage(RUSAGE_SELF, &after);
	p->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
	if (writing)
		close(file);
}

static int workload(void)
{
	char path[WL_PATH], *save;
	struct phase *all;
	size_t n = 0;
	uint64_t accesses = 0;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	pages = (size + page - 1) / page;
	char *list = strdup(phases);
	all = calloc((strlen(list) / 2 + 1) * rounds, sizeof(*all));
	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		wl_one_of("phase", word, "cold warm write mmap mmap-cold ahead");
		all[n++].name = word;
	}
	usage_if(!n, "--phase: which?");
	for (size_t i = n; i < n * rounds; i++)
		all[i] = all[i - n];
	n *= rounds;

	if (!dir)
		dir = wl_disk_dir(NULL);
	buffer = malloc(read_size);
	memset(buffer, 0x5a, read_size);
	int fd = wl_temp_file(dir, 0, path);
	transfer(&(struct phase){.name = "making the file"}, fd, true);
	must(fsync(fd), path);
	if (random_access)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	if (!strcmp(all[0].name, "cold") || !strcmp(all[0].name, "mmap-cold") ||
	    !strcmp(all[0].name, "ahead"))
		drop(fd);

	wl_ready_with("path %s", path);

	for (size_t i = 0; i < n; i++)
		run(&all[i], fd);

	wl_open("phases", '[');
	for (struct phase *p = all; p < all + n; p++) {
		wl_object(NULL,
			  "phase %s calls %lu bytes %lu page_accesses %lu minor_faults %lu "
			  "took_ns %lu",
			  p->name, p->calls, p->bytes, p->page_accesses, p->minor_faults,
			  p->took_ns);
		accesses += p->page_accesses;
	}
	wl_close(']');
	return wl_result("path %s file_pages %lu page_accesses %lu", path, pages, accesses);
}
