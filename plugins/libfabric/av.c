// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Address vectors. A fi_addr_t is an index, the lowest free one, in maps and
 * tables alike; nobody is asked whether somebody is there before something is
 * sent. Used by domain.c; endpoints look up in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "provider.h"

#define FIRST_SIZE	64
#define COUNT_MAX	(1u << 28)	/* addresses */
#define INSERT_FLAGS	(FI_MORE | FI_SYNC_ERR)

static struct av *av_of(struct fid_av *fid)
{
	return container(fid, struct av, fid);
}

static bool is_open(const struct fid_av *fid)
{
	return object_is(&fid->fid, FI_CLASS_AV);
}

const struct address *av_address(const struct av *av, fi_addr_t addr)
{
	return addr < av->size && av->entries[addr].used ?
	       &av->entries[addr].address : NULL;
}

fi_addr_t av_find(const struct av *av, const struct address *address)
{
	fi_addr_t addr;

	for (addr = 0; addr < av->size; addr++)
		if (av->entries[addr].used &&
		    address_same(&av->entries[addr].address, address))
			return addr;
	return FI_ADDR_NOTAVAIL;
}

static int grow(struct av *av, size_t size)
{
	struct av_entry *entries;

	if (size <= av->size)
		return 0;
	if (size > COUNT_MAX)
		return -FI_ENOMEM;
	entries = realloc(av->entries, size * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	memset(entries + av->size, 0, (size - av->size) * sizeof(*entries));
	av->entries = entries;
	av->size = size;
	return 0;
}

static void tell(struct av *av, fi_addr_t addr)
{
	struct list *node, *after;
	struct endpoint *ep;

	list_each(node, after, &av->endpoints) {
		ep = container(node, struct endpoint, of_av);
		if (ep->addr_changed)
			ep->addr_changed(ep, addr);
	}
}

/* Where just this address is, with this nonce or none; FI_ADDR_NOTAVAIL. */
static fi_addr_t place_of(const struct av *av, const struct address *address)
{
	size_t at;

	for (at = 0; at < av->size; at++)
		if (av->entries[at].used &&
		    av->entries[at].address.nonce == address->nonce &&
		    address_same(&av->entries[at].address, address))
			return at;
	return FI_ADDR_NOTAVAIL;
}

/*
 * The lowest free place; with the lock. A peer has one number, however often it is
 * inserted: Open MPI receives from one and has inserted it as another before.
 */
static int put(struct av *av, const struct address *address, fi_addr_t *addr)
{
	fi_addr_t known = place_of(av, address);
	size_t at = av->lowest;
	int ret;

	if (known != FI_ADDR_NOTAVAIL) {
		av->entries[known].used++;
		*addr = known;
		return 0;
	}
	while (at < av->size && av->entries[at].used)
		at++;
	av->lowest = at;
	if (at == av->size) {
		ret = grow(av, at < FIRST_SIZE ? FIRST_SIZE : 2 * at);
		if (ret)
			return ret;
	}
	av->entries[at].address = *address;
	av->entries[at].used = 1;
	av->lowest = at + 1;
	*addr = at;
	tell(av, at);
	return 0;
}

/* ---- what an insertion reports ----------------------------------------- */

struct insertion {
	struct av *av;
	fi_addr_t *addrs;	/* the program's, or NULL */
	int *errors;		/* the same, with FI_SYNC_ERR */
	void *context;
	size_t at, done;
};

static int insertion_begin(struct insertion *insertion, struct fid_av *fid,
			   fi_addr_t *addrs, uint64_t flags, void *context)
{
	struct av *av = av_of(fid);

	if (!is_open(fid))
		return -FI_EBADF;
	if (flags & ~INSERT_FLAGS) {
		INFO(FI_LOG_AV, "flags 0x%llx of an insertion are not offered\n",
		     (unsigned long long)(flags & ~INSERT_FLAGS));
		return -FI_EBADFLAGS;
	}
	if (av->async && !av->eq) {
		INFO(FI_LOG_AV,
		     "an address vector with FI_EVENT has no event queue: fi_av_bind()\n");
		return -FI_ENOEQ;
	}
	if (av->async && flags & FI_SYNC_ERR)
		return -FI_EBADFLAGS;
	if (flags & FI_SYNC_ERR && !context)
		return -FI_EINVAL;
	if (!addrs && av->type == FI_AV_MAP) {
		INFO(FI_LOG_AV, "an insertion into a map needs fi_addr\n");
		return -FI_EINVAL;
	}
	*insertion = (struct insertion){
		.av = av,
		.addrs = addrs,
		.errors = flags & FI_SYNC_ERR ? context : NULL,
		.context = context,
	};
	return 0;
}

/* The next address, or why there is none. */
static void insertion_add(struct insertion *insertion,
			  const struct address *address, int error)
{
	struct av *av = insertion->av;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	size_t at = insertion->at++;

	if (!error) {
		domain_lock(av->domain);
		error = put(av, address, &addr);
		domain_unlock(av->domain);
	}
	if (insertion->addrs)
		insertion->addrs[at] = addr;
	if (insertion->errors)
		insertion->errors[at] = -error;
	insertion->done += !error;
	if (error && av->async)
		eq_error(av->eq, &av->fid.fid, insertion->context, at, -error,
			 error);
}

static int insertion_end(struct insertion *insertion)
{
	struct av *av = insertion->av;
	struct fi_eq_entry entry = {
		.fid = &av->fid.fid,
		.context = insertion->context,
		.data = insertion->done,
	};

	if (!av->async)
		return (int)insertion->done;
	return eq_event(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
}

/* ---- the ways to say an address ---------------------------------------- */

/* Text that a program's pointer leads to, which may be none. */
static bool read_text(const char *from, char text[ADDRESS_MAX])
{
	struct iovec local = { .iov_base = text, .iov_len = ADDRESS_MAX };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)from,
				.iov_len = ADDRESS_MAX };
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return n > 0 && memchr(text, '\0', (size_t)n);
}

/*
 * FI_ADDR_STR has two readings: the addresses side by side, which is what
 * programs do that know nothing of formats, or an array of pointers to them,
 * as fi_av(3) has it. No pointer looks like the beginning of an address. Side by
 * side, zeroes may follow each: getname gives all the same length.
 */
struct source {
	const char *text;
	const char *const *texts;
};

static void source_begin(struct source *source, const void *addr, size_t count)
{
	const uint64_t *word = addr;
	uint64_t first = 0, prefix;

	memcpy(&prefix, ADDRESS_PREFIX, sizeof(prefix));
	source->text = addr;
	source->texts = NULL;
	if (!count || strncmp(addr, ADDRESS_PREFIX, sizeof(prefix)) == 0)
		return;
	/* Of a shorter text, nothing behind its end is read. */
	if (strnlen(addr, sizeof(first)) == sizeof(first) ||
	    !((uintptr_t)addr % sizeof(void *)))
		memcpy(&first, word, sizeof(first));
	if (first && first != prefix && first < UINT64_C(1) << 57)
		source->texts = addr;
}

static bool source_text(struct source *source, bool more, char text[ADDRESS_MAX])
{
	size_t len;

	if (source->texts)
		return read_text(*source->texts++, text);
	len = strnlen(source->text, ADDRESS_MAX);
	if (len == ADDRESS_MAX)
		return false;
	memcpy(text, source->text, len + 1);
	while (more && len < ADDRESS_MAX && !source->text[len])
		len++;
	source->text += len;
	return true;
}

static int source_next(struct source *source, bool more, struct address *address)
{
	char text[ADDRESS_MAX];

	if (source_text(source, more, text))
		return address_parse(text, address);
	INFO(FI_LOG_AV, "an address to insert is no text of at most %d characters\n",
	     ADDRESS_MAX - 1);
	return -FI_EINVAL;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct insertion insertion;
	struct address address;
	struct source source;
	int ret, error;

	ret = insertion_begin(&insertion, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	if ((!addr && count) || count > COUNT_MAX)
		return -FI_EINVAL;
	source_begin(&source, addr, count);
	while (insertion.at < count) {
		error = source_next(&source, insertion.at + 1 < count, &address);
		insertion_add(&insertion, &address, error);
		/* Where the next one would begin is not known. */
		if (error && !source.texts)
			break;
	}
	while (insertion.at < count)
		insertion_add(&insertion, NULL, -FI_ECANCELED);
	return insertion_end(&insertion);
}

static int av_insertsvc(struct fid_av *fid, const char *node,
			const char *service, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct insertion insertion;
	struct address address;
	int ret;

	ret = insertion_begin(&insertion, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	if (!node && !service)
		return -FI_EINVAL;
	ret = address_resolve(NULL, node, service, &address);
	insertion_add(&insertion, &address, ret);
	return insertion_end(&insertion);
}

/* NAME, and a number that counts up behind it. */
static int split_name(const char *node, char stem[32], unsigned long *number,
		      int *width)
{
	size_t len = strlen(node), digits = 0;

	while (digits < len && node[len - digits - 1] >= '0' &&
	       node[len - digits - 1] <= '9')
		digits++;
	if (len >= 32 || !digits || digits > 9)
		return -FI_EINVAL;
	memcpy(stem, node, len - digits);
	stem[len - digits] = '\0';
	*number = strtoul(node + len - digits, NULL, 10);
	*width = node[len - digits] == '0' ? (int)digits : 1;
	return 0;
}

static int insert_range(struct insertion *insertion, const char *node,
			const char *service, size_t svccnt)
{
	struct address address;
	uint64_t first;
	size_t i;
	int ret;

	ret = address_resolve(NULL, node, service, &address);
	first = address.service;
	for (i = 0; i < svccnt; i++) {
		address.service = first + i;
		insertion_add(insertion, &address, ret);
	}
	return ret;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			const char *service, size_t svccnt, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct insertion insertion;
	char stem[32], name[64];
	unsigned long number = 0;
	int ret, width = 1;
	size_t i;

	ret = insertion_begin(&insertion, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	if (!node || !service || !nodecnt || !svccnt ||
	    nodecnt > COUNT_MAX / svccnt)
		return -FI_EINVAL;
	if (nodecnt > 1 && split_name(node, stem, &number, &width)) {
		INFO(FI_LOG_AV,
		     "node \"%.60s\" of %zu has no number at its end to count from\n",
		     node, nodecnt);
		return -FI_EINVAL;
	}
	for (i = 0; i < nodecnt; i++) {
		if (nodecnt > 1)
			snprintf(name, sizeof(name), "%s%0*lu", stem, width,
				 number + i);
		insert_range(&insertion, nodecnt > 1 ? name : node, service,
			     svccnt);
	}
	return insertion_end(&insertion);
}

/* ---- the rest ---------------------------------------------------------- */

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count,
		     uint64_t flags)
{
	struct av *av = av_of(fid);
	int ret = 0;
	size_t i;

	if (!is_open(fid))
		return -FI_EBADF;
	if (flags)
		return -FI_EBADFLAGS;
	if (!addrs && count)
		return -FI_EINVAL;
	domain_lock(av->domain);
	for (i = 0; i < count; i++) {
		if (!av_address(av, addrs[i])) {
			INFO(FI_LOG_AV, "address %llu is not there to remove\n",
			     (unsigned long long)addrs[i]);
			ret = -FI_EINVAL;
			continue;
		}
		if (--av->entries[addrs[i]].used)
			continue;
		if (addrs[i] < av->lowest)
			av->lowest = addrs[i];
		tell(av, addrs[i]);
	}
	domain_unlock(av->domain);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t addr, void *out,
		     size_t *len)
{
	const struct address *address;
	struct av *av = av_of(fid);
	char text[ADDRESS_MAX];
	size_t need = 0, room;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!len || (!out && *len))
		return -FI_EINVAL;
	domain_lock(av->domain);
	address = av_address(av, addr);
	if (address)
		need = address_format(address, text);
	domain_unlock(av->domain);
	if (!address)
		return -FI_EINVAL;
	room = *len;
	*len = need;
	if (room)
		memcpy(out, text, room < need ? room : need);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	size_t need, room;

	(void)fid;
	if (!addr || !len || (!buf && *len))
		return NULL;
	need = strnlen(addr, ADDRESS_MAX - 1);
	room = *len;
	*len = need + 1;
	if (!room)
		return buf;
	if (need >= room)
		need = room - 1;
	memcpy(buf, addr, need);
	buf[need] = '\0';
	return buf;
}

static int no_av_set(struct fid_av *fid, struct fi_av_set_attr *attr,
		     struct fid_av_set **set, void *context)
{
	(void)fid;
	(void)attr;
	(void)set;
	(void)context;
	return -FI_ENOSYS;
}

static int av_close(struct fid *fid)
{
	struct av *av = container(fid, struct av, fid.fid);
	struct domain *domain;

	if (!object_is(fid, FI_CLASS_AV))
		return -FI_EBADF;
	domain = av->domain;
	domain_lock(domain);
	if (av->users) {
		INFO(FI_LOG_AV,
		     "%d endpoints are still bound to an address vector: close them first\n",
		     av->users);
		domain_unlock(domain);
		return -FI_EBUSY;
	}
	domain->users--;
	domain_unlock(domain);
	eq_drop(av->eq);
	free(av->entries);
	object_free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct av *av = container(fid, struct av, fid.fid);

	if (!object_is(fid, FI_CLASS_AV))
		return -FI_EBADF;
	if (flags)
		return -FI_EBADFLAGS;
	if (av->eq)
		return -FI_EINVAL;
	av->eq = eq_hold(other);
	return av->eq ? 0 : -FI_EINVAL;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = no_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = no_av_set,
};

/* FI_SYMMETRIC promises something that is of no use here. */
static int check_attr(const struct fi_av_attr *attr)
{
	const uint64_t known = FI_EVENT | FI_SYMMETRIC;
	const char *field = NULL;

	if (attr->name)
		field = "name: address vectors are not shared among processes";
	else if (attr->flags & ~known)
		field = "flags: only FI_EVENT and FI_SYMMETRIC are";
	else if (attr->rx_ctx_bits)
		field = "rx_ctx_bits: there are no scalable endpoints";
	else if (attr->type > FI_AV_TABLE)
		field = "type";
	else if (attr->count > COUNT_MAX)
		field = "count";
	if (!field)
		return 0;
	INFO(FI_LOG_AV, "fi_av_attr: not offered: %s\n", field);
	return attr->name || attr->flags & ~known ? -FI_ENOSYS : -FI_EINVAL;
}

int av_open(struct fid_domain *fid, struct fi_av_attr *attr,
	    struct fid_av **out, void *context)
{
	struct av *av;
	int ret;

	if (!object_is(&fid->fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	if (!attr || !out)
		return -FI_EINVAL;
	ret = check_attr(attr);
	if (ret)
		return ret;
	av = object_new(sizeof(*av), FI_CLASS_AV, context, &fid_ops);
	if (!av)
		return -FI_ENOMEM;
	av->fid.ops = &av_ops;
	av->domain = container(fid, struct domain, fid);
	av->type = attr->type ? attr->type : FI_AV_TABLE;
	av->async = attr->flags & FI_EVENT;
	list_init(&av->endpoints);
	ret = attr->count ? grow(av, attr->count) : 0;
	if (ret) {
		object_free(av);
		return ret;
	}
	attr->type = av->type;
	domain_hold(av->domain);
	*out = &av->fid;
	return 0;
}
