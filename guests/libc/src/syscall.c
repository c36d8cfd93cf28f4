/* The system calls of Linux, as musl makes them, over the kernel's. Each file beside this one knows a group of them. */
#include "kernel.h"
#include <sys/syscall.h>
#include <wardian.h>

static syscalls *const groups[] = {
	__wardian_fd_calls, __wardian_memory_calls, __wardian_file_calls,
	__wardian_time_calls, __wardian_signal_calls, __wardian_process_calls, __wardian_socket_calls,
};

static int repeatable(long number)
{
	switch (number) {
	case SYS_ppoll_time64: case SYS_pselect6_time64: case SYS_clock_nanosleep_time64: case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait_time64: case SYS_futex_time64:
		return 0;
	}
	return 1;
}

long __wardian_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	for (;;) {
		long result = -ENOSYS;
		for (size_t i = 0; i < sizeof groups / sizeof *groups && result == -ENOSYS; i++)
			result = groups[i](number, a, b, c, d, e, f);
		if (result != -EINTR) {
			if (wardian_signalled) wardian_signals();
			return result;
		}
		/* A signal whose handler asks for it (SA_RESTART), or that is blocked, interrupts nothing. */
		if (wardian_signals() & WARDIAN_INTERRUPTED || !repeatable(number)) return result;
	}
}
