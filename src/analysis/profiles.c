/* SPDX-License-Identifier: MIT */
/* Sets of recordings to be compared: see profiles.h. */
#include "analysis/profiles.h"
#include "analysis/cellpairs.h"
#include "base/memory.h"

#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

void profile_set_add(struct profile_set *set, const char *path, double work)
{
    size_t count = set->count;
    ARRAY_PUSH(set->paths, set->count, set->capacity) = memory_strdup(path);
    ARRAY_PUSH(set->work, count, set->work_capacity) = work;
}

static void set_done(struct profile_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->paths[i]);
    free(set->paths);
    free(set->work);
    free(set->measured);
    free(set->name);
}

void profile_pair_done(struct profile_pair *pair)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        set_done(&pair->sides[s]);
    free(pair->label);
    free(pair->work);
    free(pair->emulated);
    *pair = (struct profile_pair){0};
}

void profile_pairs_done(struct profile_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        profile_pair_done(&pairs->items[i]);
    free(pairs->items);
    *pairs = (struct profile_pairs){0};
}

static void add_matches(struct profile_set *set, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            profile_set_add(set, found.gl_pathv[i], 1);
    globfree(&found);
}

/* Files that the word names; none when it means something else. */
static void find_files(struct profile_set *set, const char *word)
{
    struct stat st;
    if (stat(word, &st) == 0 && S_ISDIR(st.st_mode)) {
        CLEANUP(memory_freep) char *pattern = memory_printf("%s/*.data", word);
        add_matches(set, pattern);
        return;
    }
    if (stat(word, &st) == 0) {
        profile_set_add(set, word, 1);
        return;
    }
    if (!strchr(word, '=') && strchr(word, ',')) {
        CLEANUP(memory_freep) char *list = memory_strdup(word);
        char *save = NULL;
        for (char *part = strtok_r(list, ",", &save); part; part = strtok_r(NULL, ",", &save))
            profile_set_add(set, part, 1);
        return;
    }
    add_matches(set, word);
}

char *profile_document_kind(const char *cell_label)
{
    return memory_printf("profiles %s", cell_label);
}

int profile_document_read(struct store *store, int64_t experiment, const char *cell_label,
                          struct profile_set *set, struct error *err)
{
    CLEANUP(memory_freep) char *kind = profile_document_kind(cell_label);
    CLEANUP(memory_freep) char *text = NULL;
    if (store_document(store, experiment, kind, &text, err) < 0)
        return error_set(err, -ENOENT,
                         "experiment %lld has no profile of cell %s: run it with 'profile: all' in "
                         "its spec, or let 'assay explain' record profiles",
                         (long long)experiment, cell_label);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *path = strchr(line, ' ');
        double work;
        if (!path)
            continue;
        *path = '\0';
        int r = parse_double(line, &work, err);
        if (r < 0)
            return error_wrap(err, r, "the store's list of profiles");
        profile_set_add(set, path + 1, work);
    }
    return 0;
}

static int find_cells(struct profile_pairs *pairs, const char *a, const char *b, const char *in,
                      const char *db, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct cell_pairs cells = {0};
    int r = store_open(&store, store_place(db), STORE_READ, err);
    if (r < 0)
        return r;
    r = cell_pairs_find(&cells, store, a, b, in, err);
    struct error last = {0};
    const char *emulated = NULL;
    for (unsigned s = 0; r == 0 && s < SIDE_COUNT; s++)
        emulated = cells.d[s]->emulated ? cells.d[s]->emulated : emulated;
    for (size_t i = 0; r == 0 && i < cells.count; i++) {
        struct profile_pair pair = {.label = memory_strdup(cells.items[i].label),
                                    .work = cells.unit ? memory_strdup(cells.unit) : NULL,
                                    .emulated = emulated ? memory_strdup(emulated) : NULL};
        struct cell_costs costs;
        cell_costs_find(&costs, &cells, i);
        int have = 0;
        for (unsigned s = 0; s < SIDE_COUNT && have == 0; s++) {
            const struct dataset_cell *cell = &cells.d[s]->cells[cells.items[i].cells[s]];
            have = profile_document_read(store, cells.d[s]->experiment.id, cell->label,
                                         &pair.sides[s], &last);
            pair.sides[s].name = memory_strdup(cells.names[s]);
            pair.sides[s].measured = costs.values[s];
            pair.sides[s].measured_count = costs.counts[s];
            costs.values[s] = NULL;
        }
        pair.paired = costs.paired;
        cell_costs_done(&costs);
        if (have == 0)
            ARRAY_PUSH(pairs->items, pairs->count, pairs->capacity) = pair;
        else
            profile_pair_done(&pair);
    }
    /* Cells that did not change may have no profile; none at all is an error. */
    if (r == 0 && !pairs->count) {
        *err = last;
        r = -ENOENT;
    }
    cell_pairs_done(&cells);
    return r;
}

int profile_pairs_find(struct profile_pairs *pairs, const char *a, const char *b, const char *in,
                       const char *db, struct error *err)
{
    *pairs = (struct profile_pairs){0};
    struct profile_pair files = {.label = memory_strdup("")};
    find_files(&files.sides[SIDE_A], a);
    find_files(&files.sides[SIDE_B], b);
    size_t count_a = files.sides[SIDE_A].count, count_b = files.sides[SIDE_B].count;
    if (count_a && count_b) {
        files.sides[SIDE_A].name = memory_strdup(a);
        files.sides[SIDE_B].name = memory_strdup(b);
        ARRAY_PUSH(pairs->items, pairs->count, pairs->capacity) = files;
        return 0;
    }
    profile_pair_done(&files);
    if (count_a || count_b)
        return error_set(err, -ENOENT, "'%s' is a recording, but there is no file '%s'",
                         count_a ? a : b, count_a ? b : a);
    int r = find_cells(pairs, a, b, in, db, err);
    if (r == 0 || strchr(a, '='))
        return r;
    if (strchr(a, '.') || strchr(a, '/'))
        return error_set(err, -ENOENT, "there is no recording '%s'", a);
    return error_wrap(err, r, "'%s' is not a file", a);
}

int profile_loads_read(struct profile_loads *l, const struct profile_pair *pair, struct error *err)
{
    l->options.paired = pair->paired;
    l->options.work = pair->work;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        const struct profile_set *set = &pair->sides[s];
        l->profiles[s] = memory_zalloc(set->count + 1, sizeof(*l->profiles[s]));
        l->runs[s] = memory_zalloc(set->count + 1, sizeof(*l->runs[s]));
        for (size_t i = 0; i < set->count; i++) {
            struct profile_options o = {.symbols = l->symbols,
                                        .want = l->no_inlines ? SYMBOLS_NAMES : SYMBOLS_INLINES,
                                        .tail_calls = true,
                                        .with_lines = l->with_lines,
                                        .with_samples = l->with_samples && i == 0};
            struct profile *p;
            int r = profile_load(&p, set->paths[i], &o, err);
            if (r < 0)
                return r;
            l->profiles[s][l->counts[s]++] = p;
            profile_symbolize(p);
            l->runs[s][i] = (struct diff_run){.profile = p, .work = set->work[i]};
        }
        l->options.sides[s] = (struct diff_input){.runs = l->runs[s],
                                                  .run_count = set->count,
                                                  .measured = set->measured,
                                                  .measured_count = set->measured_count};
    }
    int r = diff_choose_events(l->runs, l->counts, l->event, err);
    if (r < 0)
        return r;
    if (l->event) /* what was measured is time on the CPU */
        l->options.sides[SIDE_A].measured_count = l->options.sides[SIDE_B].measured_count = 0;
    return 0;
}

void profile_loads_done(struct profile_loads *l)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        for (size_t i = 0; i < l->counts[s]; i++)
            profile_free(l->profiles[s][i]);
        free(l->profiles[s]);
        free(l->runs[s]);
    }
    *l = (struct profile_loads){0};
}
