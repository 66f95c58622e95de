/* Makes calls of getppid from its executable, from a library, from code in no file, and then from
 * a file at the same address. */
#define WL_OWN_MAIN
#include "workload.h"

#include "objects/inline_call.h"

#include <dlfcn.h>

#define CODE_BYTES 4096

WL_NUMBER("own", own, 11, "calls by the executable");
WL_NUMBER("library", library, 22, "calls by a library");
WL_NUMBER("libc", by_libc, 33, "calls by syscall() of libc");
WL_NUMBER("made", made, 44, "calls by code in anonymous memory");
WL_NUMBER("mapped", mapped, 55, "calls by code of a file, mapped in its place");
WL_NUMBER("threads", threads, 1, "threads that do so, one after another");
WL_FLAG("maps", maps, "another thread maps and unmaps memory meanwhile");

static volatile bool done;

static const uint32_t kCode[] = {
#if defined(__x86_64__)
	0xb8 | (uint32_t)SYS_getppid << 8, 0xc3050f00, /* mov $SYS_getppid, %eax; syscall; ret */
#elif defined(__aarch64__)
	0xd2800008 | SYS_getppid << 5,
	0xd4000001,
	0xd65f03c0,
#endif
};

typedef void code(void);

static void run(void *at, uint64_t count)
{
	__builtin___clear_cache(at, (char *)at + sizeof(kCode));
	for (uint64_t i = 0; i < count; i++)
		((code *)at)();
}

static void *all_in_turn(void *calls)
{
	int file = must(memfd_create("objects_code", MFD_CLOEXEC), "memfd_create");

	for (uint64_t i = 0; i < own; i++)
		inline_call();
	((void (*)(uint64_t))calls)(library);
	for (uint64_t i = 0; i < by_libc; i++)
		syscall(SYS_getppid);
	char *at = wl_anonymous(CODE_BYTES);
	memcpy(at, kCode, sizeof(kCode));
	must(mprotect(at, CODE_BYTES, PROT_READ | PROT_EXEC), "mprotect");
	run(at, made);
	must(ftruncate(file, CODE_BYTES), "ftruncate");
	fail_if(write(file, kCode, sizeof(kCode)) != sizeof(kCode), "write");
	fail_if(mmap(at, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != at,
		"mmap");
	run(at, mapped);
	return NULL;
}

static void *map_and_unmap(void *arg)
{
	while (!done)
		munmap(wl_anonymous(CODE_BYTES), CODE_BYTES);
	return arg;
}

int main(int argc, char **argv)
{
	char path[WL_PATH];

	wl_start(argc, argv);
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);

	fail_if(length < 0, "/proc/self/exe");
	path[length] = 0;
	strcpy(strrchr(path, '/') + 1, "inline_calls.so");
	void *so = dlopen(path, RTLD_NOW);

	if (!so)
		wl_die(WL_FAILED, "%s", dlerror());
	void *calls = dlsym(so, "inline_calls");

	wl_ready();
	pthread_t mapper = maps ? wl_thread(map_and_unmap, NULL) : 0;

	for (uint64_t i = 0; i < threads; i++)
		pthread_join(wl_thread(all_in_turn, calls), NULL);
	done = true;
	if (maps)
		pthread_join(mapper, NULL);
	return wl_result("own %lu library %lu libc %lu made %lu mapped %lu", own * threads,
			 library * threads, by_libc * threads, made * threads, mapped * threads);
}
