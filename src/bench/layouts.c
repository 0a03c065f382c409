/* SPDX-License-Identifier: MIT */
/* See layouts.h. */
#include "bench/layouts.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "elf/table.h"
#include "numbers/random.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAMES_MAX = 200000, NAME_MAX_BYTES = 4096, ROUNDS_MIN = 10 };

/* ---- linking ---- */

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
    if (r == 0)
        r = process_wait(pid, &result, err);
    if (r == 0 && process_signals_caught())
        return error_set(err, -EINTR, "interrupted");
    if (r == 0 && result.status != 0)
        return error_set(err, -ECANCELED, "--link: '%s' exited with %d", command,
                         process_exit_code(result.status));
    return r;
}

static int link_one(struct bench_layouts *l, size_t layout, size_t side, const char *command,
                    const struct functions *f, struct error *err)
{
    CLEANUP(memory_freep) char *out = memory_printf("%s/%zu-%zu", l->folder, side, layout + 1);
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
    return r < 0 ? r : bench_target_open(&l->targets[layout * BENCH_SIDES_MAX + side], out, err);
}

int bench_layouts_link(struct bench_layouts *l, const struct bench_plan *plan,
                       const char *const *commands, size_t count, struct error *err)
{
    CLEANUP(memory_freep)
    char *folder = memory_printf("%s/assay-layouts-XXXXXX", temporary_folder());
    struct rng rng;
    int r = 0;
    if (!mkdtemp(folder))
        return error_errno(err, -errno, "%s", folder);
    *l = (struct bench_layouts){.targets =
                                    memory_zalloc(count * BENCH_SIDES_MAX + 1, sizeof(*l->targets)),
                                .count = count,
                                .folder = memory_strdup(folder)};
    rng_seed(&rng, plan->seed + 1);
    for (size_t side = 0; side < plan->side_count && r == 0; side++) {
        CLEANUP(functions_done) struct functions f = {0};
        r = read_functions(&f, plan->targets[side]->path, err);
        for (size_t k = 0; k < count && r == 0; k++) {
            if (plan->on_progress)
                plan->on_progress(k, 0, "linking", plan->context);
            shuffle(&f, &rng);
            r = link_one(l, k, side, commands[side], &f, err);
        }
    }
    return r;
}

void bench_layouts_done(struct bench_layouts *l)
{
    static const char *const files[] = {"sections", "symbols"};
    for (size_t i = 0; i < l->count * BENCH_SIDES_MAX; i++) {
        if (l->targets[i].path)
            unlink(l->targets[i].path);
        bench_target_done(&l->targets[i]);
    }
    for (size_t i = 0; l->folder && i < ARRAY_COUNT(files); i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", l->folder, files[i]);
        unlink(path);
    }
    if (l->folder)
        rmdir(l->folder);
    free(l->targets);
    free(l->folder);
    *l = (struct bench_layouts){0};
}

/* ---- what is layout, and what is noise ---- */

/* The logarithm of new to base in one round; of its even or odd samples only, with `half` 0 or 1.
 */
static double round_ratio(const struct bench_result *r, uint32_t round, int half, double *room)
{
    double medians[BENCH_SIDES_MAX];
    for (size_t side = 0; side < BENCH_SIDES_MAX; side++) {
        size_t count = 0;
        for (size_t i = 0; i < r->sample_count; i++) {
            const struct bench_kept *s = &r->samples[i];
            if (s->round == round && s->side == side &&
                (half < 0 || s->position / BENCH_SIDES_MAX % 2 == (unsigned)half))
                room[count++] = s->ns;
        }
        medians[side] = stats_median(room, count, room + r->samples_a_round + 1);
    }
    return log(medians[1] / medians[0]);
}

bool bench_layout_spread(const struct bench_result *r, struct bench_layout_spread *ret)
{
    size_t count = 0;
    struct running between = {0}, within = {0};
    if (r->round_count < ROUNDS_MIN || !r->sample_count)
        return false;
    CLEANUP(memory_freep) double *ratios = memory_zalloc(r->round_count + 1, sizeof(*ratios));
    CLEANUP(memory_freep)
    double *room = memory_zalloc(2 * r->samples_a_round + 4, sizeof(*room));
    for (size_t i = 0; i < r->sample_count && count < r->round_count; i++) {
        uint32_t round = r->samples[i].round;
        if (i && r->samples[i - 1].round == round)
            continue;
        double ratio = round_ratio(r, round, -1, room);
        double halves = round_ratio(r, round, 0, room) - round_ratio(r, round, 1, room);
        if (!isfinite(ratio))
            continue;
        ratios[count++] = ratio;
        running_add(&between, ratio);
        if (isfinite(
                halves)) /* half of a round varies twice as much, and a difference four times */
            running_add(&within, halves * halves / 4);
    }
    if (count < ROUNDS_MIN)
        return false;
    sort_doubles(ratios, count);
    double all = running_stddev(&between) * running_stddev(&between);
    *ret = (struct bench_layout_spread){.count = count,
                                        .low = exp(stats_quantile(ratios, count, 0.025)),
                                        .high = exp(stats_quantile(ratios, count, 0.975)),
                                        .share = all > 0 ? fmax(0, 1 - within.mean / all) : 0};
    return true;
}
