/* Given to every file of numpy and pandas. WebAssembly has no floating-point flags; those that programs set themselves are
   kept in fenv.c: what numpy notices (an integer divided by zero, a cast that does not fit) is reported as elsewhere, what
   only a processor would notice (1.0 / 0.0) is not. */
#ifndef FE_INVALID
#define FE_INVALID 1
#define FE_DIVBYZERO 4
#define FE_OVERFLOW 8
#define FE_UNDERFLOW 16
#define FE_INEXACT 32
#endif
