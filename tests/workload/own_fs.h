/* A private file system: on a loop device, served by a process, or over the network. */
#ifndef WORKLOAD_OWN_FS_H
#define WORKLOAD_OWN_FS_H

#include "blockdev.h"
#include "fuse_server.h"
#include "nfs_server.h"

struct own_fs {
	const char *type, *force;
	uint64_t mib;
};

static inline void mount_loop(const struct own_fs *fs, const char *dir)
{
	const char *mkfs = strdup(wl_format("mkfs.%s", fs->type));
	char node[NODE_ROOM];

	make_loop(NULL, fs->mib * WL_MIB, node);
	pid_t pid = wl_fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execlp(mkfs, mkfs, fs->force, node, (char *)NULL);
		_exit(127);
	}
	cannot_if(wl_reap(pid), mkfs);
	wl_modprobe(fs->type, NULL);
	wl_undo(WL_UNDO_UMOUNT, 0, dir, NULL);
	can(mount(node, dir, fs->type, 0, NULL), fs->type);
}

/* Mounted over a directory. */
static inline void mount_own(const char *type, const char *dir)
{
	static const struct own_fs known[] = {
		{"ext4", "-Fq", 8}, {"xfs", "-fq", 320}, {"btrfs", "-fq", 128}, {"f2fs", "-f", 64}};
	const char *served;

	for (size_t i = 0; i < WL_COUNT(known); i++)
		if (!strcmp(type, known[i].type))
			return mount_loop(&known[i], dir);
	if (!strcmp(type, "fuse"))
		return fuse_mount(dir);
	usage_if(strcmp(type, "nfs"), "--mkfs: ext4, xfs, btrfs, f2fs, fuse or nfs");
	served = strdup(wl_format("%s-served", dir));
	cannot_if(mkdir(served, 0755), served);
	wl_undo(WL_UNDO_RMDIR, 0, served, NULL);
	mount_loop(&known[0], served);
	nfs_mount(served, dir);
}

#endif
