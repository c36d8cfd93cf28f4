/* Sockets: the kernel has none. */
#include "kernel.h"
#include <sys/syscall.h>

long __wardian_socket_calls(long number, long a, long b, long c, long d, long e, long f)
{
	struct wasi_fdstat stat;
	switch (number) {
	case SYS_socket: case SYS_socketpair:
		return -EAFNOSUPPORT;
	case SYS_bind: case SYS_listen: case SYS_accept: case SYS_accept4: case SYS_connect: case SYS_getsockname:
	case SYS_getpeername: case SYS_sendto: case SYS_recvfrom: case SYS_setsockopt: case SYS_getsockopt: case SYS_shutdown:
	case SYS_sendmsg: case SYS_recvmsg: case SYS_sendmmsg: case SYS_recvmmsg_time64:
		return wasi_fd_fdstat_get(a, &stat) ? -EBADF : -ENOTSOCK;
	}
	return -ENOSYS;
}
