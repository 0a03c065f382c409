/* SPDX-License-Identifier: MIT */
/* `assay compare --mail FILE`: the comparison as a message, with what reproduces it attached. */
#include "cmd/compare_mail.h"
#include "analysis/profiles.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cmd/cmd.h"
#include "config.h"
#include "report/mail/mail.h"
#include "report/profile/diff.h"
#include "vm/kernels.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { PARTS_MAX = 8 };

/* ---- functions ---- */

static int put_pair(struct strbuf *out, const struct profile_pair *pair, struct error *err)
{
    struct profile_loads loads = {0};
    struct diff d = {0};
    int r = profile_loads_read(&loads, pair, err);
    if (r == 0)
        r = diff_build(&d, &loads.options, err);
    if (r == 0)
        report_diff_text(
            out, &(struct diff_view){.d = &d,
                                     .names = {pair->sides[SIDE_A].name, pair->sides[SIDE_B].name},
                                     .label = pair->label,
                                     .emulated = pair->emulated});
    diff_done(&d);
    profile_loads_done(&loads);
    return r;
}

/* As `assay diff` has them; nothing where nothing was sampled. */
static void put_functions(struct strbuf *out, const struct compare_mail *m)
{
    struct error ignored = {0};
    struct profile_pairs pairs = {0};
    int r = profile_pairs_find(&pairs, m->base, m->new, m->in, m->db, &ignored);
    for (size_t i = 0; r == 0 && i < pairs.count; i++) {
        strbuf_puts(out, i ? "\n" : "");
        r = put_pair(out, &pairs.items[i], &ignored);
    }
    profile_pairs_done(&pairs);
}

/* ---- what reproduces it ---- */

/* Quoted for a shell. */
static void put_word(struct strbuf *out, const char *word)
{
    strbuf_putc(out, '\'');
    for (; *word; word++)
        strbuf_puts(out, *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
    strbuf_putc(out, '\'');
}

/* A package is named with its version, so that later ones are not taken. */
static char *pin(const char *spec, const char *image, const char *kernel)
{
    CLEANUP(memory_freep) char *word = memory_printf("image: %s", image);
    struct strbuf out = {0};
    size_t length = strlen(word);
    for (const char *at = spec; *at;) {
        bool is_whole = strncmp(at, word, length) == 0 && strchr(" ,}\t\r\n", at[length]);
        if (is_whole)
            strbuf_printf(&out, "image: %s", kernel);
        else
            strbuf_putc(&out, *at);
        at += is_whole ? length : 1;
    }
    return out.data ? out.data : memory_strdup("");
}

static void put_fetch(struct strbuf *out, const char *kernel)
{
    CLEANUP(memory_freep) char *word = memory_strdup(kernel);
    char *version = strchr(word, '_');
    if (strchr(word, '/') || !version)
        return;
    *version = '=';
    strbuf_puts(out, "assay vm fetch ");
    put_word(out, word);
    strbuf_putc(out, '\n');
}

static void put_script(struct strbuf *out, const struct compare_mail *m)
{
    const struct compare *c = m->view->c;
    char *spec = memory_strdup(m->spec);
    strbuf_puts(out,
                "#!/bin/sh\n"
                "# Measures and compares again what the mail is about, with assay " ASSAY_VERSION
                " or later.\n"
                "# Paths in the spec are relative to the directory in which this runs.\n"
                "# Arguments go to assay run, e.g. --rounds 3.\n"
                "set -e\n");
    for (size_t p = 0; c->pair_count && p < 2; p++) {
        const struct dataset *d = p ? c->new : c->base;
        size_t cell = p ? c->pairs[0].new_cell : c->pairs[0].base_cell;
        CLEANUP(memory_freep) char *kernel = compare_kernel_fact(d, cell, "kernel");
        CLEANUP(memory_freep) char *image = compare_kernel_fact(d, cell, "image");
        if (kernel)
            put_fetch(out, kernel);
        if (kernel && image) {
            char *pinned = pin(spec, image, kernel);
            free(spec);
            spec = pinned;
        }
    }
    size_t length = strlen(spec);
    strbuf_printf(out, "cat >reproduce.yaml <<'END_OF_SPEC'\n%s%sEND_OF_SPEC\n", spec,
                  length && spec[length - 1] == '\n' ? "" : "\n");
    strbuf_puts(out, "assay run --db reproduce.db \"$@\" reproduce.yaml\n");
    if (c->within) {
        strbuf_puts(out, "assay compare --db reproduce.db --lkp ");
        put_word(out, m->base);
        strbuf_putc(out, ' ');
        put_word(out, m->new);
        strbuf_putc(out, '\n');
    }
    free(spec);
}

/* The configuration with which a kernel was built; NULL where it is not known. */
static char *read_config(const struct dataset *d, size_t cell)
{
    CLEANUP(memory_freep) char *name = compare_kernel_fact(d, cell, "kernel");
    struct vm_kernel kernel;
    if (!name || vm_kernel_find(&kernel, name, &(struct error){0}) < 0)
        return NULL;
    struct strbuf text = {0};
    /* Of a package; of a tree in which arch/ARCH/boot holds the image. */
    for (size_t i = 0; !text.length && i < 2; i++) {
        CLEANUP(memory_freep)
        char *path = i ? memory_printf("%s/../../../.config", kernel.folder)
                       : memory_printf("%s/config", kernel.folder);
        file_read(path, &text, NULL);
    }
    vm_kernel_done(&kernel);
    if (!text.length)
        strbuf_done(&text);
    return text.data;
}

/* ---- the message ---- */

static char *sender(void)
{
    const char *given = getenv("EMAIL"), *user = getenv("USER");
    char host[HOST_NAME_MAX + 1] = "localhost";
    gethostname(host, sizeof(host));
    return given && *given ? memory_strdup(given)
                           : memory_printf("%s@%s", user && *user ? user : "assay", host);
}

int compare_mail_write(const struct compare_mail *m, const char *place, struct error *err)
{
    const struct compare *c = m->view->c;
    CLEANUP(strbuf_done)
    struct strbuf out = {0}, subject = {0}, body = {0}, functions = {0}, script = {0};
    CLEANUP(memory_freep) char *from = sender();
    char *configs[2] = {NULL, NULL}, *names[2] = {NULL, NULL};
    struct mail_part parts[PARTS_MAX];
    size_t count = 0;
    put_functions(&functions, m);
    report_compare_subject(&subject, c);
    report_compare_mail(&body, m->view, strbuf_text(&functions));
    parts[count++] = (struct mail_part){NULL, strbuf_text(&body)};
    if (m->spec) {
        put_script(&script, m);
        parts[count++] = (struct mail_part){"reproduce.sh", strbuf_text(&script)};
        parts[count++] = (struct mail_part){"spec.yaml", m->spec};
    }
    for (size_t s = 0; c->pair_count && s < 2; s++) {
        const struct dataset *d = s ? c->new : c->base;
        size_t cell = s ? c->pairs[0].new_cell : c->pairs[0].base_cell;
        CLEANUP(memory_freep) char *release = compare_kernel_fact(d, cell, "release");
        configs[s] = read_config(d, cell);
        names[s] = memory_printf("config-%s", release ? release : s ? "new" : "base");
        if (configs[s])
            parts[count++] = (struct mail_part){names[s], configs[s]};
    }
    report_mail(&out, &(struct mail){.from = from,
                                     .subject = strbuf_text(&subject),
                                     .date = time(NULL),
                                     .parts = parts,
                                     .part_count = count});
    for (size_t s = 0; s < 2; s++) {
        free(configs[s]);
        free(names[s]);
    }
    return file_write(place, strbuf_text(&out), out.length, err);
}
