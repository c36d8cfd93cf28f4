/* Processes: starting, waiting, identity, limits. */
#include "kernel.h"
#include "fdop.h"
#undef malloc
#undef calloc
#undef realloc
#undef free
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wardian.h>

/* Strings one after the other, each with its NUL. */
static char *block(char *const list[], uint32_t *len)
{
	size_t bytes = 0;
	for (char *const *at = list; at && *at; at++) bytes += strlen(*at) + 1;
	char *text = malloc(bytes + 1), *to = text;
	for (char *const *at = list; text && at && *at; at++) to = stpcpy(to, *at) + 1;
	*len = bytes;
	return text;
}

/* Starts a program, or without a place for its id becomes it. */
static int start(pid_t *pid, const char *path, char *const argv[], char *const envp[], const char *cwd,
	const struct wardian_fd *map, unsigned count, int group)
{
	uint32_t argv_len, env_len;
	char *arguments = block(argv, &argv_len), *env = block(envp, &env_len);
	int error = ENOMEM;
	if (arguments && env) {
		uint32_t request[11] = {
			(uint32_t)path, strlen(path), (uint32_t)arguments, argv_len, (uint32_t)env, env_len,
			(uint32_t)cwd, cwd ? strlen(cwd) : 0, (uint32_t)map, count, group,
		};
		error = -answer(pid ? k_spawn(request, pid) : k_exec(request));
	}
	free(arguments);
	free(env);
	return error;
}

int wardian_spawn(pid_t *pid, const char *path, char *const argv[], char *const envp[], const char *cwd,
	const struct wardian_fd *map, unsigned count, int group)
{
	return start(pid, path, argv, envp, cwd, map, count, group);
}

__attribute__((export_name("__wardian_fork_entry"))) int __wardian_fork_entry(int (*entry)(void *), void *data)
{
	__wardian_forked();
	exit(entry(data));
}

pid_t wardian_fork(int (*entry)(void *), void *data)
{
	int pid, error = k_fork(entry, data, &pid);
	if (!error) return pid;
	errno = __wardian_errno(error);
	return -1;
}

/* A copy that returns from the same call cannot be made. */
pid_t fork(void)
{
	errno = ENOSYS;
	return -1;
}
pid_t _Fork(void) __attribute__((alias("fork")));
pid_t vfork(void) __attribute__((alias("fork")));

/* What posix_spawn's file actions come to, as the map that the kernel takes. */
struct plan {
	struct wardian_fd map[64];
	unsigned count;
	/* Files opened here for the child. */
	int opened[64], opens;
	const char *cwd;
};

static int source(const struct plan *plan, int fd)
{
	for (unsigned i = 0; i < plan->count; i++) if (plan->map[i].to == (unsigned)fd) return plan->map[i].from;
	return fd;
}

static int assign(struct plan *plan, int to, int from)
{
	unsigned i = 0;
	while (i < plan->count && plan->map[i].to != (unsigned)to) i++;
	if (i == sizeof plan->map / sizeof *plan->map) return EMFILE;
	plan->map[i] = (struct wardian_fd){ to, from };
	if (i == plan->count) plan->count++;
	return 0;
}

static int add(struct plan *plan, const struct fdop *op)
{
	switch (op->cmd) {
	case FDOP_CLOSE:
		return assign(plan, op->fd, -1);
	case FDOP_DUP2:
		return assign(plan, op->fd, source(plan, op->srcfd));
	case FDOP_OPEN: {
		if (plan->cwd && *op->path != '/') return ENOSYS;
		int fd = open(op->path, op->oflag | O_CLOEXEC, op->mode);
		if (fd < 0) return errno;
		plan->opened[plan->opens++] = fd;
		return assign(plan, op->fd, fd);
	}
	case FDOP_CHDIR:
		plan->cwd = op->path;
		return 0;
	}
	return ENOSYS;
}

/* Signals that the child is to find at their default: the kernel hands on those that are ignored here. */
static void restore_defaults(const sigset_t *wanted, struct sigaction *kept)
{
	for (int signal = 1; signal < 32; signal++) {
		if (!sigismember(wanted, signal) || sigaction(signal, 0, &kept[signal]) || kept[signal].sa_handler != SIG_IGN) {
			kept[signal].sa_handler = SIG_ERR;
			continue;
		}
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, 0);
	}
}

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const envp[restrict])
{
	struct plan plan = { .count = 0 };
	struct sigaction kept[32];
	int flags = attributes ? attributes->__flags : 0, error = 0, group = -1;
	pid_t unused;
	/* A process starts with no signal blocked. */
	if (flags & POSIX_SPAWN_SETSIGMASK)
		for (int signal = 1; signal < 32; signal++) if (sigismember(&attributes->__mask, signal) == 1) return ENOTSUP;
	if (flags & POSIX_SPAWN_SETSID) group = -3;
	if (flags & POSIX_SPAWN_SETPGROUP) group = attributes->__pgrp;
	/* They are linked last to first. */
	struct fdop *op = actions ? actions->__actions : 0;
	while (op && op->next) op = op->next;
	for (; op && !error; op = op->prev) error = plan.opens < 64 ? add(&plan, op) : EMFILE;
	if (flags & POSIX_SPAWN_SETSIGDEF) restore_defaults(&attributes->__def, kept);
	if (!error) error = start(pid ? pid : &unused, path, argv, envp, plan.cwd, plan.map, plan.count, group);
	if (flags & POSIX_SPAWN_SETSIGDEF)
		for (int signal = 1; signal < 32; signal++) if (kept[signal].sa_handler != SIG_ERR) sigaction(signal, &kept[signal], 0);
	while (plan.opens) close(plan.opened[--plan.opens]);
	return error;
}

/* As execvp looks for a program. */
int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const envp[restrict])
{
	if (strchr(file, '/')) return posix_spawn(pid, file, actions, attributes, argv, envp);
	const char *path = getenv("PATH");
	int error = ENOENT;
	for (const char *at = path ? path : "/usr/local/bin:/bin:/usr/bin";; at++) {
		size_t len = strcspn(at, ":");
		char full[PATH_MAX];
		if (len + strlen(file) + 2 <= sizeof full) {
			memcpy(full, at, len);
			full[len] = '/';
			strcpy(full + len + !!len, file);
			int this = posix_spawn(pid, full, actions, attributes, argv, envp);
			if (this != ENOENT && this != ENOTDIR && this != EACCES) return this;
			if (this == EACCES) error = EACCES;
		}
		at += len;
		if (!*at) return error;
	}
}

static long wait_for(int pid, int *status, int flags, struct rusage *usage)
{
	int word = 0, ended = 0;
	if (flags & ~(WNOHANG | WUNTRACED | WCONTINUED)) return -EINVAL;
	int error = k_wait(pid, flags & (WNOHANG | WUNTRACED), &word, &ended);
	if (error) return answer(error);
	if (status && ended) *status = word;
	if (usage) memset(usage, 0, sizeof *usage);
	return ended;
}

/* waitid, for those who ask so: a child that stays to be waited for (WNOWAIT) the kernel does not know. */
static long wait_info(int type, int id, siginfo_t *info, int options)
{
	int status = 0;
	if (options & WNOWAIT || !(options & (WEXITED | WSTOPPED))) return -EINVAL;
	int pid = type == P_ALL ? -1 : type == P_PID ? id : type == P_PGID ? -id : 0;
	if (!pid) return -EINVAL;
	long ended = wait_for(pid, &status, (options & WNOHANG ? WNOHANG : 0) | (options & WSTOPPED ? WUNTRACED : 0), 0);
	if (ended < 0) return ended;
	if (info) {
		memset(info, 0, sizeof *info);
		if (ended) {
			info->si_signo = SIGCHLD, info->si_pid = ended, info->si_uid = USER;
			info->si_code = WIFEXITED(status) ? CLD_EXITED : WIFSTOPPED(status) ? CLD_STOPPED : CLD_KILLED;
			info->si_status = WIFEXITED(status) ? WEXITSTATUS(status) : WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status);
		}
	}
	return 0;
}

/* The limits that the kernel has; the others are none. */
static long limit(int pid, int which, const struct rlimit *new, struct rlimit *old)
{
	int64_t pair[2] = { -1, -1 };
	int known = which == RLIMIT_FSIZE || which == RLIMIT_NPROC || which == RLIMIT_NOFILE || which == RLIMIT_AS;
	if (which < 0 || which >= RLIM_NLIMITS) return -EINVAL;
	if (pid && pid != k_getpid()) return -EPERM;
	if (known) {
		int error = k_getrlimit(which, pair);
		if (error) return answer(error);
	}
	if (old) *old = (struct rlimit){ pair[0], pair[1] };
	if (!new) return 0;
	if (new->rlim_cur > new->rlim_max) return -EINVAL;
	if (known) return answer(k_setrlimit(which, (int64_t[]){ new->rlim_cur, new->rlim_max }));
	return (int64_t)new->rlim_cur == pair[0] && (int64_t)new->rlim_max == pair[1] ? 0 : -EPERM;
}

static long name(struct utsname *out)
{
	memset(out, 0, sizeof *out);
	strcpy(out->sysname, "Linux");
	strcpy(out->nodename, "wardian");
	strcpy(out->release, "6.0.0-wardian");
	strcpy(out->version, "#" WARDIAN_VERSION);
	strcpy(out->machine, "x86_64");
	return 0;
}

static long information(struct sysinfo *out)
{
	int64_t pair[2] = { -1, -1 };
	k_getrlimit(RLIMIT_AS, pair);
	memset(out, 0, sizeof *out);
	out->uptime = __wardian_now(CLOCK_WASI_MONOTONIC) / NANOS;
	out->totalram = out->freeram = pair[0] > 0 && pair[0] < INT32_MAX ? pair[0] : INT32_MAX;
	out->mem_unit = 1;
	out->procs = 1;
	return 0;
}

/* How nice this process says it is. Nothing depends on it, and a process can only become nicer. */
static int niceness;

static int is_own(long which, long who)
{
	return which != PRIO_PROCESS || !who || who == k_getpid();
}

static long get_priority(long which, long who)
{
	int group, error = 0;
	if (which < PRIO_PROCESS || which > PRIO_USER) return -EINVAL;
	if (is_own(which, who)) return 20 - niceness;
	error = k_getpgid(who, &group);
	return error ? answer(error) : 20;
}

static long set_priority(long which, long who, long wanted)
{
	int group, error;
	if (which < PRIO_PROCESS || which > PRIO_USER) return -EINVAL;
	if (!is_own(which, who)) return (error = k_getpgid(who, &group)) ? answer(error) : -EPERM;
	if (wanted > 19) wanted = 19;
	if (wanted < niceness) return -EACCES;
	niceness = wanted;
	return 0;
}

/* Those that ask who it is. The user of a sandbox cannot become another. */
static long identity(long number, long a, long b, long c)
{
	int group, error;
	switch (number) {
	case SYS_getpid: case SYS_gettid: case SYS_set_tid_address:
		return k_getpid();
	case SYS_getppid:
		return k_getppid();
	case SYS_getuid: case SYS_geteuid: case SYS_getgid: case SYS_getegid:
		return USER;
	case SYS_getresuid: case SYS_getresgid:
		*(int *)a = *(int *)b = *(int *)c = USER;
		return 0;
	case SYS_setuid: case SYS_setgid:
		return a == USER ? 0 : -EPERM;
	case SYS_setresuid: case SYS_setresgid:
		return (a == USER || a == -1) && (b == USER || b == -1) && (c == USER || c == -1) ? 0 : -EPERM;
	case SYS_setreuid: case SYS_setregid:
		return (a == USER || a == -1) && (b == USER || b == -1) ? 0 : -EPERM;
	case SYS_getgroups:
		if (a < 0) return -EINVAL;
		if (a) *(gid_t *)b = USER;
		return 1;
	case SYS_setgroups:
		return -EPERM;
	case SYS_getpgid:
		error = k_getpgid(a, &group);
		return error ? answer(error) : group;
	case SYS_setpgid:
		return answer(k_setpgid(a, b));
	case SYS_getsid:
		error = k_getsid(a, &group);
		return error ? answer(error) : group;
	case SYS_setsid:
		error = k_setsid();
		return error ? answer(error) : k_getpid();
	}
	return -ENOSYS;
}

long __wardian_process_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_exit: case SYS_exit_group:
		__wardian_write_mappings();
		wasi_proc_exit(a & 0xff);
	case SYS_execve:
		__wardian_write_mappings();
		return -start(0, (const char *)a, (char *const *)b, (char *const *)c, 0, 0, 0, -1);
	case SYS_wait4:
		return wait_for(a, (int *)b, c, (struct rusage *)d);
	case SYS_waitid:
		return wait_info(a, b, (siginfo_t *)c, d);
	case SYS_prlimit64:
		return limit(a, b, (const struct rlimit *)c, (struct rlimit *)d);
	case SYS_uname:
		return name((struct utsname *)a);
	case SYS_sysinfo:
		return information((struct sysinfo *)a);
	case SYS_sched_getaffinity:
		/* A process has one thread, and so one processor. */
		if ((size_t)b < sizeof(long)) return -EINVAL;
		*(unsigned long *)c = 1;
		return sizeof(long);
	case SYS_sched_setaffinity:
		if ((size_t)b < 1) return -EINVAL;
		return *(unsigned char *)c & 1 ? 0 : -EINVAL;
	case SYS_getpriority:
		return get_priority(a, b);
	case SYS_setpriority:
		return set_priority(a, b, c);
	case SYS_sched_get_priority_max: case SYS_sched_get_priority_min:
		if (a == SCHED_FIFO || a == SCHED_RR) return number == SYS_sched_get_priority_max ? 99 : 1;
		return a == SCHED_OTHER || a == SCHED_BATCH || a == SCHED_IDLE ? 0 : -EINVAL;
	case SYS_getrandom: {
		int error = wasi_random_get((void *)a, b);
		return error ? answer(error) : b;
	}
	}
	return identity(number, a, b, c);
}
