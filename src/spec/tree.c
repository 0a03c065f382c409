/* SPDX-License-Identifier: MIT */
/* Looking into trees. */
#include "spec/tree.h"
#include "base/strings.h"

const struct tree *tree_get(const struct tree *map, const char *key)
{
    for (size_t i = 0; map->kind == TREE_MAP && i < map->count; i++)
        if (str_eq(map->keys[i].text, key))
            return &map->items[i];
    return NULL;
}

const char *tree_kind_name(enum tree_kind kind)
{
    return kind == TREE_MAP ? "a mapping" : kind == TREE_LIST ? "a list" : "a string";
}
