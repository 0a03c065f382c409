/* SPDX-License-Identifier: MIT */
/* assay-vr kv: the key-value store for people. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "vr/client/client.h"
#include "vr/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

struct settings {
    const char *config;
    uint64_t timeout_ns;
    bool json;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {0, "timeout", OPTION_SECONDS, offsetof(struct settings, timeout_ns), "T",
     "give up after this time (5 s)", NULL},
    {0, "json", OPTION_FLAG, offsetof(struct settings, json), NULL, "print JSON", NULL},
    {0},
};

static const struct {
    const char *name;
    int least, most; /* words behind it */
    const char *words;
} operations[] = {
    {"get", 1, 1, "KEY"},    {"put", 2, 2, "KEY VALUE"}, {"cas", 3, 3, "KEY OLD NEW"},
    {"delete", 1, 1, "KEY"}, {"scan", 0, 1, "[KEY]"},
};

struct pairs {
    struct strbuf *out;
    struct json *json; /* NULL: text */
    unsigned char last[VR_KEY_BYTES_MAX];
    size_t last_size;
};

static void print_pair(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    struct pairs *p = context;
    memcpy(p->last, key, key_size);
    p->last_size = key_size;
    if (p->json) {
        json_object(p->json, NULL);
        json_string_n(p->json, "key", key, key_size);
        json_string_n(p->json, "value", value, value_size);
        json_end(p->json);
        return;
    }
    strbuf_put_safe(p->out, key, key_size, VR_KEY_BYTES_MAX);
    strbuf_putc(p->out, '\t');
    strbuf_put_safe(p->out, value, value_size, VR_VALUE_BYTES_MAX);
    strbuf_putc(p->out, '\n');
}

/* The least key behind the last one; false when there is none. */
static bool move_behind(struct pairs *p)
{
    if (p->last_size < sizeof(p->last)) {
        p->last[p->last_size++] = 0;
        return true;
    }
    while (p->last_size && p->last[p->last_size - 1] == 0xff)
        p->last_size--;
    if (!p->last_size)
        return false;
    p->last[p->last_size - 1]++;
    return true;
}

static int scan(struct vr_client *c, const char *from, bool as_json, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json json = {.out = &out};
    struct pairs pairs = {.out = &out, .json = as_json ? &json : NULL};
    uint32_t count = 0;
    if (as_json)
        json_array(&json, NULL);
    int result = vr_client_scan(c, from, strlen(from), print_pair, &pairs, &count, err);
    while (!result && count && move_behind(&pairs))
        result = vr_client_scan(c, pairs.last, pairs.last_size, print_pair, &pairs, &count, err);
    if (as_json) {
        json_end(&json);
        strbuf_putc(&out, '\n');
    }
    if (result)
        return result;
    result = fd_write_all(STDOUT_FILENO, strbuf_text(&out), out.length);
    return result < 0 ? error_errno(err, result, "standard output") : 0;
}

static int call(struct vr_client *c, char **words, enum vr_result *outcome, char *value,
                uint32_t *size, struct error *err)
{
    size_t key_size = strlen(words[1]);
    switch (words[0][0]) {
    case 'g':
        return vr_client_get(c, words[1], key_size, outcome, value, size, err);
    case 'p':
        return vr_client_put(c, words[1], key_size, words[2], strlen(words[2]), outcome, err);
    case 'c':
        return vr_client_cas(c, words[1], key_size, words[2], strlen(words[2]), words[3],
                             strlen(words[3]), outcome, value, size, err);
    default:
        return vr_client_delete(c, words[1], key_size, outcome, err);
    }
}

static int say(enum vr_result outcome, const char *value, uint32_t size, bool as_json)
{
    static const char *const names[] = {"ok",   "not found", "conflict",
                                        "full", "invalid",   "too large"};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (as_json) {
        struct json j = {.out = &out};
        json_object(&j, NULL);
        json_string(&j, "result", outcome <= VR_TOO_LARGE ? names[outcome] : "unknown");
        if (size)
            json_string_n(&j, "value", value, size);
        json_end(&j);
    } else {
        strbuf_append(&out, value, size);
    }
    if (out.length)
        strbuf_putc(&out, '\n');
    int written = fd_write_all(STDOUT_FILENO, strbuf_text(&out), out.length);
    if (written < 0) {
        fprintf(stderr, "assay-vr kv: standard output: %s\n", strerror(-written));
        return 3;
    }
    if (outcome == VR_OK)
        return 0;
    if (!as_json)
        fprintf(stderr, "assay-vr kv: %s\n",
                outcome == VR_NOT_FOUND  ? "there is no such key"
                : outcome == VR_CONFLICT ? "the key has a different value"
                : outcome == VR_FULL     ? "the store is full: it cannot hold another key"
                : outcome == VR_TOO_LARGE
                    ? "too large for a log entry (batch-bytes in the configuration)"
                    : "the service does not support this (is keys 0 in its settings?)");
    return outcome == VR_NOT_FOUND || outcome == VR_CONFLICT ? 1 : 2;
}

static int perform(const struct settings *o, char **words, struct error *err, int *ret_code)
{
    struct vr_client *c;
    int result = vr_client_open(&c, o->config, err);
    if (result)
        return result;
    vr_client_set_timeout(c, o->timeout_ns);
    *ret_code = 0;
    if (str_eq(words[0], "scan")) {
        result = scan(c, words[1] ? words[1] : "", o->json, err);
    } else {
        char value[VR_RESULT_BYTES_MAX];
        uint32_t size = 0;
        enum vr_result outcome;
        result = call(c, words, &outcome, value, &size, err);
        if (!result)
            *ret_code = say(outcome, value, size, o->json);
    }
    vr_client_close(c);
    return result;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf", .timeout_ns = 5 * NS_PER_S};
    struct error err = {0};
    int first, code;
    if (!vr_options(&vr_verb_kv, &o, argc, argv, &first, &code))
        return code;
    char **words = argv + first;
    int count = argc - first;
    for (size_t i = 0; count && i < ARRAY_COUNT(operations); i++) {
        if (!str_eq(words[0], operations[i].name))
            continue;
        if (count - 1 < operations[i].least || count - 1 > operations[i].most) {
            error_set(&err, -EINVAL, "write 'assay-vr kv %s %s'", words[0], operations[i].words);
            return vr_fail(&vr_verb_kv, &err, 2);
        }
        if (perform(&o, words, &err, &code))
            return vr_fail(&vr_verb_kv, &err,
                           err.code == -ETIMEDOUT || err.code == -ESTALE ? 3 : 2);
        return code;
    }
    error_set(&err, -EINVAL, "%s%s; use get, put, cas, delete or scan",
              count ? "unknown operation " : "the operation is missing", count ? words[0] : "");
    return vr_fail(&vr_verb_kv, &err, 2);
}

const struct verb vr_verb_kv = {
    "kv",
    "read and write the replicated store",
    "get KEY | put KEY VALUE | cas KEY OLD NEW | delete KEY | scan [KEY]",
    "  assay-vr kv -c cluster.conf put colour green\n"
    "  assay-vr kv -c cluster.conf cas colour green blue    only if it is green\n"
    "  assay-vr kv -c cluster.conf cas colour '' green      only if there is none\n",
    options,
    run,
    NULL};
