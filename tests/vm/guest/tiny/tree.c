/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures a tree. */
#include "tiny.h"

int tree_depth(const struct node *node)
{
	int left, right;

	if (!node)
		return 0;
	left = tree_depth(node->left);
	right = tree_depth(node->right);
	return 1 + (left > right ? left : right);
}
