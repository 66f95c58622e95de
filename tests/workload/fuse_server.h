/* A FUSE file system in memory, in a separate process, without a library: regular files up to 64
 * KiB and directories, by the messages of linux/fuse.h (7.12 and newer). */
#ifndef WORKLOAD_FUSE_SERVER_H
#define WORKLOAD_FUSE_SERVER_H

#include "workload.h"

#include <linux/fuse.h>
#include <sys/uio.h>

#define FUSE_NODES 64
#define FUSE_FILE_BYTES (64 << 10)

/* Number 1 is the root; mode 0: free. */
static struct fuse_node {
	uint32_t mode;
	uint32_t size;
	uint32_t names;
	char *data;
} fuse_nodes[FUSE_NODES];

static struct fuse_name {
	uint64_t parent, node; /* 0: free */
	char text[64];
} fuse_names[FUSE_NODES];

static inline void fuse_reply(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header head = {
		.len = sizeof(head) + size, .error = -error, .unique = unique};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)data, size}};

	if (writev(fd, parts, 2) < 0 && errno != ENOENT) /* the caller was interrupted */
		_exit(WL_FAILED);
}

static inline struct fuse_attr fuse_attributes(uint64_t node)
{
	struct fuse_node *n = &fuse_nodes[node];

	return (struct fuse_attr){.ino = node,
				  .size = n->size,
				  .blocks = (n->size + 511) / 512,
				  .mode = n->mode,
				  .nlink = n->names,
				  .blksize = 4096};
}

static inline struct fuse_entry_out fuse_entry(uint64_t node)
{
	return (struct fuse_entry_out){.nodeid = node, .attr = fuse_attributes(node)};
}

static inline struct fuse_name *fuse_find(uint64_t parent, const char *text)
{
	for (size_t i = 0; i < FUSE_NODES; i++)
		if (fuse_names[i].node && fuse_names[i].parent == parent &&
		    !strcmp(fuse_names[i].text, text))
			return &fuse_names[i];
	return NULL;
}

/* 0: no room. */
static inline uint64_t fuse_name(uint64_t parent, const char *text, uint64_t node)
{
	for (size_t i = 0; i < FUSE_NODES; i++) {
		struct fuse_name *n = &fuse_names[i];

		if (n->node || strlen(text) >= sizeof(n->text))
			continue;
		n->parent = parent;
		n->node = node;
		strcpy(n->text, text);
		fuse_nodes[node].names++;
		return node;
	}
	return 0;
}

static inline uint64_t fuse_make(uint64_t parent, const char *text, uint32_t mode)
{
	for (uint64_t node = 2; node < FUSE_NODES; node++) {
		struct fuse_node *n = &fuse_nodes[node];

		if (n->mode)
			continue;
		if (!n->data)
			n->data = malloc(FUSE_FILE_BYTES);
		if (!n->data)
			_exit(WL_FAILED);
		memset(n->data, 0, FUSE_FILE_BYTES);
		n->mode = mode;
		n->size = n->names = 0;
		return fuse_name(parent, text, node);
	}
	return 0;
}

static inline int fuse_remove(uint64_t parent, const char *text)
{
	struct fuse_name *name = fuse_find(parent, text);

	if (!name)
		return ENOENT;
	fuse_nodes[name->node].names--;
	name->node = 0;
	return 0;
}

static inline void fuse_serve_one(int fd, const struct fuse_in_header *in, const char *body)
{
	struct fuse_node *n = in->nodeid < FUSE_NODES ? &fuse_nodes[in->nodeid] : NULL;
	const struct fuse_init_in *init = (const void *)body;
	const struct fuse_setattr_in *set = (const void *)body;
	const struct fuse_read_in *read_in = (const void *)body;
	const struct fuse_write_in *write_in = (const void *)body;
	struct fuse_init_out started = {.major = FUSE_KERNEL_VERSION,
					.minor = 31,
					.max_readahead = 65536,
					.max_write = 16384,
					.max_pages = 4};
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} created = {0};
	struct fuse_attr_out attributes = {0};
	struct fuse_write_out written = {0};
	struct fuse_statfs_out fs = {.st = {.bsize = 4096, .namelen = 63, .frsize = 4096}};
	struct fuse_open_out opened = {0};
	struct fuse_name *name;
	uint64_t node = 0, end;
	size_t size = sizeof(created.entry);
	int error = ENOSPC;

#define REPLY(value) fuse_reply(fd, in->unique, 0, &(value), sizeof(value))
#define FAIL(error) fuse_reply(fd, in->unique, error, NULL, 0)
	if (!n && in->opcode != FUSE_INIT && in->opcode != FUSE_BATCH_FORGET)
		return FAIL(EIO);
	switch (in->opcode) {
	case FUSE_INIT:
		if (init->minor < started.minor)
			started.minor = init->minor;
		return REPLY(started);
	case FUSE_FORGET: /* no longer in use */
		if (!n->names)
			n->mode = 0;
		return;
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	case FUSE_SETATTR:
		if (set->valid & FATTR_SIZE && set->size > FUSE_FILE_BYTES)
			return FAIL(EFBIG);
		if (set->valid & FATTR_SIZE) {
			if (set->size > n->size)
				memset(n->data + n->size, 0, set->size - n->size);
			n->size = set->size;
		}
		/* fallthrough */
	case FUSE_GETATTR:
		attributes.attr = fuse_attributes(in->nodeid);
		return REPLY(attributes);
	case FUSE_LOOKUP:
		error = ENOENT;
		name = fuse_find(in->nodeid, body);
		node = name ? name->node : 0;
		break;
	case FUSE_MKDIR:
		node = fuse_make(in->nodeid, body + sizeof(struct fuse_mkdir_in),
				 S_IFDIR | ((const struct fuse_mkdir_in *)body)->mode);
		break;
	case FUSE_LINK:
		node = fuse_name(in->nodeid, body + sizeof(struct fuse_link_in),
				 *(const uint64_t *)body);
		break;
	case FUSE_CREATE:
		node = fuse_make(in->nodeid, body + sizeof(struct fuse_create_in),
				 S_IFREG | ((const struct fuse_create_in *)body)->mode);
		size = sizeof(created);
		break;
	case FUSE_RMDIR:
	case FUSE_UNLINK:
		return FAIL(fuse_remove(in->nodeid, body));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return REPLY(opened);
	case FUSE_READ:
		end = read_in->offset + read_in->size < n->size ? read_in->offset + read_in->size
								: n->size;
		return fuse_reply(fd, in->unique, 0, n->data + read_in->offset,
				  end > read_in->offset ? end - read_in->offset : 0);
	case FUSE_WRITE:
		end = write_in->offset + write_in->size;
		if (end > FUSE_FILE_BYTES)
			return FAIL(EFBIG);
		memcpy(n->data + write_in->offset, write_in + 1, write_in->size);
		if (n->size < end)
			n->size = end;
		written.size = write_in->size;
		return REPLY(written);
	case FUSE_STATFS:
		return REPLY(fs);
	case FUSE_READDIR:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return FAIL(0);
	default:
		return FAIL(ENOSYS);
	}
	if (!node)
		return FAIL(error);
	created.entry = fuse_entry(node);
	fuse_reply(fd, in->unique, 0, &created, size);
#undef REPLY
#undef FAIL
}

/* Mounts one on the directory. */
static inline void fuse_mount(const char *dir)
{
	static char message[FUSE_MIN_READ_BUFFER + (64 << 10)] __attribute__((aligned(8)));
	char options[128];
	ssize_t got;

	wl_modprobe("fuse", NULL);
	int fd = can(open("/dev/fuse", O_RDWR | O_CLOEXEC), "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	wl_undo(WL_UNDO_UMOUNT, 0, dir, NULL);
	cannot_if(mount("workload", dir, "fuse", MS_NOSUID | MS_NODEV, options), "mount fuse");
	if (wl_fork() == 0) {
		fuse_nodes[1] = (struct fuse_node){.mode = S_IFDIR | 0700, .names = 2};
		for (;;) {
			got = read(fd, message, sizeof(message));
			if (got < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
				continue;
			if (got < (ssize_t)sizeof(struct fuse_in_header))
				_exit(0); /* unmounted */
			fuse_serve_one(fd, (void *)message,
				       message + sizeof(struct fuse_in_header));
		}
	}
	close(fd);
}

#endif
