/* SPDX-License-Identifier: MIT */
/* Words of a command line to a page: see page_sources.h. */
#include "cmd/page_sources.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/term.h"
#include "profile/given/given.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum source_kind { SOURCE_EXPERIMENT, SOURCE_LEVEL, SOURCE_RECORDING, SOURCE_TEXT };

/* A file is known by how it begins; what is no file is an experiment, or a factor's value. */
static enum source_kind kind_of(const char *word)
{
    char head[8] = {0};
    CLEANUP(fd_closep) int fd = open(word, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
        return strchr(word, '=') ? SOURCE_LEVEL : SOURCE_EXPERIMENT;
    if (given_kind_of(word) != GIVEN_NONE)
        return SOURCE_RECORDING;
    if (read(fd, head, sizeof(head)) < (ssize_t)sizeof(head))
        return SOURCE_TEXT;
    return memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0 ? SOURCE_RECORDING
                                                                                : SOURCE_TEXT;
}

void page_sources_command(struct strbuf *out, char **argv)
{
    strbuf_puts(out, "assay ");
    strbuf_put_command(out, argv);
}

struct loader {
    struct page *page;
    struct store *store;
    const char *db;
    const char *levels[2], *experiments[2];
    size_t level_count, recording_count, experiment_count;
    int64_t first_id;
};

static int open_store(struct loader *l, struct error *err)
{
    return l->store ? 0 : store_open(&l->store, store_place(l->db), STORE_READ, err);
}

/* A word that no file could be opened for: the reason, when it must have meant a file. */
static int check_no_file(const char *word, struct error *err)
{
    CLEANUP(fd_closep) int fd = open(word, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return error_errno(err, -errno, "%s", word);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return error_set(err, -EISDIR, "%s is a directory; name a recording or a report in it",
                         word);
    if (fd < 0 && (strchr(word, '/') || str_has_suffix(word, ".data") ||
                   str_has_suffix(word, ".html") || str_has_suffix(word, ".json")))
        return error_set(err, -ENOENT, "%s: no such file", word);
    return 0;
}

static int add_experiment(struct loader *l, const char *word, struct error *err)
{
    int64_t id;
    int r = check_no_file(word, err);
    if (r < 0)
        return r;
    r = open_store(l, err);
    if (r == -ENOENT && !str_eq(word, "last"))
        error_set(err, r,
                  "'%s' is not a file; nor can it be looked up as an experiment, because the store "
                  "%s does not exist (--db names another)",
                  word, store_place(l->db));
    if (r == 0)
        r = store_find(l->store, word, &id, err);
    if (r == 0)
        r = page_add_experiment(l->page, l->store, id, err);
    if (r == 0 && l->experiment_count < ARRAY_COUNT(l->experiments))
        l->experiments[l->experiment_count++] = word;
    if (r == 0 && l->page->data.set_count == 1) {
        l->first_id = id;
        r = page_add_monitors(l->page, l->store, id, err);
        if (r == 0)
            r = page_add_history(l->page, l->store, id, err);
    }
    return r;
}

static int add_word(struct loader *l, const char *word, struct error *err)
{
    switch (kind_of(word)) {
    case SOURCE_LEVEL:
        if (l->level_count == ARRAY_COUNT(l->levels))
            return error_set(err, -EINVAL, "compare two values of a factor, not three");
        l->levels[l->level_count++] = word;
        return 0;
    case SOURCE_RECORDING:
        l->recording_count++;
        return page_add_recording(l->page, word, word, err);
    case SOURCE_TEXT:
        return embedded_read_file(&l->page->data, word, err);
    case SOURCE_EXPERIMENT:
        break;
    }
    return add_experiment(l, word, err);
}

/* What differs between two sides, with their flame graphs where these are wanted, which are shown
 * also when the sides cannot be compared. */
static int add_pair(struct loader *l, const struct profile_pair *pair, char *const *labels,
                    struct error *err)
{
    struct error why = {0};
    if (page_add_pair(l->page, pair, labels, &why) == 0)
        return 0;
    int r = 0;
    for (size_t s = 0; r == 0 && labels && s < SIDE_COUNT; s++)
        r = page_add_recording(l->page, pair->sides[s].paths[0], labels[s], err);
    if (r == 0)
        strbuf_printf(&l->page->notes, "Profiles were not compared: %s\n", why.message);
    return r;
}

/* Two recordings are read once, for their flame graphs and for what differs. */
static int add_two_recordings(struct loader *l, char **words, struct error *err)
{
    struct profile_pair pair = {.label = memory_strdup("")};
    for (size_t s = 0; s < SIDE_COUNT; s++) {
        pair.sides[s].name = memory_strdup(words[s]);
        profile_set_add(&pair.sides[s], words[s], 1);
    }
    int r = add_pair(l, &pair, words, err);
    l->recording_count = SIDE_COUNT;
    profile_pair_done(&pair);
    return r;
}

/* Recordings of the cells that are compared, where there are any: reasons for the change. */
static void add_reasons(struct loader *l)
{
    enum { PAIRS_MAX = 3 };
    struct profile_pairs pairs = {0};
    struct error err = {0};
    if (l->page->data.flame_count || l->recording_count)
        return;
    int r = l->level_count == 2
                ? profile_pairs_find(&pairs, l->levels[0], l->levels[1],
                                     l->experiment_count ? l->experiments[0] : NULL, l->db, &err)
            : l->experiment_count == 2 ? profile_pairs_find(&pairs, l->experiments[0],
                                                            l->experiments[1], NULL, l->db, &err)
                                       : -ENOENT;
    for (size_t i = 0; r == 0 && i < pairs.count && i < PAIRS_MAX; i++) {
        const struct profile_pair *pair = &pairs.items[i];
        char *labels[SIDE_COUNT];
        for (size_t s = 0; s < SIDE_COUNT; s++)
            labels[s] = memory_printf("%s%s%s", pair->sides[s].name ? pair->sides[s].name : "",
                                      pair->label && *pair->label ? ", " : "",
                                      pair->label ? pair->label : "");
        if (add_pair(l, pair, i == 0 ? labels : NULL, &err) < 0)
            strbuf_printf(&l->page->notes, "Profiles were not compared: %s\n", err.message);
        for (size_t s = 0; s < SIDE_COUNT; s++)
            free(labels[s]);
    }
    profile_pairs_done(&pairs);
    if (r < 0 && l->store && l->experiment_count == 1 && !l->level_count)
        page_add_profiles(l->page, l->store, l->first_id);
}

static int finish(struct loader *l, struct error *err)
{
    struct embedded *data = &l->page->data;
    int r = 0;
    if (l->level_count == 1)
        return error_set(err, -EINVAL, "'%s' needs another value to compare with", l->levels[0]);
    if (!data->set_count && (l->level_count || !(data->flame_count || data->explanations.count)))
        r = add_experiment(l, "last", err);
    if (r == 0 && l->level_count) {
        if (data->set_count > 1)
            return error_set(err, -EINVAL,
                             "compare two experiments or two values of a factor, not one of each");
        free(data->base);
        free(data->new);
        data->base = memory_strdup(l->levels[0]);
        data->new = memory_strdup(l->levels[1]);
    }
    if (r == 0 && l->store)
        r = page_add_explanations(l->page, l->store, err);
    if (r < 0)
        return r;
    add_reasons(l);
    return page_prepare(l->page, err);
}

int page_sources_load(struct page *page, const char *db, int count, char **words, struct error *err)
{
    struct loader l = {.page = page, .db = db};
    struct progress progress;
    int r = 0;
    progress_start(&progress);
    bool are_two = count == SIDE_COUNT && kind_of(words[0]) == SOURCE_RECORDING &&
                   kind_of(words[1]) == SOURCE_RECORDING;
    if (are_two) {
        progress_show(&progress, "reading %s and %s", words[0], words[1]);
        r = add_two_recordings(&l, words, err);
    }
    for (int i = 0; i < count && r == 0 && !are_two; i++) {
        progress_show(&progress, "reading %s", words[i]);
        /* A report that is read again keeps what it says of itself out of the new one. */
        char *command = page->data.command;
        page->data.command = NULL;
        r = add_word(&l, words[i], err);
        free(page->data.command);
        page->data.command = command;
    }
    if (r == 0)
        r = finish(&l, err);
    progress_end(&progress);
    store_close(l.store);
    return r;
}
