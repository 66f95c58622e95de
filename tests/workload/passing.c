/* Passes descriptors of known files to a child, over a Unix socket, and prints which ones. */
#include "workload.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FIRST 3 /* by sendmsg(), then one by sendmmsg(), with other control data */
#define FILES (FIRST + 1)

WL_NUMBER("rounds", rounds, 1, "how often");
static int *received; /* by the child, in the first round */

union control {
	char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FILES * sizeof(int))];
	struct cmsghdr align;
};

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

	message.msg_controllen = put(&control.align, SCM_RIGHTS, files, FIRST * sizeof(int));
	check(sendmsg(fd, &message, 0) == 1, "sendmsg");
	size_t size = put(&control.align, SCM_CREDENTIALS, &own, sizeof(own));
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
	struct mmsghdr m[3];
	int files[FILES];

	for (int i = 0; i < 3; i++) {
		room[i] = (struct iovec){&bytes[i], 1};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &room[i],
					       .msg_iovlen = 1,
					       .msg_control = &control[i],
					       .msg_controllen = sizeof(control[i])};
	}
	/* The call itself must start after tracing has started, too. */
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

static void child_main(int fd)
{
	char byte;

	for (uint64_t i = 0; i < rounds; i++) {
		receive(fd);
		check(send(fd, "x", 1, 0) == 1, "send");
	}
	(void)!read(fd, &byte, 1);
	_exit(0);
}

static int workload(void)
{
	const char *names[FILES] = {NULL, "/dev/null", NULL, "/"};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int files[FILES], pipes[2];
	struct stat status;
	char byte;
	const char *path = strdup(wl_format("/tmp/passing-%d", getpid()));
	received = wl_shared(4096);
	must(pipe(pipes), "pipe");
	must(fstat(pipes[0], &status), "pipe");
	names[0] = path;
	names[2] = strdup(wl_format("pipe:[%lu]", status.st_ino));
	files[0] = wl_new_file(path);
	files[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	files[2] = pipes[0];
	files[3] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* The peers' process ids are those of connect() and listen(). */
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				     (size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
						      "passing-%d", getpid()));
	int listener = must(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket");
	must(bind(listener, (struct sockaddr *)&name, size), "bind");
	must(listen(listener, 1), "listen");
	pid_t child = wl_fork();
	if (!child) {
		int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		must(connect(own, (struct sockaddr *)&name, size), "connect");
		child_main(own);
	}
	int fd = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC), "accept");
	must(fstat(fd, &status), "accept");

	wl_ready_with("child %d socket %d socket_inode %lu", child, fd, status.st_ino);

	for (uint64_t i = 0; i < rounds; i++) {
		pass(fd, files);
		check(recv(fd, &byte, 1, 0) == 1, "the child");
	}
	close(fd);
	wl_reap(child);
	wl_open("files", '[');
	for (int i = 0; i < FILES; i++)
		wl_object(NULL, "name %s sent %d received %d", names[i], files[i], received[i]);
	wl_close(']');
	return wl_result("sent %lu", rounds * FILES);
}
