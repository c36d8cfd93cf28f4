/* Signals. WebAssembly code cannot be interrupted, so a handler is called between two steps of the program.

   The kernel keeps a signal that is "flagged" until it is asked for. Here a signal is flagged while it has a handler or is
   blocked; wardian_signals asks for those that came, and does what is to be done: calls the handler, or lets a signal that
   was blocked have its default effect. It is called after every system call and by programs that compute for long, which
   look at the word that the kernel sets (CPython does so in its evaluation loop). */
#include "kernel.h"
#include "ksigaction.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <wardian.h>

#define SIGNALS 32
enum { DEFAULT, IGNORED, FLAGGED };

volatile unsigned wardian_signalled;
static struct k_sigaction actions[SIGNALS];
static uint64_t mask, arrived;
/* The period of ITIMER_REAL: the kernel's alarm goes off once. */
static int64_t period;

static uint64_t bit(int signal)
{
	return 1ull << signal;
}

static int is_handler(void (*handler)(int))
{
	return handler != SIG_DFL && handler != SIG_IGN;
}

/* Signals that do nothing by default need not be flagged to be held back. */
static int is_harmless(int signal)
{
	return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

/* Tells the kernel what it should do with a signal as things are. */
static int apply(int signal)
{
	void (*handler)(int) = actions[signal].handler;
	int blocked = mask & bit(signal) && !(handler == SIG_DFL && is_harmless(signal)), old;
	int to = handler == SIG_IGN ? IGNORED : is_handler(handler) || blocked ? FLAGGED : DEFAULT;
	return k_sigaction(signal, to, &old);
}

void __wardian_init_signals(void)
{
	for (int signal = 1; signal < SIGNALS; signal++) {
		int old = DEFAULT;
		/* What the parent ignored stays ignored. */
		if (!k_sigaction(signal, -1, &old) && old == IGNORED) actions[signal].handler = SIG_IGN;
	}
	k_sigword(&wardian_signalled);
}

/* Calls a handler, with what it wants blocked meanwhile. */
static int call_handler(int signal)
{
	struct k_sigaction action = actions[signal];
	uint64_t wanted;
	memcpy(&wanted, &action.mask, sizeof wanted);
	uint64_t before = __wardian_set_mask(mask | wanted << 1 | (action.flags & SA_NODEFER ? 0 : bit(signal)));
	if (action.flags & SA_RESETHAND) actions[signal].handler = SIG_DFL, apply(signal);
	if (action.flags & SA_SIGINFO) {
		siginfo_t info = { .si_signo = signal };
		ucontext_t context = { 0 };
		((void (*)(int, siginfo_t *, void *))action.handler)(signal, &info, &context);
	} else {
		action.handler(signal);
	}
	__wardian_set_mask(before);
	return WARDIAN_HANDLED | (action.flags & SA_RESTART ? 0 : WARDIAN_INTERRUPTED);
}

int wardian_signals(void)
{
	uint64_t new = 0;
	int done = 0;
	wardian_signalled = 0;
	if (!k_sigpending(&new)) arrived |= new;
	for (int signal = 1; signal < SIGNALS && arrived & ~mask; signal++) {
		if (!(arrived & ~mask & bit(signal))) continue;
		arrived &= ~bit(signal);
		if (signal == SIGALRM && period) k_alarm(period, &(int64_t){ 0 });
		if (is_handler(actions[signal].handler)) done |= call_handler(signal);
		/* It was blocked and is no longer: now it has its default effect. */
		else if (actions[signal].handler == SIG_DFL) k_kill(k_getpid(), signal);
	}
	return done;
}

uint64_t __wardian_set_mask(uint64_t new)
{
	uint64_t old = mask;
	mask = new & ~(bit(SIGKILL) | bit(SIGSTOP) | 1);
	for (int signal = 1; signal < SIGNALS; signal++)
		if ((old ^ mask) & bit(signal) && !is_handler(actions[signal].handler)) apply(signal);
	if (arrived & ~mask) wardian_signals();
	return old;
}

static long set_action(int signal, const struct k_sigaction *new, struct k_sigaction *old)
{
	if (signal < 1 || signal > 64) return -EINVAL;
	/* Real-time signals exist in name only: nobody can send one. */
	if (signal >= SIGNALS) {
		if (old) *old = (struct k_sigaction){ 0 };
		return new && is_handler(new->handler) ? -EINVAL : 0;
	}
	if (old) *old = actions[signal];
	if (!new) return 0;
	if (signal == SIGKILL || signal == SIGSTOP) return -EINVAL;
	struct k_sigaction before = actions[signal];
	actions[signal] = *new;
	if (!is_handler(new->handler) && new->handler == SIG_IGN) arrived &= ~bit(signal);
	int error = apply(signal);
	if (error) actions[signal] = before;
	return answer(error);
}

/* Linux's masks begin with signal 1 at bit 0. */
static long change_mask(int how, const uint64_t *set, uint64_t *old)
{
	uint64_t now = mask >> 1;
	if (set) {
		switch (how) {
		case SIG_BLOCK: __wardian_set_mask(mask | *set << 1); break;
		case SIG_UNBLOCK: __wardian_set_mask(mask & ~(*set << 1)); break;
		case SIG_SETMASK: __wardian_set_mask(*set << 1); break;
		default: return -EINVAL;
		}
	}
	if (old) *old = now;
	return 0;
}

static long wait_for_handler(uint64_t meanwhile)
{
	uint64_t old = __wardian_set_mask(meanwhile);
	long result = __wardian_sleep_until(FOR_EVER);
	__wardian_set_mask(old);
	return result;
}

static void collect(void)
{
	uint64_t new = 0;
	if (!k_sigpending(&new)) arrived |= new;
}

static long wait_for_signal(uint64_t wanted, siginfo_t *info, const struct timespec *timeout)
{
	uint64_t moment = FOR_EVER;
	if (timeout) moment = __wardian_now(CLOCK_WASI_MONOTONIC) + timeout->tv_sec * NANOS + timeout->tv_nsec;
	/* While somebody waits for it, a signal that has no handler is kept too. */
	uint64_t old = __wardian_set_mask(mask | wanted);
	long result;
	for (;;) {
		collect();
		if (arrived & wanted) {
			result = __builtin_ctzll(arrived & wanted);
			arrived &= ~bit(result);
			if (info) memset(info, 0, sizeof *info), info->si_signo = result;
			break;
		}
		struct wasi_subscription sleep = { .tag = TAG_CLOCK };
		sleep.u.clock.id = CLOCK_WASI_MONOTONIC, sleep.u.clock.flags = 1;
		sleep.u.clock.timeout = moment == FOR_EVER ? INT64_MAX : moment;
		struct wasi_event event;
		size_t happened;
		if (!wasi_poll_oneoff(&sleep, &event, 1, &happened)) {
			result = -EAGAIN;
			break;
		}
		collect();
		if (arrived & ~mask) {
			result = -EINTR;
			break;
		}
	}
	__wardian_set_mask(old);
	return result;
}

/* musl gives the times as four longs: period, then time left, each seconds and microseconds. */
static long set_timer(int which, const long *new, long *old)
{
	if (which != ITIMER_REAL) return which == ITIMER_VIRTUAL || which == ITIMER_PROF ? -EOPNOTSUPP : -EINVAL;
	int64_t left = 0, before = period;
	if (new) {
		for (int i = 0; i < 4; i++) if (new[i] < 0 || (i & 1 && new[i] > 999999)) return -EINVAL;
		int64_t first = new[2] * NANOS + new[3] * 1000ll;
		period = first ? new[0] * NANOS + new[1] * 1000ll : 0;
		int error = k_alarm(first, &left);
		if (error) return answer(error);
	} else {
		/* The kernel says how much was left only to who sets it anew. */
		k_alarm(0, &left);
		k_alarm(left, &(int64_t){ 0 });
	}
	if (old) {
		int64_t times[2] = { before, left };
		for (int i = 0; i < 2; i++) old[2 * i] = times[i] / NANOS, old[2 * i + 1] = times[i] % NANOS / 1000;
	}
	return 0;
}

static long send(int pid, int signal)
{
	long result = answer(k_kill(pid, signal));
	/* One sent to oneself is there when the call returns. */
	wardian_signalled = 1;
	return result;
}

long __wardian_signal_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_rt_sigaction:
		return set_action(a, (const struct k_sigaction *)b, (struct k_sigaction *)c);
	case SYS_rt_sigprocmask:
		return change_mask(a, (const uint64_t *)b, (uint64_t *)c);
	case SYS_rt_sigpending:
		collect();
		*(uint64_t *)a = (arrived & mask) >> 1;
		return 0;
	case SYS_rt_sigsuspend:
		return wait_for_handler(*(const uint64_t *)a << 1);
	case SYS_rt_sigtimedwait_time64:
		return wait_for_signal(*(const uint64_t *)a << 1, (siginfo_t *)b, (const struct timespec *)c);
	case SYS_kill:
		return send(a, b);
	case SYS_tkill:
		return a == k_getpid() ? send(a, b) : -ESRCH;
	case SYS_tgkill:
		return b == k_getpid() ? send(b, c) : -ESRCH;
	case SYS_setitimer:
		return set_timer(a, (const long *)b, (long *)c);
	case SYS_getitimer:
		return set_timer(a, 0, (long *)b);
	case SYS_sigaltstack:
		/* Handlers run on the program's own stack. */
		if (b) *(stack_t *)b = (stack_t){ .ss_flags = SS_DISABLE };
		return 0;
	}
	return -ENOSYS;
}
