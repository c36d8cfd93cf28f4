/* What a C program can ask of Wardian's kernel beyond what Linux has a name for. */
#ifndef _WARDIAN_H
#define _WARDIAN_H

#include <sys/types.h>

/* fork cannot return twice in WebAssembly. Here the child, a copy of this process, calls entry(data) and exits with its
   answer; the parent gets the child's id, or -1 and errno. */
pid_t wardian_fork(int (*entry)(void *), void *data);

/* One descriptor of a new process: what is `to` there is `from` here; -1 closes it. */
struct wardian_fd {
	unsigned to;
	int from;
};

/* Starts a program. cwd may be null; group: -1 this process's, 0 a new one, else that one. Answers 0 or an errno. */
int wardian_spawn(pid_t *pid, const char *path, char *const argv[], char *const envp[], const char *cwd,
	const struct wardian_fd *map, unsigned count, int group);

/* Not 0 when a signal waits for its handler. The kernel sets it, also while the program computes. */
extern volatile unsigned wardian_signalled;

/* Runs the handlers of the signals that have arrived, and answers whether one ran, and whether one ran that was set without
   SA_RESTART. Waiting for time or for several descriptors ends with the first, other calls with the second. */
enum { WARDIAN_HANDLED = 1, WARDIAN_INTERRUPTED = 2 };
int wardian_signals(void);

#endif
