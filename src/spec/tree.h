/* SPDX-License-Identifier: MIT */
/*
 * A YAML text as a tree that knows its lines, so that every complaint about a spec can say where.
 * Anchors are followed; a text that uses them to grow without bounds is refused.
 */
#ifndef ASSAY_SPEC_TREE_H
#define ASSAY_SPEC_TREE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tree_kind { TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree {
    enum tree_kind kind;
    size_t line;        /* from 1 */
    const char *text;   /* of a scalar; "" for nothing written */
    bool is_null;       /* a scalar that is empty, ~ or null, and not quoted */
    struct tree *keys;  /* of a map: scalars */
    struct tree *items; /* of a list or a map */
    size_t count;
};

/* `file` is for messages.  The tree lives as long as the arena. */
int tree_parse(const char *file, const char *text, size_t length, struct arena *arena,
               struct tree *ret_root, struct error *err);

/* The map's value for that key, NULL when there is none. */
const struct tree *tree_get(const struct tree *map, const char *key);
/* "a mapping", "a list", "a text". */
const char *tree_kind_name(enum tree_kind kind);

#endif
