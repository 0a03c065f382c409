/* SPDX-License-Identifier: MIT */
/* See symbols.h. */
#include "vm/symbols.h"
#include "base/fd.h"
#include "base/memory.h"
#include "elf/build_id.h"

#include <errno.h>
#include <sys/stat.h>

/* …/.build-id/ab/cdef…/NAME, whose folders are made; NULL where there is no cache. */
static char *place(const char *hex, const char *name, struct error *err)
{
    CLEANUP(memory_freep) char *below = memory_printf("symbols/.build-id/%.2s/%s", hex, hex + 2);
    CLEANUP(memory_freep) char *folder = vm_cache_path(below);
    if (!folder)
        return NULL;
    for (char *at = folder + 1;; at++) {
        char end = *at;
        if (end && end != '/')
            continue;
        *at = '\0';
        if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
            error_errno(err, -errno, "%s", folder);
            return NULL;
        }
        *at = end;
        if (!end)
            return memory_printf("%s/%s", folder, name);
    }
}

static int keep_kernel(struct vm_machine *m, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf notes = {0}, kallsyms = {0};
    struct build_id id;
    char hex[BUILD_ID_TEXT];
    int r = vm_machine_get(m, "/sys/kernel/notes", &notes, err);
    if (r < 0)
        return r;
    if (!build_id_in_notes(strbuf_text(&notes), notes.length, &id))
        return 0; /* a kernel without a build-id: its functions stay addresses */
    CLEANUP(memory_freep) char *path = place(build_id_format(&id, hex), "kallsyms", err);
    if (!path || access(path, R_OK) == 0)
        return 0;
    r = vm_machine_get(m, "/proc/kallsyms", &kallsyms, err);
    return r < 0 ? r : file_write(path, strbuf_text(&kallsyms), kallsyms.length, err);
}

static int keep_program(const char *program, struct error *err)
{
    struct build_id id;
    char hex[BUILD_ID_TEXT];
    if (!build_id_of_file(program, &id))
        return 0;
    CLEANUP(memory_freep) char *path = place(build_id_format(&id, hex), "elf", err);
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    if (!path || access(path, R_OK) == 0)
        return 0;
    int r = file_read(program, &bytes, err);
    return r < 0 ? r : file_write(path, strbuf_text(&bytes), bytes.length, err);
}

int vm_symbols_keep(struct vm_machine *m, struct error *err)
{
    const struct vm_files *files = m->settings->files;
    int r = keep_kernel(m, err);
    for (size_t i = 0; r == 0 && i < files->count; i++)
        if (access(files->items[i].host, X_OK) == 0)
            r = keep_program(files->items[i].host, err);
    return r < 0 ? error_wrap(err, r, "symbols of the emulated machine") : 0;
}
