/* Memory by the page: mmap, munmap and mremap over memory.grow. malloc takes its blocks from here.

   WebAssembly's memory only grows. What is unmapped goes into a list of free ranges, in order of address, and is given out
   again, zeroed. Files can be mapped privately (they are read in); shared mappings of files cannot exist. */
#include "kernel.h"
#include <sys/mman.h>
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

static long mapped(size_t len, int flags, int fd, uint64_t offset)
{
	if (!len || len > PTRDIFF_MAX) return len ? -ENOMEM : -EINVAL;
	if (flags & MAP_FIXED) return -EINVAL;
	int of_file = !(flags & MAP_ANONYMOUS);
	if (of_file && (flags & MAP_TYPE) != MAP_PRIVATE) return -ENODEV;
	char *start = map(rounded(len));
	if (!start) return -ENOMEM;
	for (size_t done = 0, got = 1; of_file && done < len && got; done += got) {
		struct wasi_part part = { start + done, len - done };
		int error = wasi_fd_pread(fd, &part, 1, offset + done, &got);
		if (error) {
			give_back(start, rounded(len), 0);
			return answer(error);
		}
	}
	return (long)start;
}

static long remapped(char *start, size_t old, size_t new, int flags)
{
	old = rounded(old), new = rounded(new);
	if (!new || new > PTRDIFF_MAX) return -EINVAL;
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
		return mapped(b, d, e, (uint64_t)(unsigned long)f * PAGE);
	case SYS_munmap:
		if (a & (PAGE - 1) || !b) return -EINVAL;
		give_back((void *)a, rounded(b), 0);
		return 0;
	case SYS_mremap:
		return remapped((char *)a, b, c, d);
	case SYS_brk:
		return 0;
	case SYS_mprotect: case SYS_madvise: case SYS_msync: case SYS_mlock: case SYS_munlock: case SYS_mlockall: case SYS_munlockall:
		/* All of a process's memory is there, and its own. */
		return 0;
	}
	return -ENOSYS;
}
