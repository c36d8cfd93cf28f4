/* Files by name: opening, looking, changing. */
#include "kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The flags of open that mean something here. Writes reach the files at once, so that O_SYNC holds by itself. */
#define KNOWN (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static long open_file(int dir, const char *path, unsigned flags, unsigned mode)
{
	int fd, error;
	if ((flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
	if (flags & O_PATH) flags &= O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	error = k_open(directory(dir), PATH(path), flags & KNOWN, mode, &fd);
	return error ? answer(error) : fd;
}

static void set_time(struct statx_timestamp *to, int64_t nanos)
{
	to->tv_sec = nanos / NANOS;
	to->tv_nsec = nanos % NANOS;
	if (nanos % NANOS < 0) to->tv_sec--, to->tv_nsec += NANOS;
}

static long look(int dir, const char *path, int flags, struct statx *out)
{
	struct kernel_stat stat;
	int error = flags & AT_EMPTY_PATH && !*path && dir != AT_FDCWD
		? k_fstat(dir, &stat)
		: k_stat(directory(dir), PATH(*path || !(flags & AT_EMPTY_PATH) ? path : "."), !(flags & AT_SYMLINK_NOFOLLOW), &stat);
	if (error) return answer(error);
	memset(out, 0, sizeof *out);
	out->stx_mask = STATX_BASIC_STATS;
	out->stx_blksize = stat.blksize;
	out->stx_nlink = stat.nlink;
	out->stx_uid = stat.uid;
	out->stx_gid = stat.gid;
	out->stx_mode = stat.mode;
	out->stx_ino = stat.ino;
	out->stx_size = stat.size;
	out->stx_blocks = stat.blocks;
	out->stx_rdev_major = major(stat.rdev), out->stx_rdev_minor = minor(stat.rdev);
	out->stx_dev_major = major(stat.dev), out->stx_dev_minor = minor(stat.dev);
	set_time(&out->stx_atime, stat.atime);
	set_time(&out->stx_mtime, stat.mtime);
	set_time(&out->stx_ctime, stat.ctime);
	return 0;
}

static long file_system(int dir, const char *path, struct statfs *out)
{
	struct kernel_statfs fs;
	int error = k_statfs(dir, PATH(path), &fs);
	if (error) return answer(error);
	*out = (struct statfs){
		.f_bsize = fs.block_size, .f_frsize = fs.block_size, .f_blocks = fs.blocks, .f_bfree = fs.free_blocks,
		.f_bavail = fs.free_blocks, .f_files = fs.files, .f_ffree = fs.free_files, .f_namelen = fs.name_len,
	};
	return 0;
}

static uint64_t nanos_of(const struct timespec *time)
{
	return time->tv_sec * NANOS + time->tv_nsec;
}

/* utimensat: path null means the descriptor itself. */
static long set_times(int dir, const char *path, const struct timespec times[2], int flags)
{
	enum { ATIM = 1, ATIM_NOW = 2, MTIM = 4, MTIM_NOW = 8 };
	int which = times ? 0 : ATIM_NOW | MTIM_NOW;
	uint64_t atime = 0, mtime = 0;
	if (times) {
		for (int i = 0; i < 2; i++) {
			long n = times[i].tv_nsec;
			if (n != UTIME_NOW && n != UTIME_OMIT && (n < 0 || n >= NANOS)) return -EINVAL;
			int bit = n == UTIME_OMIT ? 0 : n == UTIME_NOW ? ATIM_NOW : ATIM;
			which |= i ? bit << 2 : bit;
		}
		atime = nanos_of(&times[0]), mtime = nanos_of(&times[1]);
	}
	if (!path) return answer(wasi_fd_filestat_set_times(dir, atime, mtime, which));
	int follow = !(flags & AT_SYMLINK_NOFOLLOW);
	return answer(wasi_path_filestat_set_times(directory(dir), follow, PATH(path), atime, mtime, which));
}

static long make_node(int dir, const char *path, unsigned mode)
{
	if ((mode & S_IFMT) == S_IFIFO) return answer(k_mkfifo(directory(dir), PATH(path), mode & 07777));
	if (mode & S_IFMT && (mode & S_IFMT) != S_IFREG) return -EPERM;
	long fd = open_file(dir, path, O_CREAT | O_EXCL | O_WRONLY, mode & 07777);
	if (fd >= 0) wasi_fd_close(fd);
	return fd < 0 ? fd : 0;
}

static long cut(const char *path, uint64_t size)
{
	long fd = open_file(AT_FDCWD, path, O_WRONLY, 0);
	if (fd < 0) return fd;
	int error = wasi_fd_filestat_set_size(fd, size);
	wasi_fd_close(fd);
	return answer(error);
}

static long read_link(int dir, const char *path, char *buffer, size_t room)
{
	size_t used = 0;
	int error = wasi_path_readlink(directory(dir), PATH(path), buffer, room, &used);
	return error ? answer(error) : (long)used;
}

static long working_directory(char *buffer, size_t room)
{
	size_t need = 0;
	int error = room ? k_getcwd(buffer, room - 1, &need) : 0;
	if (!room) return -ERANGE;
	if (error) return answer(error);
	buffer[need] = 0;
	return need + 1;
}

static long remove_file(int dir, const char *path, int flags)
{
	if (flags & ~AT_REMOVEDIR) return -EINVAL;
	return answer(flags ? wasi_path_remove_directory(directory(dir), PATH(path)) : wasi_path_unlink_file(directory(dir), PATH(path)));
}

/* The calls that take no path. */
static long of_descriptor(long number, long a, long b, long c)
{
	struct fd_path path = __wardian_fd_path(a);
	struct kernel_stat stat;
	int error = k_fstat(a, &stat);
	if (error) return answer(error);
	switch (number) {
	case SYS_fchdir:
		return answer(k_chdir(a, "", 0));
	case SYS_fchmod:
		return answer(k_fchmod(a, b));
	case SYS_fchown:
		/* What belongs to the one user stays so. */
		return stat.uid == USER && (b == -1 || b == USER) && (c == -1 || c == USER) ? 0 : -EPERM;
	case SYS_fstatfs64:
		return file_system(CWD_FD, path.text, (struct statfs *)c);
	}
	return -ENOSYS;
}

long __wardian_file_calls(long number, long a, long b, long c, long d, long e, long f)
{
	const char *path = (const char *)b;
	switch (number) {
	case SYS_openat:
		return open_file(a, path, c, d);
	case SYS_statx:
		return look(a, path, c, (struct statx *)e);
	case SYS_faccessat: case SYS_faccessat2:
		return answer(k_access(directory(a), PATH(path), c));
	case SYS_mkdirat:
		return answer(k_mkdir(directory(a), PATH(path), c));
	case SYS_mknodat:
		return make_node(a, path, c);
	case SYS_unlinkat:
		return remove_file(a, path, c);
	case SYS_symlinkat:
		return answer(wasi_path_symlink(PATH((const char *)a), directory(b), PATH((const char *)c)));
	case SYS_linkat:
		if (e & ~AT_SYMLINK_FOLLOW) return -EINVAL;
		return answer(wasi_path_link(directory(a), !!e, PATH(path), directory(c), PATH((const char *)d)));
	case SYS_renameat2:
		if (e) return -EINVAL;
		return answer(wasi_path_rename(directory(a), PATH(path), directory(c), PATH((const char *)d)));
	case SYS_readlinkat:
		return read_link(a, path, (char *)c, d);
	case SYS_fchmodat:
		return answer(k_chmod(directory(a), PATH(path), 1, c));
	case SYS_fchmodat2:
		return d & AT_SYMLINK_NOFOLLOW ? -EOPNOTSUPP : answer(k_chmod(directory(a), PATH(path), 1, c));
	case SYS_fchownat:
		if (e & AT_EMPTY_PATH && !*path) return of_descriptor(SYS_fchown, a, c, d);
		return answer(k_chown(directory(a), PATH(path), !(e & AT_SYMLINK_NOFOLLOW), c, d));
	case SYS_utimensat_time64:
		return set_times(a, path, (const struct timespec *)c, d);
	case SYS_truncate64:
		return cut((const char *)a, (uint64_t)(uint32_t)c << 32 | (uint32_t)b);
	case SYS_statfs64:
		return file_system(CWD_FD, (const char *)a, (struct statfs *)c);
	case SYS_getcwd:
		return working_directory((char *)a, b);
	case SYS_chdir:
		return *(const char *)a ? answer(k_chdir(CWD_FD, PATH((const char *)a))) : -ENOENT;
	case SYS_fchdir: case SYS_fchmod: case SYS_fchown: case SYS_fstatfs64:
		return of_descriptor(number, a, b, c);
	case SYS_umask:
		return k_umask(a);
	}
	return -ENOSYS;
}
