/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Uses System V shared memory, and maps a file, in a known number of calls. */
#include "workload.h"

#include <sys/shm.h>

static uint64_t shared, maps;
static uint64_t page, segment_id, segment_at;

#define SHM_CALLS 6
#define MAPS_OF_FILES 4

static void check(bool fine, const char *what)
{
	if (!fine)
		wl_die(WL_FAILED, "%s: %m", what);
}

static void use_segment(void)
{
	struct shmid_ds state;
	int id = shmget(IPC_PRIVATE, 2 * page, IPC_CREAT | 0640);
	void *at;

	check(id >= 0, "shmget");
	at = shmat(id, NULL, SHM_RDONLY);
	check(at != (void *)-1, "shmat");
	check(!shmctl(id, IPC_STAT, &state), "IPC_STAT");
	check(!shmdt(at), "shmdt");
	check(!shmctl(id, IPC_RMID, NULL), "IPC_RMID");
	check(shmdt((char *)at + 1) < 0, "shmdt() of what is not attached");
	segment_id = (uint64_t)id;
	segment_at = (uintptr_t)at;
}

static void map_file(int file, int directory)
{
	char *code, *data;

	code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	check(code != MAP_FAILED, "mmap");
	data = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)page);
	check(data != MAP_FAILED, "mmap");
	check(mmap(data, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == data, "MAP_FIXED");
	check(mmap(NULL, page, PROT_READ, MAP_PRIVATE, directory, 0) == MAP_FAILED,
	      "mmap() of a directory");
	munmap(code, page);
	munmap(data, 2 * page);
	data = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(data != MAP_FAILED, "MAP_ANONYMOUS");
	munmap(data, 4 * page);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"shm", WL_NUM, &shared, "N", "segments of shared memory, one after another"},
		{"maps", WL_NUM, &maps, "N", "rounds of mappings"},
		{0},
	};
	char path[64];
	int file, directory;

	wl_start(argc, argv, "segments", "Uses shared memory and maps a file.", opts);
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/tmp/segments-%d", getpid());
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file < 0 || directory < 0 || ftruncate(file, (off_t)(3 * page)))
		wl_die(WL_FAILED, "%s: %m", path);
	if (maps) {
		char *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

		if (code == MAP_FAILED)
			wl_die(WL_CANNOT, "%s cannot be mapped as code: %m", path);
		munmap(code, page);
	}
	wl_ready();
	for (uint64_t i = 0; i < shared; i++)
		use_segment();
	for (uint64_t i = 0; i < maps; i++)
		map_file(file, directory);
	wl_line_begin();
	wl_u64("shm_calls", shared * SHM_CALLS);
	wl_u64("shmid", segment_id);
	wl_u64("address", segment_at);
	wl_u64("file_maps", maps * MAPS_OF_FILES);
	wl_u64("rounds", maps);
	wl_u64("page", page);
	wl_str("path", path);
	wl_finish();
	return WL_OK;
}
