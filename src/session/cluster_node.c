/* SPDX-License-Identifier: MIT */
/* See cluster_node.h. */
#include "session/cluster_node.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

char *node_name(void)
{
    const char *given = getenv("SLURMD_NODENAME");
    char host[65] = "";
    if (given && *given)
        return memory_strdup(given);
    if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
        snprintf(host, sizeof(host), "unknown");
    return memory_strdup(host);
}

char *node_type(const struct machine *m)
{
    struct sha256 h;
    char hex[65];
    sha256_start(&h);
    sha256_add_text(&h, m->arch);
    sha256_add_text(&h, m->cpu_vendor);
    sha256_add_text(&h, m->cpu_model);
    sha256_add_text(&h, m->distribution);
    sha256_end(&h, hex);
    return memory_printf("%s-%.8s", m->arch, hex);
}

char *node_json(const struct machine *m, const char *name)
{
    static const char *const states[] = {"pmu", "io-uring", "ebpf"};
    struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    char number[32];
    CLEANUP(memory_freep) char *type = node_type(m);
    json_object(&j, NULL);
    json_string(&j, "node", name);
    json_string(&j, "type", type);
    json_string(&j, "cpu", m->cpu_model);
    snprintf(number, sizeof(number), "%zu", m->cpu_count);
    json_string(&j, "cpus", number);
    json_string(&j, "kernel", m->kernel_release);
    json_string(&j, "distribution", m->distribution);
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        const struct finding *f = machine_find(m, states[i]);
        if (f)
            json_string(&j, states[i], finding_state_name(f->state));
    }
    json_string(&j, "rights", m->is_root ? "root" : "user");
    machine_write_json(m, &j, "machine");
    json_end(&j);
    return out.data;
}

/* ---- needs ---- */

static bool is_blank(char c)
{
    return c == ',' || isspace((unsigned char)c);
}

/* The number of the need in the text, which moves on; added when it is new and `n` may grow. */
static int next_need(struct needs *n, const char **text, bool may_grow)
{
    while (is_blank(**text))
        ++*text;
    const char *name = *text;
    size_t length = 0;
    while (name[length] && !is_blank(name[length]))
        length++;
    *text += length;
    if (!length)
        return -ENOENT;
    for (size_t i = 0; i < n->count; i++)
        if (n->lengths[i] == length && memcmp(n->names[i], name, length) == 0)
            return (int)i;
    if (!may_grow || n->count == NEEDS_MAX)
        return -E2BIG;
    n->names[n->count] = name;
    n->lengths[n->count] = length;
    return (int)n->count++;
}

static const char *needs_of_level(const struct spec_level *level)
{
    for (size_t a = 0; a < level->attributes.count; a++)
        if (str_eq(level->attributes.items[a].name, "needs"))
            return level->attributes.items[a].value;
    return "";
}

static int add_needs(struct needs *n, const char *text, struct error *err)
{
    int r;
    while ((r = next_need(n, &text, true)) >= 0)
        ;
    return r == -ENOENT ? 0 : error_set(err, r, "needs: at most %d different needs", NEEDS_MAX);
}

int needs_read(struct needs *n, const struct matrix *m, const struct machine *machine,
               struct error *err)
{
    *n = (struct needs){0};
    const struct spec *s = m->spec;
    int r = add_needs(n, s->needs, err);
    for (size_t f = 0; f < s->factor_count; f++)
        for (size_t l = 0; r == 0 && l < s->factors[f].level_count; l++)
            r = add_needs(n, needs_of_level(&s->factors[f].levels[l]), err);
    for (size_t i = 0; r == 0 && i < n->count; i++) {
        CLEANUP(memory_freep) char *name = memory_strndup(n->names[i], n->lengths[i]);
        if (!machine_find(machine, name))
            r = error_set(err, -EINVAL, "%s: needs: '%s' is not a finding of 'assay doctor --json'",
                          s->file, name);
    }
    return r;
}

static uint32_t mask_of(const struct needs *n, const char *text)
{
    struct needs known = *n;
    uint32_t mask = 0;
    int r;
    while ((r = next_need(&known, &text, false)) >= 0)
        mask |= 1u << r;
    return mask;
}

uint32_t needs_of_cell(const struct needs *n, const struct matrix *m, size_t cell)
{
    if (!n->count)
        return 0;
    uint32_t mask = mask_of(n, m->spec->needs);
    for (size_t f = 0; f < m->spec->factor_count; f++)
        mask |= mask_of(n, needs_of_level(m->cells[cell].levels[f]));
    return mask;
}

/* Who runs the cluster may keep a node from being used for something, whatever it can do. */
bool node_lacks(const char *name)
{
    const char *lacks = getenv("ASSAY_LACKS");
    size_t length = strlen(name);
    for (const char *at = lacks; at && (at = strstr(at, name)); at += length)
        if ((at == lacks || is_blank(at[-1])) && (!at[length] || is_blank(at[length])))
            return true;
    return false;
}

bool needs_lack(const struct needs *n, uint32_t needs, const struct machine *m, struct strbuf *why)
{
    for (size_t i = 0; i < n->count; i++) {
        if (!(needs & 1u << i))
            continue;
        CLEANUP(memory_freep) char *name = memory_strndup(n->names[i], n->lengths[i]);
        const struct finding *f = machine_find(m, name);
        if (node_lacks(name)) {
            strbuf_printf(why, "%s: ASSAY_LACKS says so", name);
            return true;
        }
        if (f && f->state == FINDING_YES)
            continue;
        strbuf_printf(why, "%s: %s", name, f ? f->detail : "not known there");
        return true;
    }
    return false;
}
