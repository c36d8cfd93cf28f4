/* Sockets, over the kernel's (docs/abi.md). Addresses, flags and options are Linux's on both sides. */
#include "kernel.h"
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* What the kernel tells of a message. */
struct received {
	uint32_t bytes, address, rights, flags;
};

/* As many descriptors as one message may have. */
#define MOST_RIGHTS 253
#define KERNEL_FLAGS(type) (!!((type) & SOCK_CLOEXEC) | (!!((type) & SOCK_NONBLOCK) << 1))
#define KIND(type) ((type) & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))

static long new_socket(int family, int type, int protocol)
{
	int fd, error = k_socket(family, KIND(type), protocol, KERNEL_FLAGS(type), &fd);
	return error ? answer(error) : fd;
}

static long new_pair(int family, int type, int protocol, int *fds)
{
	return answer(k_socketpair(family, KIND(type), protocol, KERNEL_FLAGS(type), fds));
}

static long accepted(int fd, void *address, socklen_t *len, int flags)
{
	uint32_t need;
	int new, error = k_accept(fd, KERNEL_FLAGS(flags), &new, address, address ? *len : 0, &need);
	if (error) return answer(error);
	if (address) *len = need;
	return new;
}

static long name(int (*call)(int, void *, size_t, uint32_t *), int fd, void *address, socklen_t *len)
{
	uint32_t need;
	int error = call(fd, address, *len, &need);
	if (!error) *len = need;
	return answer(error);
}

static long send_to(int fd, const void *data, size_t count, int flags, const void *address, socklen_t len)
{
	struct wasi_part part = { (void *)data, count };
	size_t sent;
	int error = k_send(fd, &part, 1, flags, address, address ? len : 0, 0, 0, &sent);
	return error ? answer(error) : (long)sent;
}

static long receive_from(int fd, void *buffer, size_t count, int flags, void *address, socklen_t *len)
{
	struct wasi_part part = { buffer, count };
	struct received got;
	int error = k_recv(fd, &part, 1, flags, address, address && len ? *len : 0, 0, 0, (uint32_t *)&got);
	if (error) return answer(error);
	if (address && len) *len = got.address;
	return got.bytes;
}

static long send_message(int fd, const struct msghdr *message, int flags)
{
	int rights[MOST_RIGHTS];
	size_t count = 0, sent;
	if (message->msg_iovlen < 0 || message->msg_iovlen > IOV_MAX) return -EMSGSIZE;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR((struct msghdr *)message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) return -EINVAL;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (c->cmsg_len < CMSG_LEN(0) || n > MOST_RIGHTS - count) return -EINVAL;
		memcpy(rights + count, CMSG_DATA(c), n * sizeof(int));
		count += n;
	}
	int error = k_send(fd, (void *)message->msg_iov, message->msg_iovlen, flags, message->msg_name,
		message->msg_name ? message->msg_namelen : 0, rights, count, &sent);
	return error ? answer(error) : (long)sent;
}

/* Puts descriptors into a control buffer that has the room: more were not asked for. */
static void put_rights(struct msghdr *message, const int *rights, size_t count)
{
	struct cmsghdr *c = message->msg_control;
	if (!count) {
		message->msg_controllen = 0;
		return;
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), rights, count * sizeof(int));
	socklen_t used = CMSG_SPACE(count * sizeof(int));
	if (used < message->msg_controllen) message->msg_controllen = used;
}

static long receive_message(int fd, struct msghdr *message, int flags)
{
	int rights[MOST_RIGHTS];
	struct received got;
	size_t room = 0;
	if (message->msg_iovlen < 0 || message->msg_iovlen > IOV_MAX) return -EMSGSIZE;
	if (message->msg_control && message->msg_controllen > CMSG_LEN(0))
		room = (message->msg_controllen - CMSG_LEN(0)) / sizeof(int);
	if (room > MOST_RIGHTS) room = MOST_RIGHTS;
	int error = k_recv(fd, (void *)message->msg_iov, message->msg_iovlen, flags, message->msg_name,
		message->msg_name ? message->msg_namelen : 0, rights, room, (uint32_t *)&got);
	if (error) return answer(error);
	if (message->msg_name) message->msg_namelen = got.address;
	put_rights(message, rights, got.rights);
	message->msg_flags = got.flags | (flags & MSG_CMSG_CLOEXEC);
	return got.bytes;
}

static long send_messages(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	unsigned done = 0;
	for (; done < count && done < IOV_MAX; done++) {
		long sent = send_message(fd, &messages[done].msg_hdr, flags);
		if (sent < 0) return done ? (long)done : sent;
		messages[done].msg_len = sent;
	}
	return done;
}

static long option(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t need;
	int error = k_getsockopt(fd, level, name, value, *len, &need);
	if (!error) *len = need;
	return answer(error);
}

static long is_socket(int fd)
{
	struct wasi_fdstat stat;
	return wasi_fd_fdstat_get(fd, &stat) ? -EBADF : stat.kind == 6 ? 0 : -ENOTSOCK;
}

long __wardian_socket_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_socket:
		return new_socket(a, b, c);
	case SYS_socketpair:
		return new_pair(a, b, c, (int *)d);
	case SYS_bind:
		return answer(k_bind(a, (void *)b, c));
	case SYS_listen:
		return answer(k_listen(a, b));
	case SYS_accept:
		return accepted(a, (void *)b, (socklen_t *)c, 0);
	case SYS_accept4:
		return accepted(a, (void *)b, (socklen_t *)c, d);
	case SYS_connect:
		return answer(k_connect(a, (void *)b, c));
	case SYS_getsockname:
		return name(k_getsockname, a, (void *)b, (socklen_t *)c);
	case SYS_getpeername:
		return name(k_getpeername, a, (void *)b, (socklen_t *)c);
	case SYS_sendto:
		return send_to(a, (void *)b, c, d, (void *)e, f);
	case SYS_recvfrom:
		return receive_from(a, (void *)b, c, d, (void *)e, (socklen_t *)f);
	case SYS_sendmsg:
		return send_message(a, (void *)b, c);
	case SYS_recvmsg:
		return receive_message(a, (void *)b, c);
	case SYS_sendmmsg:
		return send_messages(a, (void *)b, c, d);
	case SYS_setsockopt:
		return answer(k_setsockopt(a, b, c, (void *)d, e));
	case SYS_getsockopt:
		return option(a, b, c, (void *)d, (socklen_t *)e);
	case SYS_shutdown:
		return answer(k_shutdown(a, b));
	case SYS_recvmmsg_time64: {
		long error = is_socket(a);
		return error ? error : -EOPNOTSUPP;
	}
	}
	return -ENOSYS;
}
