// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Treap of address ranges, in the order of their starts. Depth is logarithmic
 * whatever the order of insertion: priorities are mixed from the addresses.
 */
#include <stddef.h>

#include "base/interval.h"

/* Any function that does not depend on the order of addresses. */
static uint32_t mix(const struct interval *node)
{
	uint64_t x = (uintptr_t)node ^ (uint64_t)node->start << 13;

	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(x >> 32);
}

static void update(struct interval *node)
{
	node->max_end = node->end;
	if (node->left && node->left->max_end > node->max_end)
		node->max_end = node->left->max_end;
	if (node->right && node->right->max_end > node->max_end)
		node->max_end = node->right->max_end;
}

/* Total order: ranges with the same start by where they are in memory. */
static bool before(const struct interval *a, const struct interval *b)
{
	if (a->start != b->start)
		return a->start < b->start;
	return (uintptr_t)a < (uintptr_t)b;
}

/* Everything before @at goes to *low, the rest to *high. */
static void split(struct interval *tree, const struct interval *at,
		  struct interval **low, struct interval **high)
{
	if (!tree) {
		*low = NULL;
		*high = NULL;
	} else if (before(tree, at)) {
		split(tree->right, at, &tree->right, high);
		*low = tree;
		update(tree);
	} else {
		split(tree->left, at, low, &tree->left);
		*high = tree;
		update(tree);
	}
}

/* All of @low is before all of @high. */
static struct interval *merge(struct interval *low, struct interval *high)
{
	if (!low)
		return high;
	if (!high)
		return low;
	if (low->priority >= high->priority) {
		low->right = merge(low->right, high);
		update(low);
		return low;
	}
	high->left = merge(low, high->left);
	update(high);
	return high;
}

void fxi_interval_add(struct interval **root, struct interval *node)
{
	struct interval *tree = *root;

	node->priority = mix(node);
	if (tree && tree->priority >= node->priority) {
		fxi_interval_add(before(node, tree) ? &tree->left :
						      &tree->right, node);
		update(tree);
		return;
	}
	split(tree, node, &node->left, &node->right);
	update(node);
	*root = node;
}

void fxi_interval_remove(struct interval **root, struct interval *node)
{
	struct interval *tree = *root;

	if (!tree)
		return;
	if (tree == node) {
		*root = merge(node->left, node->right);
		return;
	}
	fxi_interval_remove(before(node, tree) ? &tree->left : &tree->right,
			    node);
	update(tree);
}

/* Later starts first: the tightest range is the likeliest. */
struct interval *fxi_interval_cover(struct interval *tree, uintptr_t start,
				    uintptr_t end, uint32_t access)
{
	struct interval *found;

	while (tree && tree->max_end >= end) {
		if (tree->start <= start) {
			found = fxi_interval_cover(tree->right, start, end,
						   access);
			if (found)
				return found;
			if (tree->end >= end &&
			    (tree->access & access) == access)
				return tree;
		}
		tree = tree->left;
	}
	return NULL;
}

/* Ranges with the same start are on both sides of one another. */
struct interval *fxi_interval_exact(struct interval *tree, uintptr_t start,
				    uintptr_t end, uint32_t access,
				    uint32_t more)
{
	struct interval *found;

	while (tree && tree->max_end >= end) {
		if (tree->start < start) {
			tree = tree->right;
			continue;
		}
		if (tree->start == start) {
			if (tree->end == end &&
			    (tree->access & ~more) == (access & ~more) &&
			    (tree->access & access) == access)
				return tree;
			found = fxi_interval_exact(tree->right, start, end,
						   access, more);
			if (found)
				return found;
		}
		tree = tree->left;
	}
	return NULL;
}
