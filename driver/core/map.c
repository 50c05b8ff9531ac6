// SPDX-License-Identifier: GPL-2.0-only
/*
 * What processes map: rings, doorbells, windows, the watch page. Each has a
 * cookie, an offset for mmap(), in its open file. Called by queue.c, window.c,
 * watch.c, the VFS and page faults.
 *
 * Registers are mapped one fault at a time and never by mmap() itself, because
 * a mapping could not be zapped before mmap() has finished. Each open file has
 * an inode of its own, so that unmap_mapping_range() can take a cookie's pages
 * away from every process that has mapped them. The next fault finds a dummy
 * page. map->live changes with map_lock held for writing, and faults hold it
 * for reading: no register page is inserted after the zap.
 *
 * Rings are memory, and mappings hold a reference: so they stay as they are.
 */
#include <linux/compat.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "memory.h"

#define FABREX_FS_MAGIC	0x66616272	/* "fabr" */
/* Maximum of pages of a window that one fault maps. */
#define FAULT_AROUND	512UL

static struct vfsmount *fabrex_fs_mnt;
static int fabrex_fs_count;

static int fabrex_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, FABREX_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type fabrex_fs_type = {
	.name = "fabrex",
	.owner = THIS_MODULE,
	.init_fs_context = fabrex_fs_init,
	.kill_sb = kill_anon_super,
};

/**
 * fabrex_inode_new() - create an inode for the mappings of an open file
 *
 * Context: Process; sleeps.
 * Return: the inode, or an ERR_PTR()
 */
struct inode *fabrex_inode_new(void)
{
	struct inode *inode;
	int ret;

	ret = simple_pin_fs(&fabrex_fs_type, &fabrex_fs_mnt, &fabrex_fs_count);
	if (ret)
		return ERR_PTR(ret);
	inode = alloc_anon_inode(fabrex_fs_mnt->mnt_sb);
	if (IS_ERR(inode))
		simple_release_fs(&fabrex_fs_mnt, &fabrex_fs_count);
	return inode;
}

/**
 * fabrex_inode_free() - undo fabrex_inode_new()
 * @inode: from fabrex_inode_new()
 *
 * Context: Process; sleeps.
 */
void fabrex_inode_free(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&fabrex_fs_mnt, &fabrex_fs_count);
}

static void fabrex_rings_free(struct fabrex_map *map)
{
	int i;

	for (i = 0; i < FABREX_PARTS; i++)
		if (map->ring[i])
			free_pages_exact(map->ring[i], map->geo.size[i]);
}

static void fabrex_map_release(struct kref *ref)
{
	struct fabrex_map *map = container_of(ref, struct fabrex_map, ref);

	fabrex_rings_free(map);
	if (map->dummy)
		__free_page(map->dummy);
	kfree(map);
}

/**
 * fabrex_map_put() - drop a reference
 * @map: map
 *
 * Context: Process; sleeps.
 */
void fabrex_map_put(struct fabrex_map *map)
{
	kref_put(&map->ref, fabrex_map_release);
}

static struct fabrex_map *fabrex_map_alloc(struct fabrex_file *file,
					   enum fabrex_map_kind kind,
					   vm_flags_t may, u64 length)
{
	struct fabrex_map *map;

	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	kref_init(&map->ref);
	map->file = file;
	map->kind = kind;
	map->may = may;
	map->npages = PAGE_ALIGN(length) >> PAGE_SHIFT;
	return map;
}

static struct fabrex_map *
fabrex_map_memory(struct fabrex_file *file, vm_flags_t may,
		  const struct fabrex_geometry *geo)
{
	struct fabrex_map *map;
	int i;

	map = fabrex_map_alloc(file, FABREX_MAP_RING, may, geo->total);
	if (IS_ERR(map))
		return map;
	map->geo = *geo;
	map->live = true;
	for (i = 0; i < FABREX_PARTS; i++) {
		if (!geo->size[i])
			continue;
		map->ring[i] = alloc_pages_exact(geo->size[i],
						 GFP_KERNEL_ACCOUNT |
						 __GFP_ZERO | __GFP_NOWARN);
		if (!map->ring[i]) {
			fabrex_map_put(map);
			return ERR_PTR(-ENOMEM);
		}
	}
	return map;
}

/**
 * fabrex_map_rings() - allocate memory for the rings of a queue
 * @file: owner
 * @geo:  sizes
 *
 * The memory is zeroed, and each part is physically contiguous.
 *
 * Context: Process; sleeps.
 * Return: the map, or an ERR_PTR()
 */
struct fabrex_map *fabrex_map_rings(struct fabrex_file *file,
				    const struct fabrex_geometry *geo)
{
	return fabrex_map_memory(file, VM_READ | VM_WRITE, geo);
}

/**
 * fabrex_map_watch() - allocate memory for the watch page, as ring[0]
 * @file: owner
 * @size: in bytes; equals geo.total
 *
 * The memory is zeroed. Processes can map it for reading only.
 *
 * Context: Process; sleeps.
 * Return: the map, or an ERR_PTR()
 */
struct fabrex_map *fabrex_map_watch(struct fabrex_file *file, u32 size)
{
	const struct fabrex_geometry geo = {
		.size[0] = PAGE_ALIGN(size),
		.total = size,
	};

	return fabrex_map_memory(file, VM_READ, &geo);
}

/**
 * fabrex_map_doorbell() - create a map for a doorbell, without an address yet
 * @file:   owner
 * @memory: the doorbell is memory: allocate it, zeroed, as ring[0]
 *
 * Context: Process; sleeps.
 * Return: the map, or an ERR_PTR()
 */
struct fabrex_map *fabrex_map_doorbell(struct fabrex_file *file, bool memory)
{
	struct fabrex_map *map;

	map = fabrex_map_alloc(file, FABREX_MAP_DOORBELL, VM_READ | VM_WRITE,
			       PAGE_SIZE);
	if (IS_ERR(map) || !memory)
		return map;
	map->geo.size[0] = PAGE_SIZE;
	map->ring[0] = alloc_pages_exact(PAGE_SIZE,
					 GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!map->ring[0]) {
		fabrex_map_put(map);
		return ERR_PTR(-ENOMEM);
	}
	return map;
}

/**
 * fabrex_map_window() - create a map for a window, without an address yet
 * @file:   owner
 * @may:    VM_READ and/or VM_WRITE
 * @length: in bytes
 *
 * Context: Process; sleeps.
 * Return: the map, or an ERR_PTR()
 */
struct fabrex_map *fabrex_map_window(struct fabrex_file *file, vm_flags_t may,
				     u64 length)
{
	return fabrex_map_alloc(file, FABREX_MAP_WINDOW, may, length);
}

/**
 * fabrex_map_aim() - set the address of a map
 * @map:  doorbell or window
 * @base: CPU physical address
 *
 * Context: Process; sleeps.
 */
void fabrex_map_aim(struct fabrex_map *map, phys_addr_t base)
{
	guard(rwsem_write)(&map->file->map_lock);
	map->pfn = base >> PAGE_SHIFT;
	map->live = true;
}

static void fabrex_map_zap(const struct fabrex_map *map)
{
	unmap_mapping_range(map->file->inode->i_mapping,
			    (loff_t)map->page << PAGE_SHIFT,
			    (loff_t)map->npages << PAGE_SHIFT, 1);
}

/**
 * fabrex_doorbell_park() - have the next access to a doorbell reported
 * @bell: &fabrex_queue_params.bell
 * @rung: called once, with locks of the memory management held: it must not
 *        sleep. It is not called any more when ->queue_destroy() is called, or
 *        after fabrex_port_fail()
 * @arg:  for @rung
 *
 * Takes the page away from all who have mapped it; a later access finds it
 * again. When this returns, each earlier store is visible.
 *
 * Context: Process; sleeps.
 */
void fabrex_doorbell_park(struct fabrex_map *bell, void (*rung)(void *arg),
			  void *arg)
{
	bool mapped;

	down_write(&bell->file->map_lock);
	bell->rung = rung;
	bell->arg = arg;
	WRITE_ONCE(bell->parked, 1);
	mapped = bell->live && bell->page;
	up_write(&bell->file->map_lock);
	if (mapped)
		fabrex_map_zap(bell);
}
FABREX_EXPORT(fabrex_doorbell_park);

/**
 * fabrex_map_insert() - assign a cookie to a map
 * @map: map
 *
 * Cookies are not reused while the file is open. Those of a 32-bit process have
 * to fit mmap2().
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOSPC if there are no more; -ENOMEM
 */
int fabrex_map_insert(struct fabrex_map *map)
{
	struct fabrex_file *file = map->file;
	unsigned long last = in_compat_syscall() ? U32_MAX :
			     (unsigned long)(S64_MAX >> PAGE_SHIFT);
	unsigned long page;

	xa_lock(&file->maps);
	page = file->next_page;
	if (page > last || map->npages > last - page) {
		xa_unlock(&file->maps);
		return -ENOSPC;
	}
	file->next_page = page + map->npages;
	xa_unlock(&file->maps);
	map->page = page;
	return xa_insert(&file->maps, page, map, GFP_KERNEL_ACCOUNT);
}

/**
 * fabrex_map_offset() - get the cookie of a map
 * @map: inserted
 *
 * Context: Any.
 * Return: offset for mmap(), in bytes
 */
u64 fabrex_map_offset(const struct fabrex_map *map)
{
	return (u64)map->page << PAGE_SHIFT;
}

/**
 * fabrex_map_kill() - replace registers by a dummy page in all mappings
 * @map: doorbell or window, in whatever state
 *
 * When it returns, no process can access the registers through the map.
 *
 * Context: Process; sleeps.
 */
void fabrex_map_kill(struct fabrex_map *map)
{
	struct fabrex_file *file = map->file;
	bool was;

	down_write(&file->map_lock);
	was = map->live;
	map->live = false;
	up_write(&file->map_lock);
	if (was && map->page)
		fabrex_map_zap(map);
}

/**
 * fabrex_map_remove() - remove the cookie and drop the owner's reference
 * @map: or NULL
 *
 * Context: Process; sleeps.
 */
void fabrex_map_remove(struct fabrex_map *map)
{
	if (!map)
		return;
	if (map->page)
		xa_cmpxchg(&map->file->maps, map->page, map, NULL, 0);
	fabrex_map_put(map);
}

/* Takes the place of registers that are gone. What is stored in it is visible
 * only to those who have mapped the same cookie.
 */
static struct page *fabrex_dummy_page(struct fabrex_map *map)
{
	struct page *page = READ_ONCE(map->dummy);

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (page && cmpxchg(&map->dummy, NULL, page)) {
		__free_page(page);
		page = READ_ONCE(map->dummy);
	}
	return page;
}

static vm_fault_t fabrex_dummy_fault(struct vm_fault *vmf,
				     struct fabrex_map *map)
{
	struct vm_area_struct *vma = vmf->vma;
	struct page *page = fabrex_dummy_page(map);

	if (!page)
		return VM_FAULT_OOM;
	return vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(page),
				   vm_get_page_prot(vma->vm_flags));
}

/* Map the page that faulted, then as many neighbours as possible. */
static vm_fault_t fabrex_io_insert(struct vm_fault *vmf,
				   const struct fabrex_map *map)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long index = vmf->pgoff - map->page;
	unsigned long first = round_down(index, FAULT_AROUND);
	unsigned long last = min(first + FAULT_AROUND, map->npages);
	unsigned long addr, i;
	vm_fault_t ret;

	ret = vmf_insert_pfn(vma, vmf->address & PAGE_MASK, map->pfn + index);
	for (i = first; i < last && ret == VM_FAULT_NOPAGE; i++) {
		if (map->page + i < vma->vm_pgoff)
			continue;
		addr = vma->vm_start +
		       ((map->page + i - vma->vm_pgoff) << PAGE_SHIFT);
		if (addr >= vma->vm_end)
			break;
		if (vmf_insert_pfn(vma, addr, map->pfn + i) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

static vm_fault_t fabrex_io_fault(struct vm_fault *vmf)
{
	struct fabrex_map *map = vmf->vma->vm_private_data;
	struct fabrex_file *file = map->file;

	if (vmf->pgoff - map->page >= map->npages)
		return VM_FAULT_SIGBUS;
	guard(rwsem_read)(&file->map_lock);
	if (!map->live)
		return fabrex_dummy_fault(vmf, map);
	if (READ_ONCE(map->parked) && xchg(&map->parked, 0))
		map->rung(map->arg);
	return fabrex_io_insert(vmf, map);
}

static struct page *fabrex_ring_page(const struct fabrex_map *map, u64 offset)
{
	const struct fabrex_geometry *geo = &map->geo;
	int i;

	for (i = 0; i < FABREX_PARTS; i++)
		if (offset >= geo->offset[i] &&
		    offset - geo->offset[i] < geo->size[i])
			return virt_to_page(map->ring[i] + offset -
					    geo->offset[i]);
	return NULL;
}

static vm_fault_t fabrex_ring_fault(struct vm_fault *vmf)
{
	struct fabrex_map *map = vmf->vma->vm_private_data;
	struct page *page;

	page = fabrex_ring_page(map, (u64)(vmf->pgoff - map->page) <<
				     PAGE_SHIFT);
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

static void fabrex_vma_open(struct vm_area_struct *vma)
{
	struct fabrex_map *map = vma->vm_private_data;

	kref_get(&map->ref);
}

static void fabrex_vma_close(struct vm_area_struct *vma)
{
	fabrex_map_put(vma->vm_private_data);
}

static const struct vm_operations_struct fabrex_io_vm_ops = {
	.open = fabrex_vma_open,
	.close = fabrex_vma_close,
	.fault = fabrex_io_fault,
};

static const struct vm_operations_struct fabrex_ring_vm_ops = {
	.open = fabrex_vma_open,
	.close = fabrex_vma_close,
	.fault = fabrex_ring_fault,
};

static struct fabrex_map *fabrex_map_find(struct fabrex_file *file,
					  unsigned long page)
{
	struct fabrex_map *map;

	xa_lock(&file->maps);
	map = xa_load(&file->maps, page);
	if (map)
		kref_get(&map->ref);
	xa_unlock(&file->maps);
	return map;
}

static int fabrex_map_check(const struct fabrex_map *map,
			    struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE) || vma_pages(vma) > map->npages)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (vma->vm_flags & (VM_READ | VM_WRITE) & ~map->may)
		return -EACCES;
	return 0;
}

static void fabrex_map_attach(struct fabrex_map *map,
			      struct vm_area_struct *vma)
{
	vm_flags_t never = VM_MAYEXEC;

	if (!(map->may & VM_READ))
		never |= VM_MAYREAD;
	if (!(map->may & VM_WRITE))
		never |= VM_MAYWRITE;
	vm_flags_clear(vma, never);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = map;
	if (map->kind == FABREX_MAP_RING) {
		vma->vm_ops = &fabrex_ring_vm_ops;
		return;
	}
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	if (map->kind == FABREX_MAP_WINDOW)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else if (!map->ring[0])
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &fabrex_io_vm_ops;
}

/**
 * fabrex_mmap() - map what a cookie names
 * @filp: file
 * @vma:  mapping that is being created
 *
 * The offset is the cookie; a part may be mapped, from the start.
 *
 * Context: Process; sleeps.
 * Return: 0; -EINVAL if there is no such cookie, the mapping is larger, or it
 * is private; -EACCES if it requests more rights than there are; -EPERM if it
 * is to be executable
 */
int fabrex_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct fabrex_file *file = filp->private_data;
	struct fabrex_map *map;
	int ret;

	map = fabrex_map_find(file, vma->vm_pgoff);
	if (!map)
		return -EINVAL;
	ret = fabrex_map_check(map, vma);
	if (ret)
		fabrex_map_put(map);
	else
		fabrex_map_attach(map, vma);
	return ret;
}
