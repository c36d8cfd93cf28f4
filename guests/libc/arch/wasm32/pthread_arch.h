/* The one thread's block lies in memory like any variable (guests/libc/src/start.c). */
extern char __wardian_thread[];

static inline uintptr_t __get_tp(void)
{
	return (uintptr_t)__wardian_thread;
}

#define MC_PC __none
