/* SPDX-License-Identifier: MIT */
/* The table of claims and proofs: see prove.h. */
#include "prove.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRY_MS = 30000 };

const char *const way_names[WAYS] = {"completions", "aliasing", "bpf", "profile"};

static int parse_ways(const char *text, bool wanted[WAYS], struct error *err)
{
    for (int way = 0; way < WAYS; way++)
        wanted[way] = !*text;
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    for (char *save = NULL, *word = strtok_r(copy, ",", &save); word;
         word = strtok_r(NULL, ",", &save)) {
        int way = 0;
        while (way < WAYS && !str_eq(word, way_names[way]))
            way++;
        if (way == WAYS)
            return error_set(err, -EINVAL,
                             "--prove=%s: the methods are completions, aliasing, bpf, profile",
                             word);
        wanted[way] = true;
    }
    return 0;
}

/* The settings of one message for the variant. */
static int settings_for(const struct settings *s, const struct variant *v, struct settings *ret,
                        struct error *err)
{
    *ret = *s;
    ret->variant_name = v->name;
    ret->receive_name = NULL;
    ret->size = 4096;
    if (v->pieces) { /* a message that fits into any queue */
        ret->pieces = 8;
        ret->size = 512;
    }
    ret->batch = s->batch < 8 ? s->batch : 8;
    ret->threads = 1;
    ret->verify = false;
    ret->pin = NULL;
    ret->cc = NULL;
    int r = settings_check(ret, err);
    if (r == 0 && ret->transport == TRANSPORT_VETH)
        r = error_set(err, -EINVAL, "--prove runs both ends in one process, so it cannot use veth");
    return r;
}

/* The try is a process of its own: whatever happens in it, the table goes on. */
static void try_apart(const struct settings *s, struct proof *shared, const bool wanted[WAYS])
{
    shared->verdict = FAILED; /* until the child knows better */
    snprintf(shared->words, sizeof(shared->words), "the test did not finish");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        snprintf(shared->words, sizeof(shared->words), "no process: %s", strerror(errno));
        return;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        struct error err = {0};
        int r = prove_try(s, shared, wanted, &err);
        if (r < 0)
            snprintf(shared->words, sizeof(shared->words), "%.199s", err.message);
        shared->verdict = r < 0 ? FAILED : UNPROVEN;
        _exit(0);
    }
    uint64_t deadline_ns = clock_now_ns() + TRY_MS * NS_PER_MS;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_now_ns() > deadline_ns)
            kill(pid, SIGKILL);
        poll(NULL, 0, 2);
    }
    if (WIFSIGNALED(status))
        snprintf(shared->words, sizeof(shared->words), "the test was killed by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/* What all ways together say; ways that contradict each other say both. */
static enum finding sum_up(const struct proof *p)
{
    bool copy = false, none = false;
    for (int way = 0; way < WAYS; way++) {
        copy |= p->ways[way].finding == FOUND_COPY || p->ways[way].finding == FOUND_BOTH;
        none |= p->ways[way].finding == FOUND_NO_COPY || p->ways[way].finding == FOUND_BOTH;
    }
    return copy && none ? FOUND_BOTH : copy ? FOUND_COPY : none ? FOUND_NO_COPY : FOUND_NOTHING;
}

void prove_judge(struct proof *p)
{
    if (p->verdict == FAILED)
        return;
    const struct claim *claim = &p->variant->claim;
    enum copies c = p->variant->role == ROLE_RECEIVE ? claim->receive : claim->send;
    enum finding f = sum_up(p);
    const char *words;
    if (f == FOUND_NOTHING) {
        p->verdict = UNPROVEN;
        words = "not proven by any method";
    } else if (c == COPIES_IF_REFUSED) {
        p->verdict = f == FOUND_COPY ? REFUSED : PROVEN;
        words = f == FOUND_COPY      ? "refused: copied after all"
                : f == FOUND_NO_COPY ? "granted: not copied"
                                     : "granted for some, copied for others";
    } else if (c == COPIES_SOME || c == COPIES_NOT_MY_SIDE) {
        p->verdict = PROVEN;
        words = f == FOUND_COPY ? "copied" : f == FOUND_NO_COPY ? "not copied" : "copied in part";
    } else {
        bool agrees = c == COPIES_NONE ? f == FOUND_NO_COPY : f == FOUND_COPY;
        p->verdict = agrees ? PROVEN : CONTRADICTED;
        words = f == FOUND_COPY && c == COPIES_TWO ? "copied in the call, besides its own memcpy"
                : f == FOUND_COPY                  ? "copied"
                : f == FOUND_NO_COPY               ? "not copied"
                                                   : "the methods disagree";
    }
    snprintf(p->words, sizeof(p->words), "%s", words);
}

static const char *claim_text(const struct variant *v)
{
    static const char *const words[] = {
        [COPIES_NONE] = "no copy",   [COPIES_ONE] = "one copy",
        [COPIES_TWO] = "two copies", [COPIES_IF_REFUSED] = "none, if granted",
        [COPIES_SOME] = "depends",   [COPIES_NOT_MY_SIDE] = "-",
    };
    return words[v->role == ROLE_RECEIVE ? v->claim.receive : v->claim.send];
}

static const char *verdict_text(const struct proof *p)
{
    static const char *const words[] = {"proven", "refused", "CONTRADICTED", "unproven",
                                        "not available"};
    return words[p->verdict];
}

static void put_table(const struct proof *proofs, size_t count)
{
    static const char *const sides[] = {"send", "receive", "alone"};
    printf("%-22s %-7s %-9s %-16s %-14s %-12s %-13s %-8s proven\n", "variant", "side", "over",
           "claimed", "completions", "aliasing", "bpf", "profile");
    for (size_t i = 0; i < count; i++) {
        const struct proof *p = &proofs[i];
        const char *cells[WAYS];
        for (int way = 0; way < WAYS; way++)
            cells[way] = p->ways[way].cell[0] ? p->ways[way].cell : "-";
        printf("%-22s %-7s %-9s %-16s %-14s %-12s %-13s %-8s %s%s%s\n", p->variant->name,
               sides[p->variant->role], transport_text(p->transport), claim_text(p->variant),
               cells[WAY_COMPLETIONS], cells[WAY_ALIASING], cells[WAY_BPF], cells[WAY_PROFILE],
               p->verdict == PROVEN || p->verdict == REFUSED ? "" : verdict_text(p),
               p->verdict == PROVEN || p->verdict == REFUSED ? "" : ": ", p->words);
    }
    puts("\n"
         "-: this method cannot tell; --prove --variant NAME says why. aliasing: which bytes "
         "arrive when the\n"
         "source is overwritten after the call. profile: the side's time in copying functions.");
}

/* One variant, all that is known of it. */
static void put_whole(const struct proof *p)
{
    printf("%s over %s\n  claims       %s: %s\n  evidence\n", p->variant->name,
           transport_text(p->transport), claim_text(p->variant), p->variant->claim.words);
    for (int way = 0; p->verdict != FAILED && way < WAYS; way++)
        printf("    %-12s %s\n", way_names[way], p->ways[way].words);
    printf("  %-12s %s\n", verdict_text(p), p->words);
}

static void put_json(const struct proof *proofs, size_t count)
{
    static const char *const findings[] = {"nothing", "copy", "no copy", "both"};
    static const char *const verdicts[] = {"proven", "refused", "contradicted", "unproven",
                                           "failed"};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out};
    json_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct proof *p = &proofs[i];
        json_object(&j, NULL);
        json_string(&j, "variant", p->variant->name);
        json_string(&j, "transport", transport_text(p->transport));
        json_string(&j, "claimed", claim_text(p->variant));
        json_string(&j, "where", p->variant->claim.words);
        json_string(&j, "verdict", verdicts[p->verdict]);
        json_string(&j, "words", p->words);
        json_object(&j, "ways");
        for (int way = 0; way < WAYS; way++) {
            json_object(&j, way_names[way]);
            json_string(&j, "finding", findings[p->ways[way].finding]);
            json_string(&j, "words", p->ways[way].words);
            json_end(&j);
        }
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    puts(strbuf_text(&out));
}

/* A receive side that only serves one sender is proven with that sender. */
static bool has_row(const struct settings *s, const struct variant *v)
{
    if (v->hidden || (s->transport && !(s->transport & v->transports)))
        return false;
    for (size_t i = 0; v->role == ROLE_RECEIVE && variants[i]; i++)
        if (variants[i]->partner && str_eq(variants[i]->partner, v->name))
            return false;
    return true;
}

static void prove_one(const struct settings *s, const struct variant *v, struct proof *shared,
                      const bool wanted[WAYS])
{
    struct settings one;
    struct error err = {0};
    *shared = (struct proof){.variant = v};
    if (settings_for(s, v, &one, &err) < 0) {
        shared->verdict = FAILED;
        snprintf(shared->words, sizeof(shared->words), "%.199s", err.message);
        return;
    }
    shared->transport = one.transport;
    try_apart(&one, shared, wanted);
    if (shared->verdict != FAILED && wanted[WAY_PROFILE])
        prove_profile(&one, shared);
    else
        snprintf(shared->ways[WAY_PROFILE].words, sizeof(shared->ways[WAY_PROFILE].words),
                 "not requested");
    prove_judge(shared);
}

int prove(const struct settings *s, size_t *ret_contradictions, struct error *err)
{
    bool wanted[WAYS];
    int r = parse_ways(s->prove, wanted, err);
    if (r < 0)
        return r;
    if (s->variant_name && !variant_find(s->variant_name))
        return error_set(err, -EINVAL, "there is no variant '%s'; --list shows them all",
                         s->variant_name);
    struct settings all = *s;
    if (s->transport_name) {
        all.transport = transport_named(s->transport_name);
        if (!all.transport)
            return error_set(err, -EINVAL, "there is no transport '%s'", s->transport_name);
    }
    struct proof *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return error_errno(err, -errno, "shared memory");
    struct proof *proofs = NULL;
    size_t count = 0, capacity = 0, contradictions = 0;
    struct progress progress;
    progress_start(&progress);
    for (size_t i = 0; variants[i]; i++) {
        const struct variant *v = variants[i];
        if (s->variant_name ? !str_eq(s->variant_name, v->name) : !has_row(&all, v))
            continue;
        progress_show(&progress, "proving %s", v->name);
        prove_one(s, v, shared, wanted);
        contradictions += shared->verdict == CONTRADICTED;
        ARRAY_PUSH(proofs, count, capacity) = *shared;
    }
    progress_end(&progress);
    munmap(shared, sizeof(*shared));
    if (s->json)
        put_json(proofs, count);
    else if (s->variant_name)
        put_whole(&proofs[0]);
    else
        put_table(proofs, count);
    free(proofs);
    *ret_contradictions = contradictions;
    return 0;
}
