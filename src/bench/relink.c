/* SPDX-License-Identifier: MIT */
/* See relink.h. */
#include "bench/relink.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "elf/table.h"
#include "numbers/random.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { NAMES_MAX = 200000, NAME_MAX_BYTES = 4096 };

struct functions {
    char **names;
    size_t count, capacity;
};

static void functions_done(struct functions *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->names[i]);
    free(f->names);
}

/* The functions that the program defines, as its symbol table has them. */
static int read_functions(struct functions *f, const char *path, struct error *err)
{
    struct image image;
    struct elf_table t = {0};
    int r = image_open(&image, path, err);
    if (r < 0)
        return r;
    const struct image_section *symtab = image_find_type(&image, SHT_SYMTAB);
    if (symtab && elf_table_read(&t, &image, symtab))
        for (size_t i = 0; i < t.count && f->count < NAMES_MAX; i++) {
            Elf64_Sym s = elf_table_symbol(&t, i);
            size_t length;
            const char *name = elf_table_name(&t, s.st_name, NAME_MAX_BYTES, &length);
            if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF && s.st_size &&
                length && !memchr(name, '\n', length))
                ARRAY_PUSH(f->names, f->count, f->capacity) = memory_strndup(name, length);
        }
    elf_table_done(&t);
    image_close(&image);
    return f->count
               ? 0
               : error_set(err, -ENODATA,
                           "%s: there are no symbols of functions in it; do not strip it", path);
}

static void shuffle(struct functions *f, struct rng *rng)
{
    for (size_t i = f->count; i > 1; i--) {
        size_t k = (size_t)rng_below(rng, i);
        char *kept = f->names[i - 1];
        f->names[i - 1] = f->names[k];
        f->names[k] = kept;
    }
}

static int write_orders(const struct functions *f, const char *sections, const char *symbols,
                        struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf a = {0}, b = {0};
    for (size_t i = 0; i < f->count; i++) {
        strbuf_printf(&a, ".text.%s\n", f->names[i]);
        strbuf_printf(&b, "%s\n", f->names[i]);
    }
    int r = file_write(sections, a.data, a.length, err);
    return r < 0 ? r : file_write(symbols, b.data, b.length, err);
}

static int run_link(const char *command, char *const *variables, size_t count, struct error *err)
{
    size_t own = 0;
    while (environ[own])
        own++;
    CLEANUP(memory_freep) char **environment = memory_zalloc(own + count + 1, sizeof(char *));
    for (size_t i = 0; i < own; i++)
        environment[i] = environ[i];
    for (size_t i = 0; i < count; i++)
        environment[own + i] = variables[i];
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
    struct process_spec spec = {.argv = argv,
                                .environment = environment,
                                .stdin_fd = -1,
                                .stdout_fd = STDERR_FILENO,
                                .stderr_fd = -1};
    struct process_result result;
    pid_t pid;
    int r = process_spawn(&spec, &pid, err);
    if (r == 0) {
        process_signals_target(pid);
        r = process_wait(pid, &result, err);
        process_signals_target(0);
    }
    if (r == 0 && process_signals_caught())
        return error_set(err, -EINTR, "interrupted");
    if (r == 0 && result.status != 0)
        return error_set(err, -ECANCELED, "--link: '%s' exited with %d", command,
                         process_exit_code(result.status));
    return r;
}

static int link_one(const struct relinked *l, size_t layout, size_t program, const char *command,
                    const struct functions *f, struct error *err)
{
    const char *out = relinked_path(l, layout, program);
    CLEANUP(memory_freep) char *sections = memory_printf("%s/sections", l->folder);
    CLEANUP(memory_freep) char *symbols = memory_printf("%s/symbols", l->folder);
    int r = write_orders(f, sections, symbols, err);
    if (r < 0)
        return r;
    char *variables[] = {
        memory_printf("ASSAY_OUT=%s", out), memory_printf("ASSAY_SECTIONS=%s", sections),
        memory_printf("ASSAY_SYMBOLS=%s", symbols), memory_printf("ASSAY_LAYOUT=%zu", layout + 1)};
    r = run_link(command, variables, ARRAY_COUNT(variables), err);
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++)
        free(variables[i]);
    if (r == 0 && access(out, F_OK) < 0)
        r = error_set(err, -ENOENT, "--link: '%s' did not make $ASSAY_OUT (%s)", command, out);
    return r;
}

int relink(struct relinked *l, const struct relink_plan *plan, struct error *err)
{
    CLEANUP(memory_freep)
    char *folder = memory_printf("%s/assay-layouts-XXXXXX", temporary_folder());
    struct rng rng;
    int r = 0;
    if (!mkdtemp(folder))
        return error_errno(err, -errno, "%s", folder);
    size_t files = plan->layout_count * plan->program_count;
    *l = (struct relinked){.paths = memory_zalloc(files + 1, sizeof(*l->paths)),
                           .layout_count = plan->layout_count,
                           .program_count = plan->program_count,
                           .folder = memory_strdup(folder)};
    for (size_t i = 0; i < files; i++)
        l->paths[i] = memory_printf("%s/%zu-%zu", folder, i % plan->program_count,
                                    i / plan->program_count + 1);
    rng_seed(&rng, plan->seed + 1);
    for (size_t program = 0; program < plan->program_count && r == 0; program++) {
        CLEANUP(functions_done) struct functions f = {0};
        r = read_functions(&f, plan->programs[program], err);
        for (size_t k = 0; k < plan->layout_count && r == 0; k++) {
            if (plan->on_progress)
                plan->on_progress(k, 0, "linking", plan->context);
            shuffle(&f, &rng);
            r = link_one(l, k, program, plan->commands[program], &f, err);
        }
    }
    return r;
}

void relinked_done(struct relinked *l)
{
    static const char *const files[] = {"sections", "symbols"};
    for (size_t i = 0; i < l->layout_count * l->program_count; i++) {
        unlink(l->paths[i]);
        free(l->paths[i]);
    }
    for (size_t i = 0; l->folder && i < ARRAY_COUNT(files); i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", l->folder, files[i]);
        unlink(path);
    }
    if (l->folder)
        rmdir(l->folder);
    free(l->paths);
    free(l->folder);
    *l = (struct relinked){0};
}
