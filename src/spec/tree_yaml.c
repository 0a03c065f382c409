/* SPDX-License-Identifier: MIT */
/* libyaml's document turned into our tree. */
#include "base/memory.h"
#include "base/strings.h"
#include "spec/tree.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

enum {
    DEPTH_MAX = 32,
    NODES_MAX = 200000, /* after anchors were followed */
};

struct converter {
    const char *file;
    yaml_document_t *document;
    struct arena *arena;
    size_t node_count;
};

static int convert(struct converter *c, int index, unsigned depth, struct tree *ret,
                   struct error *err);

static int convert_scalar(struct converter *c, const yaml_node_t *node, struct tree *ret,
                          struct error *err)
{
    const char *text = (const char *)node->data.scalar.value;
    size_t length = node->data.scalar.length;
    if (memchr(text, '\0', length))
        return error_set(err, -EINVAL, "%s:%zu: a string must not contain a zero byte", c->file,
                         ret->line);
    ret->kind = TREE_SCALAR;
    ret->text = arena_strndup(c->arena, text, length);
    ret->is_null = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                   (length == 0 || str_eq(ret->text, "~") || str_eq(ret->text, "null"));
    if (ret->is_null)
        ret->text = "";
    return 0;
}

static int convert_list(struct converter *c, const yaml_node_t *node, unsigned depth,
                        struct tree *ret, struct error *err)
{
    ret->kind = TREE_LIST;
    ret->count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    ret->items = arena_alloc(c->arena, (ret->count + 1) * sizeof(*ret->items));
    for (size_t i = 0; i < ret->count; i++) {
        int r = convert(c, node->data.sequence.items.start[i], depth, &ret->items[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_key(struct converter *c, const struct tree *map, size_t index, struct error *err)
{
    const struct tree *key = &map->keys[index];
    if (key->kind != TREE_SCALAR)
        return error_set(err, -EINVAL, "%s:%zu: a key must be a string, not %s", c->file, key->line,
                         tree_kind_name(key->kind));
    for (size_t i = 0; i < index; i++)
        if (str_eq(map->keys[i].text, key->text))
            return error_set(err, -EINVAL, "%s:%zu: duplicate key '%s' (first on line %zu)",
                             c->file, key->line, key->text, map->keys[i].line);
    return 0;
}

static int convert_map(struct converter *c, const yaml_node_t *node, unsigned depth,
                       struct tree *ret, struct error *err)
{
    ret->kind = TREE_MAP;
    ret->count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    ret->keys = arena_alloc(c->arena, (ret->count + 1) * sizeof(*ret->keys));
    ret->items = arena_alloc(c->arena, (ret->count + 1) * sizeof(*ret->items));
    for (size_t i = 0; i < ret->count; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        int r = convert(c, pair->key, depth, &ret->keys[i], err);
        if (r == 0)
            r = check_key(c, ret, i, err);
        if (r == 0)
            r = convert(c, pair->value, depth, &ret->items[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int convert(struct converter *c, int index, unsigned depth, struct tree *ret,
                   struct error *err)
{
    const yaml_node_t *node = yaml_document_get_node(c->document, index);
    if (!node)
        return error_set(err, -EINVAL, "%s: a node is missing", c->file);
    *ret = (struct tree){.line = node->start_mark.line + 1};
    if (depth == DEPTH_MAX)
        return error_set(err, -EINVAL, "%s:%zu: nested too deeply", c->file, ret->line);
    if (++c->node_count > NODES_MAX)
        return error_set(err, -EINVAL,
                         "%s:%zu: too many values in one spec (at most %d are allowed)", c->file,
                         ret->line, NODES_MAX);
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_list(c, node, depth + 1, ret, err);
    if (node->type == YAML_MAPPING_NODE)
        return convert_map(c, node, depth + 1, ret, err);
    return convert_scalar(c, node, ret, err);
}

/* What to do about libyaml's words, which are those of its grammar. */
static const char *remedy(const char *problem)
{
    if (problem && strstr(problem, "mapping values are not allowed"))
        return "; put quotes around a value that contains \": \", and align the keys of one "
               "mapping";
    if (problem && strstr(problem, "cannot start any token"))
        return "; indent with spaces, and put quotes around a value that begins with this "
               "character";
    if (problem && strstr(problem, "did not find expected"))
        return "; check the indentation, quotes and brackets of this line and the one before it";
    return "";
}

static int load(struct converter *c, yaml_parser_t *parser, struct tree *ret_root,
                struct error *err)
{
    yaml_document_t document;
    if (!yaml_parser_load(parser, &document))
        return error_set(err, -EINVAL, "%s:%zu: %s%s%s%s", c->file, parser->problem_mark.line + 1,
                         parser->context ? parser->context : "", parser->context ? ", " : "",
                         parser->problem ? parser->problem : "not valid YAML",
                         remedy(parser->problem));
    c->document = &document;
    struct tree root = {0};
    int r;
    if (yaml_document_get_root_node(&document))
        r = convert(c, 1, 0, &root, err);
    else
        r = error_set(err, -EINVAL, "%s: the file is empty", c->file);
    yaml_document_delete(&document);
    if (r == 0)
        *ret_root = root;
    return r;
}

int tree_parse(const char *file, const char *text, size_t length, struct arena *arena,
               struct tree *ret_root, struct error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, -ENOMEM, "%s: out of memory", file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    struct converter c = {.file = file, .arena = arena};
    int r = load(&c, &parser, ret_root, err);
    yaml_parser_delete(&parser);
    return r;
}
