/* There is no longjmp: a WebAssembly stack cannot be cut from within. */
typedef unsigned long __jmp_buf[1];
