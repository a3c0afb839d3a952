/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Declarations of the tiny project. */
struct node {
	struct node *left, *right;
	int key;
};

int args_count(char **argv);
int list_find(const int *list, int length, int wanted);
long sum_squares(int upto);
int text_length(const char *text);
int tree_depth(const struct node *node);
int word_count(const char *text);
