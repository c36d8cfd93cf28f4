/* Where a program begins and ends: arguments and environment, the one thread's block, what a thread would need. */
#include "kernel.h"
#include <stdlib.h>
#include <unistd.h>
#include "libc.h"
#include "pthread_impl.h"

union {
	struct pthread block;
	char bytes[sizeof(struct pthread)];
} __wardian_thread_block __asm__("__wardian_thread");

volatile int __thread_list_lock;
size_t __wardian_auxv[2];

extern int __main_argc_argv(int, char **) __attribute__((__weak__));
extern int plain_main(int, char **) __asm__("main") __attribute__((__weak__));
void __wasm_call_ctors(void);

static void init_thread(void)
{
	struct pthread *self = &__wardian_thread_block.block;
	self->self = self->next = self->prev = self;
	self->detach_state = DT_JOINABLE;
	self->tid = k_getpid();
	self->locale = &libc.global_locale;
	self->robust_list.head = &self->robust_list.head;
	libc.can_do_threads = 1;
}

/* Strings of the kernel's, as a list that ends with a null pointer. */
static char **strings(int (*sizes)(size_t *, size_t *), int (*get)(char **, char *), size_t *count)
{
	size_t bytes = 0;
	if (sizes(count, &bytes)) __builtin_trap();
	char **list = malloc((*count + 1) * sizeof *list);
	char *text = malloc(bytes + 1);
	if (!list || !text || get(list, text)) __builtin_trap();
	list[*count] = 0;
	return list;
}

/* Imports cannot be pointed to. */
static int args_sizes(size_t *count, size_t *bytes) { return wasi_args_sizes_get(count, bytes); }
static int args(char **list, char *text) { return wasi_args_get(list, text); }
static int environ_sizes(size_t *count, size_t *bytes) { return wasi_environ_sizes_get(count, bytes); }
static int environment(char **list, char *text) { return wasi_environ_get(list, text); }

__attribute__((export_name("_start"))) void _start(void)
{
	size_t argc, count;
	libc.auxv = __wardian_auxv;
	libc.page_size = 4096;
	init_thread();
	__wardian_init_signals();
	char **argv = strings(args_sizes, args, &argc);
	__environ = strings(environ_sizes, environment, &count);
	__progname = __progname_full = argc ? argv[0] : "";
	for (char *c = __progname_full; *c; c++) if (*c == '/') __progname = c + 1;
	__wasm_call_ctors();
	exit(__main_argc_argv ? __main_argc_argv(argc, argv) : plain_main(argc, argv));
}

/* In a process made by fork: the copied memory still believes to be the parent. */
void __wardian_forked(void)
{
	__wardian_thread_block.block.tid = k_getpid();
}

/* A process has one thread. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*start)(void *), void *restrict arg)
{
	return EAGAIN;
}

_Noreturn void pthread_exit(void *result)
{
	exit(0);
}

int pthread_join(pthread_t thread, void **result)
{
	return thread == __pthread_self() ? EDEADLK : ESRCH;
}

int pthread_detach(pthread_t thread)
{
	return thread == __pthread_self() ? 0 : ESRCH;
}

int pthread_kill(pthread_t thread, int signal)
{
	if (thread != __pthread_self()) return ESRCH;
	return -__syscall(SYS_kill, k_getpid(), signal);
}

void __tl_lock(void) {}
void __tl_unlock(void) {}
void __tl_sync(pthread_t thread) {}
void __acquire_ptc(void) {}
void __release_ptc(void) {}
void __do_cleanup_push(struct __ptcb *cb) {}
void __do_cleanup_pop(struct __ptcb *cb) {}
weak_alias(pthread_join, __pthread_join);
weak_alias(pthread_detach, __pthread_detach);

/* What is to be done in every thread. */
void __synccall(void (*function)(void *), void *context)
{
	function(context);
}

int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	return -ENOSYS;
}
