/* SPDX-License-Identifier: MIT */
/* Source files: see source.h. */
#include "report/profile/source.h"
#include "base/fd.h"
#include "base/memory.h"

#include <string.h>
#include <sys/stat.h>

void sources_done(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        strbuf_done(&sources->files[i]->text);
        free(sources->files[i]->starts);
        free(sources->files[i]->path);
        free(sources->files[i]);
    }
    free(sources->files);
    *sources = (struct sources){0};
}

static void find_lines(struct source_file *f)
{
    for (size_t at = 0; at < f->text.length;) {
        ARRAY_PUSH(f->starts, f->line_count, f->line_capacity) = at;
        const char *end = memchr(f->text.data + at, '\n', f->text.length - at);
        at = end ? (size_t)(end - f->text.data) + 1 : f->text.length;
    }
}

const struct source_file *sources_get(struct sources *sources, const char *path)
{
    for (size_t i = 0; i < sources->count; i++)
        if (str_eq(sources->files[i]->path, path))
            return sources->files[i];
    struct source_file *f = memory_zalloc(1, sizeof(*f));
    f->path = memory_strdup(path);
    struct stat info;
    /* A path in debug information comes from outside: a device or a pipe is not read. */
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && file_read(path, &f->text, NULL) == 0) {
        f->is_there = true;
        f->changed = info.st_mtime;
        find_lines(f);
    }
    ARRAY_PUSH(sources->files, sources->count, sources->capacity) = f;
    return f;
}

bool source_line(const struct source_file *f, uint32_t line, const char **ret_text,
                 size_t *ret_length)
{
    if (line == 0 || line > f->line_count)
        return false;
    size_t start = f->starts[line - 1];
    size_t end = line < f->line_count ? f->starts[line] : f->text.length;
    while (end > start && (f->text.data[end - 1] == '\n' || f->text.data[end - 1] == '\r'))
        end--;
    *ret_text = f->text.data + start;
    *ret_length = end - start;
    return true;
}
