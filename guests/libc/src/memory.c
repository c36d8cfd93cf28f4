/* Memory by the page: mmap, munmap and mremap over memory.grow. malloc takes its blocks from here.

   WebAssembly's memory only grows. What is unmapped goes into a list of free ranges, in order of address, and is given out
   again, zeroed. A mapping of a file is a copy, read when it is made. If it is shared and can be written, what the program
   changed is written to the file when it says so (msync), when it unmaps it and when it exits. */
#include "kernel.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE 4096ul
#define WASM_PAGE 65536ul

/* A free range; the description lies in its own first bytes. */
struct range {
	struct range *next;
	size_t len;
	/* Bytes at its end that nobody has written yet: they need not be zeroed. */
	size_t fresh;
};

static struct range *free_ranges;

static int adjoin(const struct range *a, const struct range *b)
{
	return (uintptr_t)a + a->len == (uintptr_t)b;
}

/* Joins a range with the one after it if they touch. */
static void join(struct range *range)
{
	struct range *next = range->next;
	if (!next || !adjoin(range, next)) return;
	size_t len = next->len, fresh = next->fresh;
	range->next = next->next;
	range->len += len;
	if (fresh + sizeof *next < len) {
		range->fresh = fresh;
	} else {
		memset(next, 0, sizeof *next);
		range->fresh += len;
	}
}

static void give_back(void *start, size_t len, size_t fresh)
{
	struct range **at = &free_ranges, *before = 0, *range = start;
	while (*at && *at < range) before = *at, at = &before->next;
	*range = (struct range){ *at, len, fresh };
	*at = range;
	join(range);
	if (before) join(before);
}

/* More memory, as a free range. */
static int grow(size_t len)
{
	size_t pages = (len + WASM_PAGE - 1) / WASM_PAGE;
	size_t before = __builtin_wasm_memory_grow(0, pages);
	if (before == (size_t)-1) return -ENOMEM;
	give_back((void *)(before * WASM_PAGE), pages * WASM_PAGE, pages * WASM_PAGE - sizeof(struct range));
	return 0;
}

/* The part of memory between the program's variables and the end that it started with. */
static void adopt_first_heap(void)
{
	extern char __heap_base, __heap_end;
	static int done;
	if (done) return;
	done = 1;
	uintptr_t start = ((uintptr_t)&__heap_base + PAGE - 1) & -PAGE, end = (uintptr_t)&__heap_end & -PAGE;
	if (end > start) give_back((void *)start, end - start, end - start - sizeof(struct range));
}

static void *take(size_t len)
{
	for (struct range **at = &free_ranges; *at; at = &(*at)->next) {
		struct range *range = *at;
		if (range->len < len) continue;
		size_t left = range->len - len, fresh = range->fresh;
		if (left) {
			struct range *rest = (void *)((char *)range + len);
			size_t rest_fresh = fresh < left - sizeof *rest ? fresh : left - sizeof *rest;
			*rest = (struct range){ range->next, left, rest_fresh };
			*at = rest;
		} else {
			*at = range->next;
		}
		/* Of the bytes taken, those before the fresh ones. */
		size_t fresh_start = left + len - fresh;
		memset(range, 0, fresh_start < len ? fresh_start : len);
		return range;
	}
	return 0;
}

static void *map(size_t len)
{
	adopt_first_heap();
	void *start = take(len);
	if (!start && !grow(len)) start = take(len);
	return start;
}

static size_t rounded(size_t len)
{
	return (len + PAGE - 1) & -PAGE;
}

/* A shared mapping of a file. The description lies in memory of its own, followed by what the file had: only bytes that the
   program changed are written, so that two mappings of one file, or a copy of the process, do not undo each other's work. */
struct shared {
	struct shared *next;
	char *start, *before;
	/* Bytes of the mapping, and of the file in it. */
	size_t len, used;
	uint64_t offset;
	/* A descriptor of its own, or -1 if the mapping is only read. */
	int fd;
};

static struct shared *shared_mappings;

static struct shared **find_shared(const char *start)
{
	struct shared **at = &shared_mappings;
	while (*at && !((*at)->start <= start && start < (*at)->start + (*at)->len)) at = &(*at)->next;
	return at;
}

/* Reads a part of a file; the rest of the memory stays zero. */
static int read_in(char *to, size_t len, int fd, uint64_t offset)
{
	for (size_t done = 0, got = 1; done < len && got; done += got) {
		struct wasi_part part = { to + done, len - done };
		int error = wasi_fd_pread(fd, &part, 1, offset + done, &got);
		if (error) return error;
	}
	return 0;
}

static int write_out(const char *from, size_t len, int fd, uint64_t offset)
{
	for (size_t done = 0, put = 0; done < len; done += put) {
		struct wasi_part part = { (char *)from + done, len - done };
		int error = wasi_fd_pwrite(fd, &part, 1, offset + done, &put);
		if (error) return error;
	}
	return 0;
}

/* Writes the runs of bytes that were changed. */
static int write_back(struct shared *shared)
{
	if (shared->fd < 0) return 0;
	const char *now = shared->start;
	for (size_t at = 0; at < shared->used;) {
		size_t step = shared->used - at < PAGE ? shared->used - at : PAGE;
		if (!memcmp(now + at, shared->before + at, step)) {
			at += step;
			continue;
		}
		while (now[at] == shared->before[at]) at++;
		size_t end = at;
		while (end < shared->used && now[end] != shared->before[end]) end++;
		int error = write_out(now + at, end - at, shared->fd, shared->offset + at);
		if (error) return error;
		memcpy(shared->before + at, now + at, end - at);
		at = end;
	}
	return 0;
}

int __wardian_write_mappings(void)
{
	int first = 0;
	for (struct shared *shared = shared_mappings; shared; shared = shared->next) {
		int error = write_back(shared);
		if (!first) first = error;
	}
	return first;
}

static long forget_shared(struct shared **at)
{
	struct shared *shared = *at;
	int error = write_back(shared);
	*at = shared->next;
	if (shared->fd >= 0) wasi_fd_close(shared->fd);
	give_back(shared->start, shared->len, 0);
	give_back(shared, rounded(sizeof *shared + (shared->fd < 0 ? 0 : shared->used)), 0);
	return answer(error);
}

/* Checks that a file can be mapped like this, and finds how much of it there is. */
static long can_share(int prot, int fd, uint64_t offset, size_t len, size_t *used)
{
	struct kernel_stat stat;
	struct wasi_fdstat state;
	int error = k_fstat(fd, &stat);
	if (!error) error = wasi_fd_fdstat_get(fd, &state);
	if (error) return answer(error);
	if (!S_ISREG(stat.mode)) return -ENODEV;
	if (!(state.rights & RIGHT_READ) || (prot & PROT_WRITE && !(state.rights & RIGHT_WRITE))) return -EACCES;
	/* What is written through such a descriptor goes to the end of the file. */
	if (prot & PROT_WRITE && state.flags & FDFLAG_APPEND) return -ENODEV;
	*used = stat.size <= offset ? 0 : stat.size - offset < len ? stat.size - offset : len;
	return 0;
}

static long share(size_t len, int prot, int fd, uint64_t offset)
{
	size_t used = 0;
	long failure = can_share(prot, fd, offset, len, &used);
	if (failure) return failure;
	int own = -1, writes = prot & PROT_WRITE;
	size_t beside = rounded(sizeof(struct shared) + (writes ? used : 0));
	char *start = map(rounded(len));
	struct shared *shared = start ? map(beside) : 0;
	int error = shared ? read_in(start, used, fd, offset) : 0;
	if (shared && !error && writes) error = k_dup(fd, 64, 1, &own);
	if (!shared || error) {
		if (start) give_back(start, rounded(len), 0);
		if (shared) give_back(shared, beside, 0);
		return shared ? answer(error) : -ENOMEM;
	}
	*shared = (struct shared){ shared_mappings, start, (char *)(shared + 1), rounded(len), used, offset, own };
	if (writes) memcpy(shared->before, start, used);
	shared_mappings = shared;
	return (long)start;
}

static long mapped(size_t len, int prot, int flags, int fd, uint64_t offset)
{
	if (!len || len > PTRDIFF_MAX) return len ? -ENOMEM : -EINVAL;
	if (flags & MAP_FIXED) return -EINVAL;
	int of_file = !(flags & MAP_ANONYMOUS);
	if (of_file && (flags & MAP_TYPE) != MAP_PRIVATE) return share(len, prot, fd, offset);
	char *start = map(rounded(len));
	if (!start) return -ENOMEM;
	int error = of_file ? read_in(start, len, fd, offset) : 0;
	if (error) give_back(start, rounded(len), 0);
	return error ? answer(error) : (long)start;
}

/* A shared mapping goes whole or not at all. */
static long unmapped(char *start, size_t len)
{
	struct shared **at = find_shared(start);
	if (!*at) {
		give_back(start, len, 0);
		return 0;
	}
	return (*at)->start == start && (*at)->len == len ? forget_shared(at) : -EINVAL;
}

/* With another length: mapped anew, from the file. */
static long reshared(struct shared *shared, char *start, size_t old, size_t new, int flags)
{
	if (shared->start != start || shared->len != rounded(old) || !(flags & MREMAP_MAYMOVE)) return -EINVAL;
	if (shared->fd < 0) return -EINVAL;
	int error = write_back(shared);
	if (error) return answer(error);
	long moved = share(new, PROT_READ | PROT_WRITE, shared->fd, shared->offset);
	if (moved < 0 && moved > -PAGE) return moved;
	forget_shared(find_shared(start));
	return moved;
}

static long synced(uintptr_t start, size_t len)
{
	if (start & (PAGE - 1)) return -EINVAL;
	for (struct shared *shared = shared_mappings; shared; shared = shared->next) {
		uintptr_t own = (uintptr_t)shared->start;
		int error = start < own + shared->len && own < start + len ? write_back(shared) : 0;
		if (error) return answer(error);
	}
	return 0;
}

static long remapped(char *start, size_t old, size_t new, int flags)
{
	struct shared *shared = *find_shared(start);
	if (!new || new > PTRDIFF_MAX) return -EINVAL;
	if (shared) return reshared(shared, start, old, new, flags);
	old = rounded(old), new = rounded(new);
	if (new < old) give_back(start + new, old - new, 0);
	if (new <= old) return (long)start;
	/* In place, where what follows is free. */
	for (struct range **at = &free_ranges; *at && (char *)*at <= start + old; at = &(*at)->next) {
		struct range *range = *at;
		if ((char *)range != start + old || range->len < new - old) continue;
		struct range rest = *range;
		size_t left = rest.len - (new - old);
		memset(range, 0, new - old);
		if (left) {
			struct range *later = (void *)(start + new);
			*later = (struct range){ rest.next, left, rest.fresh < left - sizeof *later ? rest.fresh : left - sizeof *later };
			*at = later;
		} else {
			*at = rest.next;
		}
		return (long)start;
	}
	if (!(flags & MREMAP_MAYMOVE)) return -ENOMEM;
	char *to = map(new);
	if (!to) return -ENOMEM;
	memcpy(to, start, old);
	give_back(start, old, 0);
	return (long)to;
}

long __wardian_memory_calls(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_mmap2:
		return mapped(b, c, d, e, (uint64_t)(unsigned long)f * PAGE);
	case SYS_munmap:
		if (a & (PAGE - 1) || !b) return -EINVAL;
		return unmapped((char *)a, rounded(b));
	case SYS_mremap:
		return remapped((char *)a, b, c, d);
	case SYS_brk:
		return 0;
	case SYS_msync:
		return synced(a, b);
	case SYS_mprotect:
		/* The file of a mapping that was made to be read is not written. */
		return c & PROT_WRITE && *find_shared((char *)a) && (*find_shared((char *)a))->fd < 0 ? -EACCES : 0;
	case SYS_madvise: case SYS_mlock: case SYS_munlock: case SYS_mlockall: case SYS_munlockall:
		/* All of a process's memory is there, and its own. */
		return 0;
	}
	return -ENOSYS;
}
