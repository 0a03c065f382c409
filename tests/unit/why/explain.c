/* SPDX-License-Identifier: MIT */
/* Samples sorted into causes, on stacks made by hand. */
#include "report/text/explain.h"
#include "base/memory.h"
#include "test.h"
#include "why/explain_parts.h"

#include <stdlib.h>

enum { CPU, OFF_CPU, PREEMPTED };

/* A run of each side with the same functions. */
struct made {
    struct profile profile;
    struct profile_event events[3];
};

static void made_init(struct made *m, bool has_threads)
{
    *m = (struct made){.events = {{.name = "cpu-clock", .is_time = true, .has_callers = true},
                                  {.name = "off-cpu", .is_time = true, .is_off_cpu = true},
                                  {.name = "off-cpu:preempted", .is_off_cpu = true}}};
    calls_init(&m->profile.calls);
    tasks_init(&m->profile.tasks);
    tasks_current(&m->profile.tasks, 1, 1);
    if (has_threads)
        tasks_current(&m->profile.tasks, 1, 2);
    m->profile.path = "made.data";
    m->profile.events = m->events;
    m->profile.event_count = 3;
}

static void made_done(struct made *m)
{
    calls_done(&m->profile.calls);
    tasks_done(&m->profile.tasks);
}

static uint32_t symbol_of(struct calls *c, const char *name, bool is_kernel)
{
    for (uint32_t i = 0; i < c->symbol_count; i++)
        if (str_eq(c->symbols[i].name, name) && c->symbols[i].is_kernel == is_kernel)
            return i;
    ARRAY_PUSH(c->symbols, c->symbol_count, c->symbol_capacity) = (struct profile_symbol){
        .name = arena_strdup(&c->arena, name),
        .dso = names_add(&c->dsos, &c->arena, is_kernel ? "[kernel]" : "prog"),
        .is_kernel = is_kernel};
    return (uint32_t)c->symbol_count - 1;
}

/* "main;read|__x64_sys_read;vfs_read": user frames, then the kernel's. */
static void add(struct made *m, uint32_t event, const char *stack, uint64_t samples)
{
    struct calls *c = &m->profile.calls;
    CLEANUP(memory_freep) char *text = memory_strdup(stack);
    char *kernel = strchr(text, '|'), *save = NULL;
    const char *end = kernel ? kernel : text + strlen(text);
    uint32_t node = 0;
    for (char *name = strtok_r(text, ";|", &save); name; name = strtok_r(NULL, ";|", &save))
        node = calls_push(c, node, calls_frame(c, symbol_of(c, name, name > end), 0, false));
    calls_add(c, node, 0, event, 0, samples, samples * 1000);
    m->events[event].samples += samples;
}

struct sorted {
    struct made sides[SIDE_COUNT];
    struct diff_run runs[SIDE_COUNT];
    struct profile *profiles[SIDE_COUNT];
    struct profile_loads loads;
    struct diff diff;
    struct parts parts;
};

static void sort_all(struct sorted *s)
{
    struct error err;
    for (unsigned i = 0; i < SIDE_COUNT; i++) {
        s->profiles[i] = &s->sides[i].profile;
        s->runs[i] = (struct diff_run){&s->sides[i].profile, CPU, 1};
        s->loads.profiles[i] = &s->profiles[i];
        s->loads.runs[i] = &s->runs[i];
        s->loads.counts[i] = 1;
        s->loads.options.sides[i] = (struct diff_input){.runs = &s->runs[i], .run_count = 1};
    }
    CHECK_INT(diff_build(&s->diff, &s->loads.options, &err), 0);
    parts_build(&s->parts, &s->loads, &s->diff, NULL);
}

static void sorted_done(struct sorted *s)
{
    parts_done(&s->parts);
    diff_done(&s->diff);
    made_done(&s->sides[SIDE_A]);
    made_done(&s->sides[SIDE_B]);
}

/* The weight of a part on side B, in samples; -1 when there is no such part. */
static double found(const struct sorted *s, enum part_kind kind, const char *name)
{
    for (size_t i = 0; i < s->parts.count; i++)
        if (s->parts.items[i].kind == kind && str_eq(s->parts.items[i].name, name))
            return s->parts.items[i].weights[SIDE_B][0] / 1000;
    return -1;
}

static void start(struct sorted *s, bool has_threads)
{
    *s = (struct sorted){0};
    made_init(&s->sides[SIDE_A], has_threads);
    made_init(&s->sides[SIDE_B], has_threads);
    add(&s->sides[SIDE_A], CPU, "main;work", 100);
}

TEST(system_calls_have_names)
{
    CHECK_STR(part_syscall_name("__x64_sys_pread64"), "pread64");
    CHECK_STR(part_syscall_name("__arm64_sys_read"), "read");
    CHECK_STR(part_syscall_name("__do_sys_getppid"), "getppid");
    CHECK(!part_syscall_name("vfs_read"));
}

TEST(the_kernels_work_goes_to_its_cause)
{
    struct sorted s;
    start(&s, false);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;work", 100);
    add(b, CPU, "main;read|entry_SYSCALL_64;do_syscall_64;__x64_sys_read;vfs_read", 40);
    add(b, CPU,
        "main;read|entry_SYSCALL_64;do_syscall_64;__x64_sys_read;vfs_read;asm_exc_page_fault;"
        "exc_page_fault;handle_mm_fault",
        7);
    add(b, CPU, "main;read|entry_SYSCALL_64;do_syscall_64;__x64_sys_read;asm_sysvec_apic_timer", 3);
    add(b, CPU, "main;work|asm_exc_page_fault;exc_page_fault;do_user_addr_fault", 11);
    add(b, CPU, "main;work|ret_from_fork;schedule_tail", 2);
    sort_all(&s);
    CHECK_NEAR(found(&s, PART_FUNCTION, "work"), 100, 0);
    CHECK_NEAR(found(&s, PART_SYSCALL, "read"), 40, 0);
    CHECK_NEAR(found(&s, PART_FAULTS, "page faults"), 18, 0);
    CHECK_NEAR(found(&s, PART_INTERRUPTS, "interrupts"), 3, 0);
    CHECK_NEAR(found(&s, PART_KERNEL, "other work of the kernel"), 2, 0);
    sorted_done(&s);
}

TEST(the_way_into_the_kernel_is_shared_out_by_calls)
{
    struct sorted s;
    start(&s, false);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;x|entry_SYSCALL_64;do_syscall_64", 40);
    add(b, CPU, "main;x|entry_SYSCALL_64;do_syscall_64;__x64_sys_getppid", 2);
    add(b, CPU, "main;x|entry_SYSCALL_64;do_syscall_64;__x64_sys_write", 50);
    sort_all(&s);
    struct syscall_count counts[] = {{"getppid", {0, 300}}, {"write", {0, 100}}};
    parts_share_entries(&s.parts, counts, 2);
    CHECK_NEAR(found(&s, PART_SYSCALL, "getppid"), 32, 1e-9);
    CHECK_NEAR(found(&s, PART_SYSCALL, "write"), 60, 1e-9);
    CHECK_NEAR(found(&s, PART_ENTRY, "entry"), 0, 1e-9);
    sorted_done(&s);
}

TEST(without_counts_it_is_shared_out_by_time)
{
    struct sorted s;
    start(&s, false);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;x|do_syscall_64", 10);
    add(b, CPU, "main;x|do_syscall_64;__x64_sys_read", 30);
    add(b, CPU, "main;x|do_syscall_64;__x64_sys_write", 10);
    sort_all(&s);
    parts_share_entries(&s.parts, NULL, 0);
    CHECK_NEAR(found(&s, PART_SYSCALL, "read"), 37.5, 1e-9);
    CHECK_NEAR(found(&s, PART_SYSCALL, "write"), 12.5, 1e-9);
    sorted_done(&s);
}

TEST(the_librarys_wrapper_is_part_of_the_call)
{
    struct sorted s;
    start(&s, false);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;__GI___libc_pread64", 9);
    add(b, CPU, "main;__GI___libc_pread64|do_syscall_64;__x64_sys_pread64", 30);
    sort_all(&s);
    CHECK_NEAR(found(&s, PART_SYSCALL, "pread64"), 39, 0);
    sorted_done(&s);
}

TEST(waits_are_told_apart)
{
    struct sorted s;
    start(&s, true);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;work", 10);
    add(b, OFF_CPU,
        "main;step;___pthread_mutex_lock;__lll_lock_wait|do_syscall_64;__x64_sys_futex;schedule",
        50);
    add(b, OFF_CPU, "main;__pthread_clockjoin_ex;futex|do_syscall_64;__x64_sys_futex;schedule", 70);
    add(b, OFF_CPU, "main;take;__pthread_cond_wait;futex|do_syscall_64;__x64_sys_futex;schedule",
        5);
    add(b, OFF_CPU, "main;nap;clock_nanosleep|__x64_sys_clock_nanosleep;hrtimer_nanosleep", 20);
    add(b, OFF_CPU, "main;get;read|__x64_sys_read;vfs_read;pipe_read;schedule", 30);
    add(b, OFF_CPU, "main;get;read|__x64_sys_read;vfs_read;filemap_read;folio_wait_bit;io_schedule",
        8);
    add(b, PREEMPTED, "main;work|asm_sysvec;schedule", 99);
    sort_all(&s);
    CHECK_NEAR(found(&s, PART_LOCK, "futex"), 50, 0);
    CHECK_NEAR(found(&s, PART_PEERS, "futex"), 75, 0);
    CHECK_NEAR(found(&s, PART_PEERS, "read"), 30, 0);
    CHECK_NEAR(found(&s, PART_SLEEP, "clock_nanosleep"), 20, 0);
    CHECK_NEAR(found(&s, PART_STORAGE, "read"), 8, 0);
    CHECK_NEAR(found(&s, PART_OTHERS, "others"), 99, 0);
    for (size_t i = 0; i < s.parts.count; i++)
        if (s.parts.items[i].kind == PART_LOCK)
            CHECK_STR(s.parts.items[i].callers.items[1].name, "step");
    sorted_done(&s);
}

/* Runs of both sides, several of each, that differ a little from one another. */
struct several {
    struct made made[SIDE_COUNT][6];
    struct diff_run runs[SIDE_COUNT][6];
    struct profile *profiles[SIDE_COUNT][6];
    struct profile_loads loads;
    struct diff diff;
    struct parts parts;
    struct attribution cpu;
    double work[6];
};

/* A stack with "<" in the place of ";" where what follows is inlined. */
static void add_inlined(struct made *m, const char *stack, uint64_t samples)
{
    struct calls *c = &m->profile.calls;
    CLEANUP(memory_freep) char *text = memory_strdup(stack);
    uint32_t node = 0;
    for (char *name = text; *name;) {
        size_t length = strcspn(name, ";<");
        char *next = name[length] ? name + length + 1 : name + length;
        bool inlined = name > text && stack[name - text - 1] == '<';
        name[length] = '\0';
        node = calls_push(c, node, calls_frame(c, symbol_of(c, name, false), 0, inlined));
        name = next;
    }
    calls_add(c, node, 0, CPU, 0, samples, samples * 1000);
    m->events[CPU].samples += samples;
}

static void several_start(struct several *s)
{
    *s = (struct several){0};
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        for (size_t run = 0; run < 6; run++)
            made_init(&s->made[side][run], false);
}

static void several_add(struct several *s, const char *stack, uint64_t base, uint64_t new)
{
    for (size_t run = 0; run < 6; run++) {
        if (base)
            add_inlined(&s->made[SIDE_A][run], stack, base + run % 3);
        if (new)
            add_inlined(&s->made[SIDE_B][run], stack, new + (run + 1) % 3);
    }
}

static void several_sort(struct several *s)
{
    struct error err;
    struct attribution_options o = {0};
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        for (size_t run = 0; run < 6; run++) {
            s->profiles[side][run] = &s->made[side][run].profile;
            s->runs[side][run] = (struct diff_run){s->profiles[side][run], CPU, 1};
            s->work[run] = 1;
        }
        s->loads.profiles[side] = s->profiles[side];
        s->loads.runs[side] = s->runs[side];
        s->loads.counts[side] = 6;
        s->loads.options.sides[side] = (struct diff_input){.runs = s->runs[side], .run_count = 6};
    }
    CHECK_INT(diff_build(&s->diff, &s->loads.options, &err), 0);
    parts_build(&s->parts, &s->loads, &s->diff, NULL);
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        o.sides[side] = (struct attribution_side){.run_count = 6,
                                                  .weights = s->parts.cpu_weights[side],
                                                  .samples = s->parts.cpu_samples[side],
                                                  .work = s->work};
    attribution_init(&s->cpu, &o);
    parts_place(&s->parts, &s->cpu);
}

static void several_done(struct several *s)
{
    attribution_done(&s->cpu);
    parts_done(&s->parts);
    diff_done(&s->diff);
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        for (size_t run = 0; run < 6; run++)
            made_done(&s->made[side][run]);
}

/* "CHANGE in … inlined there|callers" of a function, in samples of a run; "" for no such part. */
static const char *told(const struct several *s, const char *name)
{
    static struct strbuf out;
    strbuf_clear(&out);
    for (size_t i = 0; i < s->parts.count; i++) {
        const struct part *p = &s->parts.items[i];
        if (p->kind != PART_FUNCTION || !str_eq(p->name, name))
            continue;
        struct attributed cost =
            attribution_part(&s->cpu, (const double *const[]){p->weights[0], p->weights[1]},
                             (const double *const[]){p->samples[0], p->samples[1]});
        strbuf_printf(&out, "%+.0f ", cost.change / 1000);
        part_inlined_words(p, &s->cpu, &out);
        strbuf_putc(&out, '|');
        part_callers(p, &s->cpu, &out);
    }
    return strbuf_text(&out);
}

TEST(a_change_of_inlined_code_is_told_where_it_sits)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main;func_a<work", 500, 500);
    several_add(&s, "main;func_b<work", 200, 400);
    several_add(&s, "main;func_c<work", 100, 100);
    several_sort(&s);
    CHECK_STR(told(&s, "func_b"), "+200 in work inlined there|main");
    CHECK_STR(told(&s, "work"), "+0 |");
    CHECK_STR(told(&s, "func_a"), "");
    several_done(&s);
}

TEST(an_inlined_caller_is_told_and_not_the_function_that_has_all)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main<func_a<step<work", 500, 500);
    several_add(&s, "main<func_b<step<work", 400, 200);
    several_add(&s, "main<func_c<step<work", 100, 100);
    several_sort(&s);
    CHECK_STR(told(&s, "func_b"), "-200 in work inlined there|main");
    several_done(&s);
}

TEST(callers_are_named_by_their_own_change)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main;func_a;step;work", 500, 500);
    several_add(&s, "main;func_b;step;work", 200, 400);
    several_add(&s, "main;func_c;step;work", 100, 100);
    several_add(&s, "main;func_a;copy", 300, 400);
    several_add(&s, "main;func_b;copy", 100, 400);
    several_sort(&s);
    CHECK_STR(told(&s, "work"), "+200 |step, from func_b");
    CHECK_STR(told(&s, "copy"), "+400 |func_b (+300 µs) and func_a (+100 µs)");
    several_done(&s);
}

TEST(a_function_that_one_side_inlines_did_not_change)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main;func_a;work", 500, 0);
    several_add(&s, "main;func_a<work", 0, 500);
    several_add(&s, "main;func_b;work", 100, 300);
    several_sort(&s);
    CHECK_STR(told(&s, "work"), "+200 |func_b");
    several_done(&s);
}

TEST(a_function_in_the_place_of_another_is_one_place)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main;func_a<work", 500, 500);
    several_add(&s, "main;old_way<work", 200, 0);
    several_add(&s, "main;new_way<work", 0, 400);
    several_sort(&s);
    CHECK_STR(told(&s, "new_way in place of old_way"), "+200 in work inlined there|main");
    several_done(&s);
}

TEST(a_removed_path_is_told_at_its_function)
{
    struct several s;
    several_start(&s);
    several_add(&s, "main;func_a<work", 500, 500);
    several_add(&s, "main;extra<work", 280, 0);
    several_sort(&s);
    CHECK_STR(told(&s, "extra"), "-281 in work inlined there|main");
    several_done(&s);
}

TEST(a_lonely_program_waits_for_the_outside)
{
    struct sorted s;
    start(&s, false);
    struct made *b = &s.sides[SIDE_B];
    add(b, CPU, "main;work", 10);
    add(b, OFF_CPU, "main;get;read|__x64_sys_read;vfs_read;pipe_read;schedule", 30);
    sort_all(&s);
    CHECK_NEAR(found(&s, PART_WAIT, "read"), 30, 0);
    sorted_done(&s);
}

/* Sides whose ratio within rounds and whose medians go different ways. */
static void drifting(double *base, double *new, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        base[i] = (31.53 + 3 * ((double)i - (double)(count / 2))) * 1e6;
        new[i] = base[i] * (i + 1 >= count / 2 && i <= count / 2 + 1 ? 0.96 : 1.17);
    }
}

TEST(the_times_and_their_verdict_never_contradict_each_other)
{
    enum { COUNT = 17 };
    double walls[SIDE_COUNT][COUNT], cpus[SIDE_COUNT][COUNT];
    drifting(walls[SIDE_A], walls[SIDE_B], COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        cpus[SIDE_A][i] = 20e6 + (double)i;
        cpus[SIDE_B][i] = 25e6 + (double)i;
    }
    struct explain e = {.names = {"a", "b"}, .label = ""};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        e.measured.wall[s] = walls[s];
        e.measured.cpu[s] = cpus[s];
        e.measured.counts[s] = COUNT;
    }
    e.measured.paired = true;
    struct error err;
    CHECK_INT(explain_judge(&e.measured, &err), 0);
    const struct comparison *wall = &e.measured.wall_comparison;
    CHECK(wall->new_median < wall->base_median);
    CHECK_INT(e.measured.wall_verdict.kind, VERDICT_WORSE);
    struct strbuf out = {0};
    report_explain_text(&out, &(struct explain_view){.e = &e});
    const char *text = strbuf_text(&out);
    CHECK(strstr(text, "slower") &&
          strstr(text, ", within rounds; the medians over all rounds (31."));
    CHECK(strstr(text, "CPU time per run: 20.00 → 25.00 ms"));
    /* Profiled runs that do not show it are told, and nothing is explained. */
    e.outcome = EXPLAIN_UNCONFIRMED;
    e.profiled_change = (struct attributed){.a = 25e6, .b = 20e6, .change = -5e6};
    strbuf_clear(&out);
    report_explain_text(&out, &(struct explain_view){.e = &e});
    CHECK(strstr(strbuf_text(&out), "The profiled runs do not confirm it"));
    CHECK(!strstr(strbuf_text(&out), "Why:"));
    strbuf_done(&out);
}
