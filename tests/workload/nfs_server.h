/* The kernel's NFS server in a private network namespace, and a mount of it over the loopback:
 * version 4.2, without the daemons. Their answers are written to the server's caches in advance, in
 * the formats that fs/nfsd/export.c and net/sunrpc/svcauth_unix.c parse. */
#ifndef WORKLOAD_NFS_SERVER_H
#define WORKLOAD_NFS_SERVER_H

#include "loopback.h"

#define NFSEXP_OF_THIS 0x2402 /* insecure port, no subtree check, a file system id */
#define NFS_FOR_EVER "2147483647"

/* The server's cache entries hold the file system that it serves. */
static inline void nfs_forget_at_the_end(void)
{
	static const char *const caches[] = {"/proc/net/rpc/nfsd.fh/flush",
					     "/proc/net/rpc/nfsd.export/flush",
					     "/proc/net/rpc/auth.unix.ip/flush"};

	for (size_t i = 0; i < WL_COUNT(caches); i++)
		wl_undo(WL_UNDO_WRITE, 0, caches[i], "1\n");
}

/* Since 6.12 a client opens files of a server on the same machine directly (LOCALIO), without the
 * network. */
static inline void nfs_over_the_network(void)
{
	static const char control[] = "/sys/module/nfs/parameters/localio_enabled";
	char before[8];

	if (wl_slurp(control, before, sizeof(before)) > 0 && *before == 'Y')
		wl_tune(control, "N\n");
}

/* Serves one directory to the other. At the end the client is unmounted first, then the server's
 * threads end: a client without its server would wait for it. */
static inline void nfs_mount(const char *served, const char *dir)
{
	static const char control[] = "/proc/fs/nfsd";
	struct stat root;

	wl_modprobe("nfsd", NULL);
	wl_modprobe("nfsv4", NULL);
	nfs_over_the_network();
	lo_up();
	wl_undo(WL_UNDO_UMOUNT_WHOLE, 0, control, NULL);
	cannot_if(mount("nfsd", control, "nfsd", 0, NULL), "mount nfsd");
	nfs_forget_at_the_end();
	wl_set("/proc/net/rpc/auth.unix.ip/channel", "nfsd 127.0.0.1 " NFS_FOR_EVER " workload\n");
	wl_set("/proc/net/rpc/nfsd.export/channel",
	       wl_format("workload %s " NFS_FOR_EVER " %d 65534 65534 0\n", served,
			 NFSEXP_OF_THIS));
	wl_set("/proc/net/rpc/nfsd.fh/channel",
	       wl_format("workload 1 \\x00000000 " NFS_FOR_EVER " %s\n", served));
	wl_set("/proc/fs/nfsd/versions", "-2 -3 +4\n");
	/* The first open waits this long: the minimum, in seconds. */
	wl_set("/proc/fs/nfsd/nfsv4leasetime", "10\n");
	wl_set("/proc/fs/nfsd/nfsv4gracetime", "10\n");
	wl_set("/proc/fs/nfsd/portlist", "tcp 2049\n");
	wl_undo(WL_UNDO_WRITE, 0, "/proc/fs/nfsd/threads", "0\n");
	wl_set("/proc/fs/nfsd/threads", "2\n");
	wl_undo(WL_UNDO_UMOUNT_WHOLE, 0, dir, NULL);
	cannot_if(mount("127.0.0.1:/", dir, "nfs4", 0,
			"vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,soft,timeo=100,"
			"retrans=1"),
		  "mount nfs4");
	/* Closing a file after the server has ended would wait forever. */
	cannot_if(stat(dir, &root), dir);
	wl_undo(WL_UNDO_CLOSE_ON, (int)root.st_dev, NULL, NULL);
}

#endif
