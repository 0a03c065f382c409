/* SPDX-License-Identifier: MIT */
/* Paths of source files: see source_path.h. */
#include "symbols/tables/source_path.h"

#include "symbols/tables/names.h"

/* Removes the last part, unless there is none or it is ".." itself. */
static bool remove_last(struct strbuf *out)
{
    size_t start = out->length;
    while (start > 0 && out->data[start - 1] != '/')
        start--;
    size_t length = out->length - start;
    if (length == 0 || (length == 2 && memcmp(out->data + start, "..", 2) == 0))
        return false;
    out->length = start > 1 ? start - 1 : start;
    out->data[out->length] = '\0';
    return true;
}

static void add_parts(struct strbuf *out, const char *path)
{
    while (*path && out->length < SYMBOLS_NAME_MAX) {
        size_t length = strcspn(path, "/");
        bool here = length == 0 || (length == 1 && path[0] == '.');
        bool up = length == 2 && path[0] == '.' && path[1] == '.';
        bool at_root = out->length == 1 && out->data[0] == '/';
        if (!here && !(up && (at_root || remove_last(out)))) {
            if (out->length && !at_root)
                strbuf_putc(out, '/');
            strbuf_append(out, path, length < SYMBOLS_NAME_MAX ? length : SYMBOLS_NAME_MAX);
        }
        path += length + (path[length] == '/');
    }
}

void source_path(struct strbuf *out, const char *folder, const char *file)
{
    strbuf_clear(out);
    bool below = folder && file[0] != '/';
    if (file[0] == '/' || (below && folder[0] == '/'))
        strbuf_putc(out, '/');
    if (below)
        add_parts(out, folder);
    add_parts(out, file);
}
