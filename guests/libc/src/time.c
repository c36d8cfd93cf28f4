/* Clocks, sleeping, and waiting for a lock that another thread would open. */
#include "kernel.h"
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <wardian.h>

uint64_t __wardian_now(int clock)
{
	uint64_t nanos = 0;
	wasi_clock_time_get(clock, 1, &nanos);
	return nanos;
}

static int wasi_clock(int clock)
{
	switch (clock) {
	case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: case CLOCK_TAI:
		return CLOCK_WASI_REALTIME;
	case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_RAW: case CLOCK_MONOTONIC_COARSE: case CLOCK_BOOTTIME:
		return CLOCK_WASI_MONOTONIC;
	case CLOCK_PROCESS_CPUTIME_ID:
		return CLOCK_WASI_PROCESS;
	case CLOCK_THREAD_CPUTIME_ID:
		return CLOCK_WASI_THREAD;
	}
	return -1;
}

static long get_time(int clock, struct timespec *out)
{
	int id = wasi_clock(clock);
	if (id < 0) return -EINVAL;
	uint64_t nanos = 0;
	int error = wasi_clock_time_get(id, 1, &nanos);
	if (error) return answer(error);
	*out = (struct timespec){ nanos / NANOS, nanos % NANOS };
	return 0;
}

long __wardian_sleep_until(uint64_t moment)
{
	struct wasi_subscription wanted = { .tag = TAG_CLOCK };
	wanted.u.clock.id = CLOCK_WASI_MONOTONIC;
	wanted.u.clock.timeout = moment == FOR_EVER ? INT64_MAX : moment;
	wanted.u.clock.flags = 1;
	for (;;) {
		struct wasi_event event;
		size_t happened;
		int error = wasi_poll_oneoff(&wanted, &event, 1, &happened);
		if (!error) return 0;
		long result = answer(error);
		/* A blocked signal interrupts nothing. */
		if (result != -EINTR || wardian_signals()) return result;
	}
}

static int is_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < NANOS;
}

/* A moment of the monotonic clock, this long from now. */
static uint64_t moment_after(const struct timespec *left)
{
	if (left->tv_sec > 1000000000) return FOR_EVER;
	return __wardian_now(CLOCK_WASI_MONOTONIC) + left->tv_sec * NANOS + left->tv_nsec;
}

static long sleep_for(int clock, int flags, const struct timespec *want, struct timespec *left)
{
	int id = wasi_clock(clock), absolute = flags & TIMER_ABSTIME;
	if (id != CLOCK_WASI_REALTIME && id != CLOCK_WASI_MONOTONIC) return -EINVAL;
	if (!is_valid(want)) return -EINVAL;
	struct timespec relative = *want;
	if (absolute) {
		int64_t nanos = want->tv_sec > 4000000000ll ? INT64_MAX : want->tv_sec * NANOS + want->tv_nsec;
		int64_t rest = nanos - (int64_t)__wardian_now(id);
		if (rest <= 0) return 0;
		relative = (struct timespec){ rest / NANOS, rest % NANOS };
	}
	uint64_t moment = moment_after(&relative);
	long result = __wardian_sleep_until(moment);
	if (result == -EINTR && left && !absolute) {
		uint64_t now = __wardian_now(CLOCK_WASI_MONOTONIC), rest = moment > now ? moment - now : 0;
		*left = (struct timespec){ rest / NANOS, rest % NANOS };
	}
	return result;
}

/* With one thread nobody else can change the word: what waits for it waits for its time, or for a signal. */
static long futex(volatile int *word, int operation, int value, const struct timespec *timeout)
{
	switch (operation & 127) {
	case 0: case 9: {
		if (*word != value) return -EAGAIN;
		uint64_t moment = FOR_EVER;
		if (timeout) {
			if (!is_valid(timeout)) return -EINVAL;
			moment = moment_after(timeout);
		}
		long result = __wardian_sleep_until(moment);
		return result ? result : -ETIMEDOUT;
	}
	case 1: case 10:
		return 0;
	}
	return -ENOSYS;
}

static struct timeval timeval_of(int64_t nanos)
{
	return (struct timeval){ nanos / NANOS, nanos % NANOS / 1000 };
}

/* musl wants the kernel's old layout: the times as longs. */
static long usage(int who, long *out)
{
	int64_t times[4];
	if (who < RUSAGE_CHILDREN || who > 1) return -EINVAL;
	int error = k_times(times), first = who == RUSAGE_CHILDREN ? 2 : 0;
	if (error) return answer(error);
	memset(out, 0, 18 * sizeof *out);
	for (int i = 0; i < 2; i++) {
		struct timeval time = timeval_of(times[first + i]);
		out[2 * i] = time.tv_sec, out[2 * i + 1] = time.tv_usec;
	}
	if (who != RUSAGE_CHILDREN) out[4] = __builtin_wasm_memory_size(0) * 64;
	return 0;
}

static long process_times(struct tms *out)
{
	const int64_t tick = NANOS / 100;
	int64_t times[4];
	int error = k_times(times);
	if (error) return answer(error);
	if (out) *out = (struct tms){ times[0] / tick, times[1] / tick, times[2] / tick, times[3] / tick };
	return (long)(__wardian_now(CLOCK_WASI_MONOTONIC) / tick & LONG_MAX);
}

long __wardian_time_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_clock_gettime64:
		return get_time(a, (struct timespec *)b);
	case SYS_clock_getres_time64:
		if (wasi_clock(a) < 0) return -EINVAL;
		if (b) *(struct timespec *)b = (struct timespec){ 0, 1 };
		return 0;
	case SYS_clock_settime64:
		return -EPERM;
	case SYS_clock_nanosleep_time64:
		return sleep_for(a, b, (const struct timespec *)c, (struct timespec *)d);
	case SYS_futex_time64:
		return futex((volatile int *)a, b, c, (const struct timespec *)d);
	case SYS_getrusage:
		return usage(a, (long *)b);
	case SYS_times:
		return process_times((struct tms *)a);
	case SYS_sched_yield:
		return 0;
	}
	return -ENOSYS;
}
