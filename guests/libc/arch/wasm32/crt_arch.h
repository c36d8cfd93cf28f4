/* The entry point is guests/libc/src/start.c. */
