/* SPDX-License-Identifier: MIT */
/* assay-vr restore: the keys of a backup, put into a new cluster by many clients at once. */
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "vr/client/backup.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define CLIENTS_MAX 128u

struct settings {
    const char *config;
    uint64_t timeout_ns, clients;
    bool again, json;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the new cluster's configuration (cluster.conf)", "file"},
    {'C', "clients", OPTION_U64, offsetof(struct settings, clients), "N",
     "how many clients write at once (16)", NULL},
    {0, "again", OPTION_FLAG, offsetof(struct settings, again), NULL,
     "the cluster holds keys already: finish a restore that was interrupted", NULL},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "give up after this time without an answer (5 s)", NULL},
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0},
};

struct restoring {
    const struct settings *settings;
    const struct vr_cluster *cluster;
    struct vr_backup_reader *file;
    pthread_mutex_t lock; /* of what is below, and of the file */
    int result;
    struct error err;
};

struct pair {
    unsigned char key[VR_KEY_BYTES_MAX], value[VR_VALUE_BYTES_MAX];
    size_t key_size, value_size;
};

static void note_error(struct restoring *all, const struct error *err)
{
    pthread_mutex_lock(&all->lock);
    if (!all->result) {
        all->result = err->code;
        all->err = *err;
    }
    pthread_mutex_unlock(&all->lock);
}

/* The next pair of the file; false: none is left, or somebody failed. */
static bool take_pair(struct restoring *all, struct pair *ret_pair)
{
    struct vr_bytes key, value;
    struct error err = {0};
    pthread_mutex_lock(&all->lock);
    int found = all->result ? 0 : vr_backup_next(all->file, &key, &value, &err);
    if (found == 1) {
        memcpy(ret_pair->key, key.at, key.size);
        memcpy(ret_pair->value, value.at, value.size);
        ret_pair->key_size = key.size;
        ret_pair->value_size = value.size;
    }
    pthread_mutex_unlock(&all->lock);
    if (found < 0)
        note_error(all, &err);
    return found == 1;
}

static int put(struct vr_client *c, const struct pair *p, struct error *err)
{
    enum vr_result outcome = VR_OK;
    int result = vr_client_put(c, p->key, p->key_size, p->value, p->value_size, &outcome, err);
    if (!result && outcome != VR_OK)
        result = error_set(err, -ENOSPC, "%s",
                           outcome == VR_FULL ? "the new cluster is full: it needs more keys in "
                                                "its configuration"
                                              : "the new cluster refused a key (is keys 0 in its "
                                                "configuration?)");
    return result;
}

static void *work(void *context)
{
    struct restoring *all = context;
    struct vr_client *client;
    struct error err = {0};
    struct pair pair;
    int result = vr_client_open_cluster(&client, all->cluster, &err);
    if (!result) {
        vr_client_set_timeout(client, all->settings->timeout_ns);
        while (!result && take_pair(all, &pair))
            result = put(client, &pair, &err);
        vr_client_close(client);
    }
    if (result)
        note_error(all, &err);
    return NULL;
}

static int put_all(struct restoring *all, struct error *err)
{
    pthread_t threads[CLIENTS_MAX];
    unsigned count = 0;
    pthread_mutex_init(&all->lock, NULL);
    while (count < all->settings->clients && pthread_create(&threads[count], NULL, work, all) == 0)
        count++;
    if (!count)
        return error_set(err, -EAGAIN, "cannot start a thread");
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&all->lock);
    if (all->result)
        *err = all->err;
    return all->result;
}

/* Nothing is written before the whole file has been looked at. */
static int check_file(struct vr_backup_reader *b, FILE *in, const char *path, struct error *err)
{
    struct vr_bytes key, value;
    int result = vr_backup_read_head(b, in, path, err);
    while (!result)
        if ((result = vr_backup_next(b, &key, &value, err)) == 1)
            result = 0;
        else if (result == 0)
            break;
    rewind(in);
    return result ? result : vr_backup_read_head(b, in, path, err);
}

static void count_pair(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    (void)context, (void)key, (void)key_size, (void)value, (void)value_size;
}

static int check_cluster(const struct settings *o, const struct vr_cluster *cluster,
                         const struct vr_backup_head *head, struct error *err)
{
    struct vr_client *client;
    uint32_t count = 0;
    if (head->keys > cluster->config.kv_capacity)
        return error_set(
            err, -ENOSPC,
            "the backup has %lu keys, the configuration allows %u: a new cluster needs "
            "'keys %lu' or more",
            (unsigned long)head->keys, cluster->config.kv_capacity, (unsigned long)head->keys);
    int result = vr_client_open_cluster(&client, cluster, err);
    if (result)
        return result;
    vr_client_set_timeout(client, o->timeout_ns);
    result = vr_client_scan(client, "", 0, count_pair, NULL, &count, err);
    vr_client_close(client);
    if (!result && count && !o->again)
        result = error_set(err, -ENOTEMPTY,
                           "the cluster holds keys already; restore into a new one (or, if an "
                           "earlier restore into it was interrupted, use --again)");
    return result;
}

static void tell(const struct settings *o, const char *path, const struct vr_backup_head *head)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    if (!o->json) {
        printf("restored %lu %s from %s\n", (unsigned long)head->keys,
               plural(head->keys, "key", "keys"), path);
        return;
    }
    json_object(&j, NULL);
    json_string(&j, "file", path);
    json_u64(&j, "keys", head->keys);
    json_u64(&j, "op", head->op);
    json_end(&j);
    puts(strbuf_text(&out));
}

static int perform(const struct settings *o, const char *path, FILE *in, struct error *err)
{
    struct vr_cluster cluster;
    struct vr_backup_reader *file = memory_zalloc(1, sizeof(*file));
    int result = vr_cluster_read(&cluster, o->config, err);
    if (!result) {
        struct restoring all = {.settings = o, .cluster = &cluster, .file = file};
        result = check_file(file, in, path, err);
        if (!result)
            result = check_cluster(o, &cluster, &file->head, err);
        if (!result && (result = put_all(&all, err)) != 0)
            error_wrap(err, result, "the restore is not complete; repeat it with --again");
        vr_cluster_done(&cluster);
    }
    if (!result)
        tell(o, path, &file->head);
    free(file);
    return result;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = 5 * NS_PER_S, .clients = 16};
    struct error err = {0};
    int first, code;
    if (!vr_options(&vr_verb_restore, &o, argc, argv, &first, &code))
        return code;
    if (argc - first != 1)
        error_set(&err, -EINVAL, "name one file; write 'assay-vr restore FILE'");
    else if (o.clients < 1 || o.clients > CLIENTS_MAX)
        error_set(&err, -EINVAL, "--clients must be between 1 and %u", CLIENTS_MAX);
    if (err.code)
        return vr_fail(&vr_verb_restore, &err, 2);
    FILE *in = fopen(argv[first], "re");
    if (!in) {
        error_errno(&err, -errno, "%s", argv[first]);
        return vr_fail(&vr_verb_restore, &err, 2);
    }
    int result = perform(&o, argv[first], in, &err);
    fclose(in);
    if (result == 0)
        return 0;
    return vr_fail(&vr_verb_restore, &err, err.code == -ETIMEDOUT || err.code == -ESTALE ? 3 : 1);
}

const struct verb vr_verb_restore = {"restore",
                                     "put the keys of a backup into a new cluster",
                                     "FILE [--config FILE]",
                                     "  assay-vr restore -c new.conf monday.backup\n",
                                     options,
                                     run,
                                     NULL};
