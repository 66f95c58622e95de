/* Uses System V shared memory, and maps a file, in a known number of calls. */
#include "workload.h"

#include <sys/shm.h>

WL_NUMBER("shm", shared, 0, "segments of shared memory, one after another");
WL_NUMBER("maps", maps, 0, "rounds of mappings");
static uint64_t page, segment_id, segment_at;

#define SHM_CALLS 6
#define MAPS_OF_FILES 4

static void use_segment(void)
{
	struct shmid_ds state;
	int id = must(shmget(IPC_PRIVATE, 2 * page, IPC_CREAT | 0640), "shmget");
	void *at = shmat(id, NULL, SHM_RDONLY);

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
	char *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0), *data;

	check(code != MAP_FAILED, "mmap");
	data = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)page);
	check(data != MAP_FAILED, "mmap");
	check(mmap(data, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == data, "MAP_FIXED");
	check(mmap(NULL, page, PROT_READ, MAP_PRIVATE, directory, 0) == MAP_FAILED,
	      "mmap() of a directory");
	munmap(code, page);
	munmap(data, 2 * page);
	data = wl_anonymous(4 * page);
	munmap(data, 4 * page);
}

static int workload(void)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	const char *path = strdup(wl_format("/tmp/segments-%d", getpid()));
	int file = wl_new_file(path);
	int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(ftruncate(file, (off_t)(3 * page)), path);
	if (maps) {
		char *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

		cannot_if(code == MAP_FAILED, path);
		munmap(code, page);
	}
	wl_ready();
	for (uint64_t i = 0; i < shared; i++)
		use_segment();
	for (uint64_t i = 0; i < maps; i++)
		map_file(file, directory);
	return wl_result("shm_calls %lu shmid %lu address %lu file_maps %lu rounds %lu page %lu "
			 "path %s",
			 shared * SHM_CALLS, segment_id, segment_at, maps * MAPS_OF_FILES, maps,
			 page, path);
}
