/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passes descriptors of known files to a child, over a Unix socket, and says which ones. */
#include "workload.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FIRST 3 /* by sendmsg(), then one by sendmmsg(), beside other control data */
#define FILES (FIRST + 1)

static uint64_t rounds = 1;
static int *received; /* by the child, in the first round */
static pid_t child;

union control {
	char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FILES * sizeof(int))];
	struct cmsghdr align;
};

static void check(bool fine, const char *what)
{
	if (!fine)
		wl_die(WL_FAILED, "%s: %m", what);
}

static size_t put(struct cmsghdr *c, int type, const void *data, size_t size)
{
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(c), data, size);
	return CMSG_SPACE(size);
}

static void pass(int fd, const int files[FILES])
{
	struct ucred own = {getpid(), getuid(), getgid()};
	union control control = {0};
	char byte = 'x';
	struct iovec one = {&byte, 1};
	struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control};
	struct mmsghdr two[2];
	size_t size;

	message.msg_controllen = put(&control.align, SCM_RIGHTS, files, FIRST * sizeof(int));
	check(sendmsg(fd, &message, 0) == 1, "sendmsg");
	size = put(&control.align, SCM_CREDENTIALS, &own, sizeof(own));
	size += put((struct cmsghdr *)(control.bytes + size), SCM_RIGHTS, &files[FIRST],
		    sizeof(int));
	message.msg_controllen = size;
	two[0].msg_hdr = message;
	message.msg_controllen = 0;
	message.msg_control = NULL;
	two[1].msg_hdr = message;
	check(sendmmsg(fd, two, 2, 0) == 2, "sendmmsg");
}

static size_t take(const struct msghdr *from, int *to)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(from); c; c = CMSG_NXTHDR((struct msghdr *)from, c))
		if (c->cmsg_type == SCM_RIGHTS) {
			n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(to, CMSG_DATA(c), n * sizeof(int));
		}
	return n;
}

static void receive(int fd)
{
	union control control[3] = {0};
	struct pollfd there = {fd, POLLIN, 0};
	char bytes[3];
	struct iovec room[3];
	struct mmsghdr m[3] = {0};
	int files[FILES];

	for (int i = 0; i < 3; i++) {
		room[i] = (struct iovec){&bytes[i], 1};
		m[i].msg_hdr.msg_iov = &room[i];
		m[i].msg_hdr.msg_iovlen = 1;
		m[i].msg_hdr.msg_control = &control[i];
		m[i].msg_hdr.msg_controllen = sizeof(control[i]);
	}
	/* The call itself begins when tracing has begun, too. */
	check(poll(&there, 1, -1) == 1, "poll");
	check(recvmsg(fd, &m[0].msg_hdr, MSG_CMSG_CLOEXEC) == 1, "recvmsg");
	check(recvmmsg(fd, &m[1], 2, 0, NULL) == 2, "recvmmsg");
	check(take(&m[0].msg_hdr, files) == FIRST && take(&m[1].msg_hdr, files + FIRST) == 1,
	      "descriptors");
	for (int i = 0; i < FILES; i++) {
		if (!received[i])
			received[i] = files[i];
		close(files[i]);
	}
}

static int connected(int listener, const struct sockaddr_un *name, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char byte;

	if (listener >= 0)
		return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(!connect(fd, (const struct sockaddr *)name, size), "connect");
	for (uint64_t i = 0; i < rounds; i++) {
		receive(fd);
		check(send(fd, "x", 1, 0) == 1, "send");
	}
	(void)!read(fd, &byte, 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"rounds", WL_NUM, &rounds, "N", "how often"},
		{0},
	};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const char *names[FILES];
	char path[64], pipe_name[64], byte;
	int files[FILES], listener, fd, pipes[2];
	struct stat status;
	socklen_t size;

	wl_start(argc, argv, "passing", "Passes descriptors over a Unix socket.", opts);
	snprintf(path, sizeof(path), "/tmp/passing-%d", getpid());
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
					    "passing-%d", getpid()));
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	received = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(received != MAP_FAILED, "mmap");
	files[0] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	files[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check(files[0] >= 0 && !pipe(pipes) && !fstat(pipes[0], &status), path);
	files[2] = pipes[0];
	files[3] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(pipe_name, sizeof(pipe_name), "pipe:[%lu]", (unsigned long)status.st_ino);
	names[0] = path;
	names[1] = "/dev/null";
	names[2] = pipe_name;
	names[3] = "/";
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	check(!bind(listener, (struct sockaddr *)&name, size) && !listen(listener, 1), "listen");
	child = wl_fork();
	if (!child)
		connected(-1, &name, size);
	fd = connected(listener, &name, size);
	check(fd >= 0 && !fstat(fd, &status), "accept");

	wl_ready_begin();
	wl_i64("child", child);
	wl_i64("socket", fd);
	wl_u64("socket_inode", status.st_ino);
	wl_ready_end();

	for (uint64_t i = 0; i < rounds; i++) {
		pass(fd, files);
		check(recv(fd, &byte, 1, 0) == 1, "the child");
	}
	close(fd);
	wl_reap(child);
	wl_line_begin();
	wl_open("files", '[');
	for (int i = 0; i < FILES; i++) {
		wl_open(NULL, '{');
		wl_str("name", names[i]);
		wl_i64("sent", files[i]);
		wl_i64("received", received[i]);
		wl_close('}');
	}
	wl_close(']');
	wl_u64("sent", rounds * FILES);
	wl_finish();
	return WL_OK;
}
