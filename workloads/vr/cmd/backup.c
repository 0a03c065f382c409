/* SPDX-License-Identifier: MIT */
/* assay-vr backup: the state of a cluster as a file, while it serves. */
#include "vr/client/backup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

struct settings {
    const char *config;
    uint64_t timeout_ns;
    bool json;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "give up after this time without an answer (5 s)", NULL},
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0},
};

struct writing {
    struct vr_backup_writer file;
    struct error *err;
    int result;
};

static bool add(void *context, struct vr_bytes key, struct vr_bytes value)
{
    struct writing *w = context;
    w->result = vr_backup_add(&w->file, key, value, w->err);
    return w->result == 0;
}

static int write_file(const char *path, uint32_t cluster, const struct vr_copy *copy,
                      struct error *err)
{
    struct writing *w = memory_zalloc(1, sizeof(*w));
    w->err = err;
    w->result =
        vr_backup_create(&w->file, path, cluster, vr_copy_op(copy), vr_copy_keys(copy), err);
    if (!w->result)
        vr_copy_each(copy, add, w);
    if (!w->result)
        w->result = vr_backup_commit(&w->file, err);
    vr_backup_abandon(&w->file);
    int result = w->result;
    free(w);
    return result;
}

static void tell(const struct settings *o, const char *path, const struct vr_copy *copy)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    if (!o->json) {
        printf("%s holds %u %s, as of operation %lu\n", path, vr_copy_keys(copy),
               plural(vr_copy_keys(copy), "key", "keys"), vr_copy_op(copy));
        return;
    }
    json_object(&j, NULL);
    json_string(&j, "file", path);
    json_u64(&j, "keys", vr_copy_keys(copy));
    json_u64(&j, "op", vr_copy_op(copy));
    json_end(&j);
    puts(strbuf_text(&out));
}

static int perform(const struct settings *o, const char *path, struct error *err)
{
    struct vr_client *client;
    struct vr_copy *copy = NULL;
    int result = vr_client_open(&client, o->config, err);
    if (result)
        return result;
    vr_client_set_timeout(client, o->timeout_ns);
    result = vr_client_copy(client, &copy, err);
    if (!result)
        result = write_file(path, vr_client_cluster(client)->config.cluster, copy, err);
    if (!result)
        tell(o, path, copy);
    vr_copy_free(copy);
    vr_client_close(client);
    return result;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = 5 * NS_PER_S};
    struct error err = {0};
    int first, code;
    if (!vr_options(&vr_verb_backup, &o, argc, argv, &first, &code))
        return code;
    if (argc - first != 1)
        error_set(&err, -EINVAL, "name one file; write 'assay-vr backup FILE'");
    else if (access(argv[first], F_OK) == 0)
        error_set(&err, -EEXIST, "%s already exists; name a new file", argv[first]);
    if (err.code)
        return vr_fail(&vr_verb_backup, &err, 2);
    umask(077); /* what the cluster holds is not for everybody */
    if (perform(&o, argv[first], &err) == 0)
        return 0;
    return vr_fail(&vr_verb_backup, &err, err.code == -ETIMEDOUT || err.code == -ESTALE ? 3 : 1);
}

const struct verb vr_verb_backup = {"backup",
                                    "write the state of a running cluster to a file",
                                    "FILE [--config FILE]",
                                    "  assay-vr backup -c cluster.conf monday.backup\n",
                                    options,
                                    run,
                                    NULL};
