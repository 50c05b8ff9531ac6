// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of objects. It is kept by class when an object is closed, and given to
 * a later one of that class, so that it grows with the number of objects that
 * are open at a time, and what is called for a closed one still finds a fid that
 * says so. Called by every file that opens something.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define CLASSES		32
/* So many of a class are closed before the memory of the first is used again. */
#define REST		16

/* In front of each object. */
struct memory {
	struct list node;	/* of those that are open, or closed */
	size_t fclass;
	max_align_t object[];
};

static struct {
	struct list open, closed;
	size_t nclosed;
} classes[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void classes_init(void)
{
	size_t i;

	for (i = 0; i < CLASSES; i++) {
		list_init(&classes[i].open);
		list_init(&classes[i].closed);
	}
}

/* The oldest that is closed. */
static struct memory *take(size_t fclass)
{
	struct memory *memory;

	memory = container(classes[fclass].closed.next, struct memory, node);
	list_remove(&memory->node);
	classes[fclass].nclosed--;
	return memory;
}

void *object_new(size_t size, size_t fclass, void *context, struct fi_ops *ops)
{
	struct memory *memory = NULL;
	struct fid *fid;

	pthread_mutex_lock(&lock);
	if (classes[fclass].nclosed > REST)
		memory = take(fclass);
	else
		memory = malloc(sizeof(*memory) + size);
	if (memory) {
		list_add(&classes[fclass].open, &memory->node);
		memory->fclass = fclass;
		memset(memory->object, 0, size);
	}
	pthread_mutex_unlock(&lock);
	if (!memory)
		return NULL;
	fid = (struct fid *)(void *)memory->object;
	fid->fclass = fclass;
	fid->context = context;
	fid->ops = ops;
	return fid;
}

void object_free(void *object)
{
	struct memory *memory = container(object, struct memory, object);
	struct fid *fid = object;

	pthread_mutex_lock(&lock);
	fid->fclass = FI_CLASS_UNSPEC;
	list_remove(&memory->node);
	list_add(&classes[memory->fclass].closed, &memory->node);
	classes[memory->fclass].nclosed++;
	pthread_mutex_unlock(&lock);
}

bool object_mine(const struct fid *fid, size_t fclass)
{
	struct list *node, *after;
	bool found = false;

	if (!object_is(fid, fclass))
		return false;
	pthread_mutex_lock(&lock);
	list_each(node, after, &classes[fclass].open)
		found |= (const void *)container(node, struct memory,
						 node)->object == fid;
	pthread_mutex_unlock(&lock);
	return found;
}

void object_cleanup(void)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < CLASSES; i++)
		while (classes[i].nclosed)
			free(take(i));
	pthread_mutex_unlock(&lock);
}

static int not_offered(const struct fid *fid)
{
	return fid->fclass == FI_CLASS_UNSPEC ? -FI_EBADF : -FI_ENOSYS;
}

int no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)other;
	(void)flags;
	return not_offered(fid);
}

int no_control(struct fid *fid, int command, void *arg)
{
	(void)command;
	(void)arg;
	return not_offered(fid);
}

int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		void *context)
{
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return not_offered(fid);
}
