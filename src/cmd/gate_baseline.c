/* SPDX-License-Identifier: MIT */
#include "cmd/gate_baseline.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_store(const char *path)
{
    char head[16] = {0};
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
           memcmp(head, "SQLite format 3", sizeof(head)) == 0;
}

static int load_file(struct gate_baseline *baseline, const char *path, struct error *err)
{
    if (is_store(path))
        return error_set(
            err, -EINVAL,
            "%s is a store; name one of its experiments: --db %s --baseline EXPERIMENT", path,
            path);
    struct embedded *file = &baseline->file;
    int r = embedded_read_file(file, path, err);
    if (r == 0 && file->set_count != 1)
        r = error_set(err, -EINVAL, "%s holds %zu %s; --baseline needs one", path, file->set_count,
                      plural(file->set_count, "experiment", "experiments"));
    if (r == 0)
        baseline->set = &file->sets[0];
    return r;
}

static int load_experiment(struct gate_baseline *baseline, const char *name, const char *db,
                           struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    int64_t id;
    int r = store_open(&store, store_place(db), STORE_READ, err);
    if (r == 0)
        r = store_find(store, name, &id, err);
    if (r == 0)
        r = dataset_load(&baseline->kept, store, id, err);
    baseline->is_kept = r == 0;
    baseline->set = r == 0 ? &baseline->kept : NULL;
    return r == -ENOENT ? error_wrap(err, r, "--baseline %s is not a file", name) : r;
}

int gate_baseline_load(struct gate_baseline *baseline, const char *name, const char *db,
                       struct error *err)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISREG(st.st_mode) ? load_file(baseline, name, err)
                                                       : load_experiment(baseline, name, db, err);
}

void gate_baseline_done(struct gate_baseline *baseline)
{
    embedded_done(&baseline->file);
    if (baseline->is_kept)
        dataset_done(&baseline->kept);
}
