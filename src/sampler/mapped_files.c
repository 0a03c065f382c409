/* SPDX-License-Identifier: MIT */
/* See mapped_files.h. */
#include "sampler/mapped_files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "sampler/perfdata_write.h"

static struct mapped_file *find_slot(struct mapped_files *t, const char *filename)
{
    size_t at = hash_text(HASH_START, filename) & (t->slot_count - 1);
    for (; t->files[at].filename; at = (at + 1) & (t->slot_count - 1))
        if (str_eq(t->files[at].filename, filename))
            break;
    return &t->files[at];
}

static void grow(struct mapped_files *t)
{
    struct mapped_file *old = t->files;
    size_t old_count = t->slot_count;
    t->slot_count = old_count ? old_count * 2 : 64;
    t->files = memory_zalloc(t->slot_count, sizeof(*t->files));
    for (size_t i = 0; i < old_count; i++)
        if (old[i].filename)
            *find_slot(t, old[i].filename) = old[i];
    free(old);
}

static bool is_file(const char *filename)
{
    return (filename[0] == '/' && filename[1] != '/' && !str_has_prefix(filename, "/dev/zero") &&
            !str_has_prefix(filename, "/SYSV") && !str_has_prefix(filename, "/memfd:")) ||
           str_eq(filename, "[vdso]") || str_has_prefix(filename, "[kernel");
}

void mapped_files_add(struct mapped_files *t, const char *filename, uint16_t cpumode,
                      const struct build_id *id)
{
    if (!is_file(filename))
        return;
    if (t->count * 2 >= t->slot_count)
        grow(t);
    struct mapped_file *file = find_slot(t, filename);
    if (!file->filename) {
        file->filename = memory_strdup(filename);
        file->cpumode = cpumode;
        t->count++;
    }
    if (!file->id.size && id)
        file->id = *id;
}

const struct build_id *mapped_files_find(struct mapped_files *t, const char *filename)
{
    if (!t->slot_count)
        return NULL;
    const struct mapped_file *file = find_slot(t, filename);
    return file->filename ? &file->id : NULL;
}

void mapped_files_write(struct mapped_files *t, struct strbuf *out)
{
    for (size_t i = 0; i < t->slot_count; i++) {
        struct mapped_file *file = &t->files[i];
        if (!file->filename)
            continue;
        if (!file->id.size && file->filename[0] == '/')
            build_id_of_file(file->filename, &file->id);
        if (file->id.size)
            perfdata_put_build_id(out, file->cpumode, file->id.bytes, file->id.size,
                                  file->filename);
    }
}

void mapped_files_done(struct mapped_files *t)
{
    for (size_t i = 0; i < t->slot_count; i++)
        free(t->files[i].filename);
    free(t->files);
    *t = (struct mapped_files){0};
}
