/* The floating-point flags that programs set themselves. All functions of the C library's own fenv.c are here, so that it
   is not linked. */
#include <fenv.h>

static int flags;

int feclearexcept(int mask) { flags &= ~mask; return 0; }
int feraiseexcept(int mask) { flags |= mask; return 0; }
int fetestexcept(int mask) { return flags & mask; }
int fegetround(void) { return FE_TONEAREST; }
int __fesetround(int mode) { return mode != FE_TONEAREST; }
int fegetenv(fenv_t *to) { to->__cw = (unsigned long)flags; return 0; }
int fesetenv(const fenv_t *from) { flags = from == FE_DFL_ENV ? 0 : (int)from->__cw; return 0; }
