/* Descriptors: reading and writing, duplicating, flags, terminals, directories, waiting for several. */
#include "kernel.h"
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <wardian.h>

/* A subscription that is the kernel's own: the other side of a pipe or socket is gone. */
#define TAG_HANGUP 3
/* What an event says, beside WASI's hang-up. */
enum { HUNG_UP = 1, IS_READY = 2, HAS_ERROR = 4, OF_SOCKET = 8 };

/* How far each directory was read: the kernel keeps no position for them. */
static uint64_t *positions;
static int positions_len;

static uint64_t *position(int fd)
{
	if (fd < 0) return 0;
	if (fd >= positions_len) {
		int len = fd + 32;
		uint64_t *more = realloc(positions, len * sizeof *more);
		if (!more) return 0;
		memset(more + positions_len, 0, (len - positions_len) * sizeof *more);
		positions = more, positions_len = len;
	}
	return &positions[fd];
}

static void forget_position(int fd)
{
	if (fd >= 0 && fd < positions_len) positions[fd] = 0;
}

struct fd_path __wardian_fd_path(int fd)
{
	struct fd_path path;
	snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
	return path;
}

/* The number of bytes moved, or an error. */
static long moved(int error, size_t done)
{
	return error ? answer(error) : (long)done;
}

static uint64_t joined(long low, long high)
{
	return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

static long read_or_write(long number, int fd, long b, long c, long d, long e)
{
	size_t done = 0;
	struct wasi_part one = { (void *)b, c }, *parts = &one;
	size_t count = 1;
	int vector = number == SYS_readv || number == SYS_writev || number == SYS_preadv || number == SYS_pwritev;
	if (vector) parts = (struct wasi_part *)b, count = c;
	if (vector && (c < 0 || c > IOV_MAX)) return -EINVAL;
	/* All bytes of a process's memory can be given in one part. */
	if (one.len > SSIZE_MAX && !vector) one.len = SSIZE_MAX;
	switch (number) {
	case SYS_read: case SYS_readv:
		return moved(wasi_fd_read(fd, parts, count, &done), done);
	case SYS_write: case SYS_writev:
		return moved(wasi_fd_write(fd, parts, count, &done), done);
	case SYS_pread64: case SYS_preadv:
		return moved(wasi_fd_pread(fd, parts, count, joined(d, e), &done), done);
	}
	return moved(wasi_fd_pwrite(fd, parts, count, joined(d, e), &done), done);
}

static long seek(int fd, int64_t offset, uint64_t *out, int whence)
{
	int error = wasi_fd_seek(fd, offset, whence, out);
	if (!error) return 0;
	struct wasi_fdstat stat;
	if (whence == SEEK_SET && !wasi_fd_fdstat_get(fd, &stat) && stat.kind == 3) {
		uint64_t *at = position(fd);
		if (!at) return -ENOMEM;
		return *out = *at = offset, 0;
	}
	return answer(error);
}

/* WASI's entries, turned into Linux's one by one; what has no room is read again from its cookie. */
static long entries(int fd, char *out, size_t room)
{
	static const unsigned char kinds[] = { DT_UNKNOWN, DT_BLK, DT_CHR, DT_DIR, DT_REG, DT_SOCK, DT_SOCK, DT_LNK };
	_Alignas(8) char buffer[4096 + sizeof(struct wasi_dirent)];
	uint64_t *at = position(fd);
	if (!at) return -ENOMEM;
	size_t used, filled = 0;
	int error = wasi_fd_readdir(fd, buffer, sizeof buffer, *at, &used);
	if (error) return answer(error);
	for (char *from = buffer; from + sizeof(struct wasi_dirent) <= buffer + used;) {
		struct wasi_dirent head;
		memcpy(&head, from, sizeof head);
		char *name = from + sizeof head;
		if (name + head.name_len > buffer + used) break;
		size_t len = (offsetof(struct dirent, d_name) + head.name_len + 1 + 7) & -8ul;
		if (filled + len > room) break;
		struct dirent *entry = (void *)(out + filled);
		entry->d_ino = head.ino;
		entry->d_off = head.next;
		entry->d_reclen = len;
		entry->d_type = head.kind < sizeof kinds ? kinds[head.kind] : DT_UNKNOWN;
		memcpy(entry->d_name, name, head.name_len);
		entry->d_name[head.name_len] = 0;
		filled += len, from = name + head.name_len, *at = head.next;
	}
	return !filled && used ? -EINVAL : (long)filled;
}

static long duplicate(int fd, int min, int cloexec)
{
	int new, error = k_dup(fd, min, cloexec, &new);
	if (error) return answer(error);
	uint64_t *at = position(new);
	if (at) *at = fd < positions_len ? positions[fd] : 0;
	return new;
}

static long duplicate_to(int from, int to, int flags)
{
	if (from == to || flags & ~O_CLOEXEC) return -EINVAL;
	int error = k_dup2(from, to, !!(flags & O_CLOEXEC));
	if (error) return answer(error);
	forget_position(to);
	return to;
}

static long status_flags(int fd)
{
	struct wasi_fdstat stat;
	int error = wasi_fd_fdstat_get(fd, &stat);
	if (error) return answer(error);
	int reads = !!(stat.rights & (RIGHT_READ | RIGHT_READDIR)), writes = !!(stat.rights & RIGHT_WRITE);
	return (reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY) | (stat.flags & FDFLAG_APPEND ? O_APPEND : 0)
		| (stat.flags & FDFLAG_NONBLOCK ? O_NONBLOCK : 0) | (stat.kind == 3 ? O_DIRECTORY : 0);
}

static long set_status_flags(int fd, int flags)
{
	return answer(wasi_fd_fdstat_set_flags(fd,
		(flags & O_APPEND ? FDFLAG_APPEND : 0) | (flags & O_NONBLOCK ? FDFLAG_NONBLOCK : 0)));
}

/* Where a range begins that is counted from `whence`. */
static int64_t range_start(int fd, const struct flock *range)
{
	struct kernel_stat stat;
	uint64_t at;
	int error;
	switch (range->l_whence) {
	case SEEK_SET:
		return range->l_start;
	case SEEK_CUR:
		error = wasi_fd_seek(fd, 0, SEEK_CUR, &at);
		return error ? answer(error) : (int64_t)at + range->l_start;
	case SEEK_END:
		error = k_fstat(fd, &stat);
		return error ? answer(error) : (int64_t)stat.size + range->l_start;
	}
	return -EINVAL;
}

static long lock_range(int fd, int command, struct flock *range)
{
	int of_description = command >= F_OFD_GETLK;
	int asks = command == F_GETLK || command == F_OFD_GETLK, waits = command == F_SETLKW || command == F_OFD_SETLKW;
	if (of_description && range->l_pid) return -EINVAL;
	int64_t start = range_start(fd, range), length = range->l_len;
	if (start < 0) return start < -4095 ? -EINVAL : start;
	if (length < 0) start += length, length = -length;
	struct kernel_lock lock = { (uint16_t)range->l_type, 0, start, length };
	int error = k_lock(fd, (asks ? 0 : waits ? 2 : 1) | (of_description ? 4 : 0), &lock);
	if (error || !asks) return answer(error);
	range->l_type = lock.kind;
	if (lock.kind != F_UNLCK) {
		range->l_whence = SEEK_SET, range->l_pid = lock.pid;
		range->l_start = lock.start, range->l_len = lock.length;
	}
	return 0;
}

static long control(int fd, int command, long argument)
{
	int old, error;
	switch (command) {
	case F_DUPFD: case F_DUPFD_CLOEXEC:
		return duplicate(fd, argument, command == F_DUPFD_CLOEXEC);
	case F_GETFD:
		error = k_cloexec(fd, -1, &old);
		return error ? answer(error) : old ? FD_CLOEXEC : 0;
	case F_SETFD:
		return answer(k_cloexec(fd, argument & FD_CLOEXEC, &old));
	case F_GETFL:
		return status_flags(fd);
	case F_SETFL:
		return set_status_flags(fd, argument);
	case F_GETLK: case F_SETLK: case F_SETLKW: case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW:
		return lock_range(fd, command, (struct flock *)argument);
	}
	return -EINVAL;
}

static long get_mode(int fd, struct termios *out)
{
	struct kernel_terminal mode;
	int error = k_tcgetattr(fd, &mode);
	if (error) return answer(error);
	memset(out, 0, sizeof *out);
	out->c_iflag = mode.iflag, out->c_oflag = mode.oflag, out->c_cflag = mode.cflag, out->c_lflag = mode.lflag;
	memcpy(out->c_cc, mode.cc, sizeof mode.cc);
	return 0;
}

static long set_mode(int fd, const struct termios *in, int flush)
{
	struct kernel_terminal mode = { in->c_iflag, in->c_oflag, in->c_cflag, in->c_lflag };
	memcpy(mode.cc, in->c_cc, sizeof mode.cc);
	return answer(k_tcsetattr(fd, flush, &mode));
}

/* Drops what was typed and not read, if `queue` is about that. What was written is with the host already. */
static long flush_queue(int fd, long queue)
{
	struct kernel_terminal mode;
	if (queue != TCIFLUSH && queue != TCOFLUSH && queue != TCIOFLUSH) return -EINVAL;
	int error = k_tcgetattr(fd, &mode);
	if (!error && queue != TCOFLUSH) error = k_tcsetattr(fd, 1, &mode);
	return answer(error);
}

static long available(int fd, int *out)
{
	struct wasi_subscription wanted[2] = { { 0, TAG_READ, { .fd = fd } }, { 1, TAG_CLOCK } };
	struct wasi_event events[2];
	size_t happened = 0;
	wanted[1].u.clock.id = CLOCK_WASI_MONOTONIC;
	int error = wasi_poll_oneoff(wanted, events, 2, &happened);
	if (error) return answer(error);
	*out = 0;
	for (size_t i = 0; i < happened; i++) {
		if (events[i].userdata) continue;
		if (events[i].error) return answer(events[i].error);
		*out = events[i].bytes;
	}
	return 0;
}

static long device(int fd, unsigned request, void *argument)
{
	struct winsize *size = argument;
	uint16_t rows_columns[2];
	int error, old, *number = argument;
	switch (request) {
	case TIOCGWINSZ:
		if (!(error = k_winsize(fd, rows_columns))) *size = (struct winsize){ rows_columns[0], rows_columns[1], 0, 0 };
		return answer(error);
	case TIOCSWINSZ:
		return answer(k_setwinsize(fd, size->ws_row, size->ws_col));
	case TCGETS:
		return get_mode(fd, argument);
	case TCSETS: case TCSETSW: case TCSETSF:
		return set_mode(fd, argument, request == TCSETSF);
	case TCFLSH:
		return flush_queue(fd, (long)argument);
	case TCSBRK: case TCXONC:
		/* Nothing waits to be sent, and there is no line to hold or to break. */
		return answer(k_winsize(fd, rows_columns));
	case TIOCGPGRP:
		return answer(k_tcgetpgrp(fd, number));
	case TIOCSPGRP:
		return answer(k_tcsetpgrp(fd, *number));
	case FIONREAD:
		return available(fd, number);
	case FIONBIO: {
		long flags = status_flags(fd);
		return flags < 0 ? flags : set_status_flags(fd, *number ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
	}
	case FIOCLEX: case FIONCLEX:
		return answer(k_cloexec(fd, request == FIOCLEX, &old));
	}
	error = k_winsize(fd, rows_columns);
	return error ? answer(error) : -EINVAL;
}

static long new_pipe(int *fds, int flags)
{
	if (flags & ~(O_CLOEXEC | O_NONBLOCK)) return -EINVAL;
	int error = k_pipe(fds, !!(flags & O_CLOEXEC));
	if (error) return answer(error);
	for (int i = 0; i < 2; i++) {
		forget_position(fds[i]);
		if (flags & O_NONBLOCK) set_status_flags(fds[i], O_NONBLOCK);
	}
	return 0;
}

static int is_readable(int fd)
{
	struct wasi_fdstat stat;
	return !wasi_fd_fdstat_get(fd, &stat) && stat.rights & RIGHT_READ;
}

static int socket_events(const struct wasi_event *event, int wanted)
{
	int moves = event->kind == TAG_WRITE ? POLLOUT | POLLWRNORM : POLLIN | POLLRDNORM;
	return (event->flags & IS_READY ? wanted & moves : 0) | (event->flags & HUNG_UP ? POLLHUP : 0)
		| (event->flags & HAS_ERROR ? POLLERR : 0);
}

/* Waits once. A descriptor that may only be written and is asked for input waits for its readers to go, as on Linux. */
static long poll_once(struct pollfd *fds, size_t count, uint64_t deadline, struct wasi_subscription *wanted, struct wasi_event *events)
{
	size_t n = 0, happened = 0;
	int ready = 0;
	for (size_t i = 0; i < count; i++) {
		fds[i].revents = 0;
		if (fds[i].fd < 0) continue;
		int events_wanted = fds[i].events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
		if (events_wanted & (POLLIN | POLLRDNORM))
			wanted[n++] = (struct wasi_subscription){ i, is_readable(fds[i].fd) ? TAG_READ : TAG_HANGUP, { .fd = fds[i].fd } };
		if (events_wanted & (POLLOUT | POLLWRNORM)) wanted[n++] = (struct wasi_subscription){ i, TAG_WRITE, { .fd = fds[i].fd } };
		if (!events_wanted) wanted[n++] = (struct wasi_subscription){ i, TAG_HANGUP, { .fd = fds[i].fd } };
	}
	if (deadline != FOR_EVER || !n) {
		wanted[n] = (struct wasi_subscription){ count, TAG_CLOCK };
		wanted[n].u.clock.id = CLOCK_WASI_MONOTONIC;
		wanted[n].u.clock.timeout = deadline == FOR_EVER ? INT64_MAX : deadline;
		wanted[n++].u.clock.flags = 1;
	}
	int error = wasi_poll_oneoff(wanted, events, n, &happened);
	if (error) return answer(error);
	for (size_t j = 0; j < happened; j++) {
		if (events[j].userdata >= count) continue;
		struct pollfd *fd = &fds[events[j].userdata];
		int writes = events[j].kind == TAG_WRITE, hung_up = events[j].flags & HUNG_UP;
		if (!fd->revents) ready++;
		if (events[j].flags & OF_SOCKET) fd->revents |= socket_events(&events[j], fd->events);
		else if (events[j].error) fd->revents |= __wardian_errno(events[j].error) == EBADF ? POLLNVAL : POLLERR;
		else if (writes) fd->revents |= (fd->events & (POLLOUT | POLLWRNORM)) | (hung_up ? POLLERR : 0);
		else fd->revents |= (events[j].bytes || !hung_up ? fd->events & (POLLIN | POLLRDNORM) : 0)
			| (!hung_up ? 0 : events[j].kind == TAG_HANGUP && !is_readable(fd->fd) ? POLLERR : POLLHUP);
	}
	return ready;
}

static uint64_t deadline_of(const struct timespec *left)
{
	if (!left) return FOR_EVER;
	if (left->tv_sec > 1000000000) return FOR_EVER;
	return __wardian_now(CLOCK_WASI_MONOTONIC) + left->tv_sec * NANOS + left->tv_nsec;
}

static long poll_until(struct pollfd *fds, size_t count, uint64_t deadline)
{
	if (count > 4096) return -EINVAL;
	struct wasi_subscription *wanted = malloc((2 * count + 1) * sizeof *wanted);
	struct wasi_event *events = malloc((2 * count + 1) * sizeof *events);
	long result = -ENOMEM;
	/* A blocked signal interrupts nothing. */
	while (wanted && events && (result = poll_once(fds, count, deadline, wanted, events)) == -EINTR && !wardian_signals());
	free(wanted);
	free(events);
	return result;
}

static long poll_with_mask(struct pollfd *fds, size_t count, uint64_t deadline, const uint64_t *mask)
{
	uint64_t old = mask ? __wardian_set_mask(*mask << 1) : 0;
	long result = poll_until(fds, count, deadline);
	if (mask) __wardian_set_mask(old);
	return result;
}

/* select over poll. */
static long select_with_mask(int n, fd_set *sets[3], uint64_t deadline, const uint64_t *mask)
{
	static const short asked[] = { POLLIN, POLLOUT, POLLPRI };
	static const short told[] = { POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI };
	if (n < 0 || n > FD_SETSIZE) return -EINVAL;
	struct pollfd *fds = malloc((n + 1) * sizeof *fds);
	if (!fds) return -ENOMEM;
	size_t count = 0;
	for (int fd = 0; fd < n; fd++) {
		short events = 0;
		for (int i = 0; i < 3; i++) if (sets[i] && FD_ISSET(fd, sets[i])) events |= asked[i];
		if (events) fds[count++] = (struct pollfd){ fd, events, 0 };
	}
	long result = poll_with_mask(fds, count, deadline, mask);
	for (size_t j = 0; j < count && result >= 0; j++) if (fds[j].revents & POLLNVAL) result = -EBADF;
	if (result >= 0) {
		result = 0;
		for (int i = 0; i < 3; i++) {
			if (!sets[i]) continue;
			FD_ZERO(sets[i]);
			for (size_t j = 0; j < count; j++)
				if (fds[j].events & asked[i] && fds[j].revents & told[i]) FD_SET(fds[j].fd, sets[i]), result++;
		}
	}
	free(fds);
	return result;
}

static long copy_between(int out, int in, int64_t *offset, size_t count)
{
	char buffer[16384];
	size_t done = 0;
	while (done < count) {
		struct wasi_part part = { buffer, count - done < sizeof buffer ? count - done : sizeof buffer };
		size_t got = 0, put = 0;
		int error = offset ? wasi_fd_pread(in, &part, 1, *offset, &got) : wasi_fd_read(in, &part, 1, &got);
		if (!error && !got) break;
		part.len = got;
		if (!error) error = wasi_fd_write(out, &part, 1, &put);
		if (error) return done ? (long)done : answer(error);
		if (offset) *offset += put;
		done += put;
		if (put < got) {
			uint64_t at;
			if (!offset) wasi_fd_seek(in, (int64_t)put - (int64_t)got, SEEK_CUR, &at);
			break;
		}
	}
	return done;
}

long __wardian_fd_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_read: case SYS_write: case SYS_readv: case SYS_writev:
	case SYS_pread64: case SYS_pwrite64: case SYS_preadv: case SYS_pwritev:
		return read_or_write(number, a, b, c, d, e);
	case SYS__llseek:
		return seek(a, (int64_t)joined(c, b), (uint64_t *)d, e);
	case SYS_close:
		forget_position(a);
		return answer(wasi_fd_close(a));
	case SYS_getdents64:
		return entries(a, (char *)b, c);
	case SYS_dup:
		return duplicate(a, 0, 0);
	case SYS_dup3:
		return duplicate_to(a, b, c);
	case SYS_pipe2:
		return new_pipe((int *)a, b);
	case SYS_fcntl64:
		return control(a, b, c);
	case SYS_flock:
		return answer(k_flock(a, b));
	case SYS_ioctl:
		return device(a, b, (void *)c);
	case SYS_ppoll_time64:
		return poll_with_mask((struct pollfd *)a, b, deadline_of((struct timespec *)c), (uint64_t *)d);
	case SYS_pselect6_time64: {
		fd_set *sets[] = { (fd_set *)b, (fd_set *)c, (fd_set *)d };
		const uint64_t *mask = f ? *(const uint64_t **)f : 0;
		return select_with_mask(a, sets, deadline_of((struct timespec *)e), mask);
	}
	case SYS_sendfile64:
		return copy_between(a, b, (int64_t *)c, d);
	case SYS_fsync:
		return answer(wasi_fd_sync(a));
	case SYS_fdatasync:
		return answer(wasi_fd_datasync(a));
	case SYS_sync: case SYS_syncfs:
		return 0;
	case SYS_ftruncate64:
		return answer(wasi_fd_filestat_set_size(a, joined(b, c)));
	case SYS_fallocate:
		return b ? -EOPNOTSUPP : answer(wasi_fd_allocate(a, joined(c, d), joined(e, f)));
	case SYS_fadvise64_64: case SYS_readahead:
		return 0;
	}
	return -ENOSYS;
}
