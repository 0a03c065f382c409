/* SPDX-License-Identifier: MIT */
/* See hosts.h. */
#include "session/hosts.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "run/command.h"
#include "session/cluster_node.h"
#include "session/slurm_tool.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define SSH_WORDS "ssh"
#define SRUN_WORDS "srun --quiet --overlap --nodes=1 --ntasks=1 --input=none --nodelist={host} --"

/* ssh gives the words to a shell there, in another folder than this one. */
static int set_ssh(struct spec *s, struct spec_host *h, struct error *err)
{
    char folder[PATH_MAX];
    if (!realpath(s->folder, folder))
        return error_errno(err, -errno, "%s", s->folder);
    char *const words[] = {folder, NULL};
    CLEANUP(strbuf_done) struct strbuf quoted = {0};
    strbuf_put_command(&quoted, words);
    const char *const launcher[] = {"ssh",
                                    "-tt",
                                    "-q",
                                    "-o",
                                    "BatchMode=yes",
                                    h->host,
                                    "cd",
                                    arena_strdup(&s->arena, strbuf_text(&quoted)),
                                    "&&",
                                    NULL};
    h->launcher = arena_alloc(&s->arena, sizeof(launcher));
    memcpy(h->launcher, launcher, sizeof(launcher));
    return 0;
}

static int set_launcher(struct spec *s, struct spec_host *h, const char *launcher,
                        struct error *err)
{
    if (str_eq(launcher, SSH_WORDS))
        return set_ssh(s, h, err);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *at = launcher, *hole;
    for (; (hole = strstr(at, "{host}")); at = hole + strlen("{host}")) {
        strbuf_append(&text, at, (size_t)(hole - at));
        strbuf_puts(&text, h->host);
    }
    strbuf_puts(&text, at);
    char **words = NULL;
    bool needs_shell;
    int r = command_split(strbuf_text(&text), &words, &needs_shell, err);
    if (r < 0)
        return error_wrap(err, r, "--launcher");
    size_t count = 0;
    while (words[count])
        count++;
    h->launcher = arena_alloc(&s->arena, (count + 1) * sizeof(*h->launcher));
    for (size_t i = 0; i < count; i++)
        h->launcher[i] = arena_strdup(&s->arena, words[i]);
    h->launcher[count] = NULL;
    command_free_words(words);
    return 0;
}

/* Names become words of a command line and parts of texts. */
static bool is_host(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_:[]%", *c))
            return false;
    return *name && *name != '-';
}

/* "NAME" or "NAME@ADDRESS". */
static int place(struct spec *s, struct spec_host *h, const char *text, const char *launcher,
                 struct error *err)
{
    const char *at = strchr(text, '@');
    h->host = arena_strndup(&s->arena, text, at ? (size_t)(at - text) : strlen(text));
    h->address = at ? arena_strdup(&s->arena, at + 1) : h->host;
    if (!is_host(h->host) || !is_host(h->address))
        return error_set(err, -EINVAL, "--hosts: '%s' is not a host", text);
    return launcher ? set_launcher(s, h, launcher, err) : 0;
}

static struct spec_host *find_role(struct spec *s, const char *name, size_t length)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (strlen(s->hosts[i].name) == length && memcmp(s->hosts[i].name, name, length) == 0)
            return &s->hosts[i];
    return NULL;
}

static int place_list(struct spec *s, const char *list, const char *launcher, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int r = list[0] == '@' ? file_read(list + 1, &text, err) : (strbuf_puts(&text, list), 0);
    if (r < 0)
        return error_wrap(err, r, "--hosts");
    strbuf_puts(&text, "");
    char *save = NULL;
    size_t next = 0;
    for (char *word = strtok_r(text.data, ", \t\r\n", &save); r == 0 && word;
         word = strtok_r(NULL, ", \t\r\n", &save)) {
        char *equals = strchr(word, '=');
        struct spec_host *h = equals                 ? find_role(s, word, (size_t)(equals - word))
                              : next < s->host_count ? &s->hosts[next++]
                                                     : NULL;
        if (!h && equals)
            return error_set(err, -EINVAL, "--hosts: the spec has no role '%.*s'",
                             (int)(equals - word), word);
        if (h)
            r = place(s, h, equals ? equals + 1 : word, launcher, err);
    }
    for (size_t i = 0; r == 0 && i < s->host_count; i++)
        if (!s->hosts[i].host)
            r = error_set(err, -EINVAL, "--hosts: no host given for the role '%s'",
                          s->hosts[i].name);
    return r;
}

static int place_in_allocation(struct spec *s, struct error *err)
{
    CLEANUP(slurm_hosts_done) struct slurm_hosts nodes = {0};
    int r = slurm_list_allocation(&nodes, err);
    if (r == 0 && nodes.count < s->host_count)
        r = error_set(err, -EINVAL, "the spec has %zu %s, but the allocation has %zu %s",
                      s->host_count, plural(s->host_count, "role", "roles"), nodes.count,
                      plural(nodes.count, "node", "nodes"));
    for (size_t i = 0; r == 0 && i < s->host_count; i++) {
        CLEANUP(memory_freep)
        char *text = memory_printf("%s@%s", nodes.items[i].name, nodes.items[i].address);
        r = place(s, &s->hosts[i], text, SRUN_WORDS, err);
    }
    return r;
}

int hosts_place(struct spec *s, const char *list, const char *launcher, struct error *err)
{
    if (!s->host_count)
        return list ? error_set(err, -EINVAL, "--hosts: the spec has no 'hosts'") : 0;
    int r = 0;
    if (list)
        r = place_list(s, list, launcher ? launcher : SSH_WORDS, err);
    else if (getenv("SLURM_JOB_NODELIST") && getenv("SLURM_ARRAY_TASK_ID"))
        r = place_in_allocation(s, err);
    else
        for (size_t i = 0; r == 0 && i < s->host_count; i++)
            r = place(s, &s->hosts[i], "127.0.0.1", NULL, err);
    /* With a launcher of the user's own the first role needs it as well: a network namespace is
     * not where assay runs. */
    if (r == 0 && !launcher)
        s->hosts[0].launcher = NULL;
    return r;
}
