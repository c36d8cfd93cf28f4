/* A process has one thread: a plain read and write is atomic. */
#define a_cas a_cas
static inline int a_cas(volatile int *p, int t, int s)
{
	int old = *p;
	if (old == t) *p = s;
	return old;
}

#define a_barrier a_barrier
static inline void a_barrier(void)
{
	__asm__ __volatile__ ("" : : : "memory");
}

#define a_crash a_crash
static inline void a_crash(void)
{
	__builtin_trap();
}
