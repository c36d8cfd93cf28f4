/* The kernel's imports (docs/abi.md), and what the files beside this one share. */
#ifndef WARDIAN_KERNEL_H
#define WARDIAN_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define IMPORT(module, name) __attribute__((import_module(module), import_name(#name)))
#define KERNEL(name, ...) IMPORT("wardian", name) int k_##name(__VA_ARGS__)
#define WASI(name, ...) IMPORT("wasi_snapshot_preview1", name) int wasi_##name(__VA_ARGS__)

/* Directories that no descriptor is. */
#define ROOT_FD 0x7fffff00
#define CWD_FD 0x7fffff01

/* The one user of a sandbox. */
#define USER 1000

struct kernel_stat {
	uint64_t dev, ino, size, blocks, rdev;
	int64_t atime, mtime, ctime;
	uint32_t mode, nlink, uid, gid, blksize, zero;
	uint64_t version;
};
_Static_assert(sizeof(struct kernel_stat) == 96, "docs/abi.md");

struct kernel_statfs {
	uint64_t block_size, blocks, free_blocks, files, free_files, name_len;
};

struct kernel_terminal {
	uint32_t iflag, oflag, cflag, lflag;
	unsigned char cc[19], zero;
};

/* A lock on a range of a file. */
struct kernel_lock {
	uint32_t kind;
	int32_t pid;
	int64_t start, length;
};

/* As in struct iovec. */
struct wasi_part {
	void *start;
	size_t len;
};

KERNEL(fork, int (*entry)(void *), void *data, int *pid);
KERNEL(spawn, const uint32_t *request, int *pid);
KERNEL(exec, const uint32_t *request);
KERNEL(wait, int pid, int flags, int *status, int *ended);
KERNEL(kill, int pid, int signal);
KERNEL(getpid, void);
KERNEL(getppid, void);
KERNEL(getpgid, int pid, int *group);
KERNEL(setpgid, int pid, int group);
KERNEL(getsid, int pid, int *session);
KERNEL(setsid, void);
KERNEL(sigaction, int signal, int disposition, int *old);
KERNEL(sigpending, uint64_t *mask);
KERNEL(sigword, volatile unsigned *word);
KERNEL(alarm, int64_t nanos, int64_t *left);
KERNEL(times, int64_t *out);
KERNEL(getrlimit, int which, int64_t *out);
KERNEL(setrlimit, int which, const int64_t *limit);
KERNEL(pipe, int *fds, int flags);
KERNEL(dup, int fd, int min, int flags, int *new);
KERNEL(dup2, int from, int to, int flags);
KERNEL(cloexec, int fd, int value, int *old);
KERNEL(flock, int fd, int operation);
KERNEL(lock, int fd, int command, struct kernel_lock *range);
KERNEL(winsize, int fd, uint16_t *out);
KERNEL(setwinsize, int fd, unsigned rows, unsigned columns);
KERNEL(tcgetattr, int fd, struct kernel_terminal *out);
KERNEL(tcsetattr, int fd, unsigned flush, const struct kernel_terminal *mode);
KERNEL(tcgetpgrp, int fd, int *group);
KERNEL(tcsetpgrp, int fd, int group);
KERNEL(stat, int dir, const char *path, size_t len, int flags, struct kernel_stat *out);
KERNEL(fstat, int fd, struct kernel_stat *out);
KERNEL(chmod, int dir, const char *path, size_t len, int flags, unsigned mode);
KERNEL(fchmod, int fd, unsigned mode);
KERNEL(chown, int dir, const char *path, size_t len, int flags, int uid, int gid);
KERNEL(access, int dir, const char *path, size_t len, unsigned mode);
KERNEL(mkdir, int dir, const char *path, size_t len, unsigned mode);
KERNEL(mkfifo, int dir, const char *path, size_t len, unsigned mode);
KERNEL(open, int dir, const char *path, size_t len, unsigned flags, unsigned mode, int *fd);
KERNEL(umask, unsigned mask);
KERNEL(statfs, int dir, const char *path, size_t len, struct kernel_statfs *out);
KERNEL(getcwd, char *buffer, size_t len, size_t *need);
KERNEL(chdir, int dir, const char *path, size_t len);
KERNEL(socket, int family, int kind, int protocol, int flags, int *fd);
KERNEL(socketpair, int family, int kind, int protocol, int flags, int *fds);
KERNEL(bind, int fd, const void *address, size_t len);
KERNEL(listen, int fd, int backlog);
KERNEL(accept, int fd, int flags, int *new, void *address, size_t room, uint32_t *need);
KERNEL(connect, int fd, const void *address, size_t len);
KERNEL(send, int fd, const struct wasi_part *parts, size_t count, int flags, const void *address, size_t len,
	const int *rights, size_t rights_count, size_t *out);
KERNEL(recv, int fd, const struct wasi_part *parts, size_t count, int flags, void *address, size_t room, int *rights,
	size_t rights_room, uint32_t *out);
KERNEL(shutdown, int fd, int how);
KERNEL(getsockname, int fd, void *address, size_t room, uint32_t *need);
KERNEL(getpeername, int fd, void *address, size_t room, uint32_t *need);
KERNEL(getsockopt, int fd, int level, int option, void *value, size_t room, uint32_t *need);
KERNEL(setsockopt, int fd, int level, int option, const void *value, size_t len);
KERNEL(look_up, const char *name, size_t len, void *out, size_t room, uint32_t *need);

struct wasi_fdstat {
	uint8_t kind;
	uint16_t flags;
	uint64_t rights, inheriting;
};

struct wasi_dirent {
	uint64_t next, ino;
	uint32_t name_len;
	uint8_t kind;
};

struct wasi_subscription {
	uint64_t userdata;
	uint8_t tag;
	union {
		struct { uint32_t id; uint64_t timeout, precision; uint16_t flags; } clock;
		uint32_t fd;
	} u;
};
_Static_assert(sizeof(struct wasi_subscription) == 48, "preview 1");

struct wasi_event {
	uint64_t userdata;
	uint16_t error;
	uint8_t kind;
	uint64_t bytes;
	uint16_t flags;
};
_Static_assert(sizeof(struct wasi_event) == 32, "preview 1");

enum { TAG_CLOCK, TAG_READ, TAG_WRITE };
enum { CLOCK_WASI_REALTIME, CLOCK_WASI_MONOTONIC, CLOCK_WASI_PROCESS, CLOCK_WASI_THREAD };
enum { FDFLAG_APPEND = 1, FDFLAG_NONBLOCK = 4 };
#define RIGHT_READ (1ull << 1)
#define RIGHT_WRITE (1ull << 6)
#define RIGHT_READDIR (1ull << 14)

WASI(args_sizes_get, size_t *count, size_t *bytes);
WASI(args_get, char **argv, char *bytes);
WASI(environ_sizes_get, size_t *count, size_t *bytes);
WASI(environ_get, char **env, char *bytes);
WASI(clock_time_get, int id, uint64_t precision, uint64_t *out);
WASI(random_get, void *buffer, size_t len);
WASI(poll_oneoff, const struct wasi_subscription *in, struct wasi_event *out, size_t count, size_t *happened);
WASI(fd_read, int fd, const struct wasi_part *parts, size_t count, size_t *done);
WASI(fd_write, int fd, const struct wasi_part *parts, size_t count, size_t *done);
WASI(fd_pread, int fd, const struct wasi_part *parts, size_t count, uint64_t offset, size_t *done);
WASI(fd_pwrite, int fd, const struct wasi_part *parts, size_t count, uint64_t offset, size_t *done);
WASI(fd_seek, int fd, int64_t offset, int whence, uint64_t *out);
WASI(fd_readdir, int fd, void *buffer, size_t len, uint64_t cookie, size_t *used);
WASI(fd_close, int fd);
WASI(fd_sync, int fd);
WASI(fd_datasync, int fd);
WASI(fd_allocate, int fd, uint64_t offset, uint64_t len);
WASI(fd_fdstat_get, int fd, struct wasi_fdstat *out);
WASI(fd_fdstat_set_flags, int fd, int flags);
WASI(fd_filestat_set_size, int fd, uint64_t size);
WASI(fd_filestat_set_times, int fd, uint64_t atime, uint64_t mtime, int which);
WASI(path_filestat_set_times, int dir, int flags, const char *path, size_t len, uint64_t atime, uint64_t mtime, int which);
WASI(path_link, int from_dir, int flags, const char *from, size_t from_len, int dir, const char *path, size_t len);
WASI(path_symlink, const char *target, size_t target_len, int dir, const char *path, size_t len);
WASI(path_readlink, int dir, const char *path, size_t len, char *buffer, size_t room, size_t *used);
WASI(path_rename, int from_dir, const char *from, size_t from_len, int dir, const char *path, size_t len);
WASI(path_remove_directory, int dir, const char *path, size_t len);
WASI(path_unlink_file, int dir, const char *path, size_t len);
IMPORT("wasi_snapshot_preview1", proc_exit) _Noreturn void wasi_proc_exit(int code);

#define NANOS 1000000000ll

/* Linux's number for an error of the kernel's. */
int __wardian_errno(int wasi);

/* The answer of a system call that either works or fails. */
static inline long answer(int error)
{
	return error ? -__wardian_errno(error) : 0;
}

/* A path as the kernel takes it. The kernel itself starts at the root when it begins with a slash. */
#define PATH(p) (p), strlen(p)

static inline int directory(int fd)
{
	return fd == AT_FDCWD ? CWD_FD : fd;
}

/* The name under which a descriptor can be reached by path. */
struct fd_path {
	char text[32];
};
struct fd_path __wardian_fd_path(int fd);

/* One group of system calls each: those it does not know are -ENOSYS. */
typedef long syscalls(long number, long a, long b, long c, long d, long e, long f);
syscalls __wardian_file_calls, __wardian_fd_calls, __wardian_process_calls, __wardian_signal_calls, __wardian_time_calls,
	__wardian_memory_calls, __wardian_socket_calls;

/* Writes what was changed in shared mappings of files to the files: 0 or an error of the kernel's. */
int __wardian_write_mappings(void);

uint64_t __wardian_now(int clock);
/* Sleeps till a moment of the monotonic clock, or for ever: 0, or -EINTR when a handler ran. */
long __wardian_sleep_until(uint64_t moment);
#define FOR_EVER UINT64_MAX

/* Sets the signal mask, as a number whose bit N is signal N, and answers what it was. */
uint64_t __wardian_set_mask(uint64_t mask);
/* Starts signals in a process that has none of its parent's waiting. */
void __wardian_init_signals(void);
void __wardian_forked(void);

#endif
