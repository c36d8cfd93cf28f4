/* Names of hosts: the kernel answers for all of them, and no program here asks a name server. */
#include "kernel.h"
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <lookup.h>

/* As in docs/abi.md. */
struct found {
	uint32_t family;
	uint8_t address[16];
};

static int failure(int error)
{
	switch (error) {
	case ENOENT: return EAI_NONAME;
	case EAGAIN: return EAI_AGAIN;
	}
	return EAI_FAIL;
}

static int wildcard_or_loopback(struct address *out, int family, int flags)
{
	struct address four = { .family = AF_INET }, six = { .family = AF_INET6 };
	int count = 0;
	if (!(flags & AI_PASSIVE)) four.addr[0] = 127, four.addr[3] = six.addr[15] = 1;
	if (family != AF_INET6) out[count++] = four;
	if (family != AF_INET) out[count++] = six;
	return count;
}

/* IPv4 first, since that is where most servers here listen. */
static int ask(struct address *out, const char *name, int family, int flags)
{
	struct found found[2];
	uint32_t count;
	int error = k_look_up(name, strlen(name), found, 2, &count), kept = 0;
	if (error) return failure(__wardian_errno(error));
	int mapped = flags & AI_V4MAPPED && family == AF_INET6;
	for (uint32_t i = 0; i < count; i++) {
		if (family != AF_UNSPEC && family != (int)found[i].family && !mapped) continue;
		struct address *one = &out[kept++];
		*one = (struct address){ .family = found[i].family };
		memcpy(one->addr, found[i].address, 16);
		if (!mapped || one->family != AF_INET) continue;
		one->family = AF_INET6;
		memset(one->addr, 0, 16);
		one->addr[10] = one->addr[11] = 255;
		memcpy(one->addr + 12, found[i].address, 4);
	}
	return kept ? kept : EAI_NONAME;
}

int __lookup_name(struct address out[static MAXADDRS], char canonical[static 256], const char *name, int family, int flags)
{
	*canonical = 0;
	if (!name) return wildcard_or_loopback(out, family, flags);
	size_t len = strnlen(name, 255);
	if (!len || len > 254) return EAI_NONAME;
	memcpy(canonical, name, len + 1);
	int count = __lookup_ipliteral(out, name, family);
	if (count) return count;
	return flags & AI_NUMERICHOST ? EAI_NONAME : ask(out, name, family, flags);
}

/* There is no name server to send anything to. */
int __res_msend(int count, const unsigned char *const *queries, const int *query_lens, unsigned char *const *answers,
	int *answer_lens, int room)
{
	return -1;
}
