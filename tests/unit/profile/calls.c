/* SPDX-License-Identifier: MIT */
/* Stacks, tasks, rows and call trees on samples made by hand. */
#include "profile/calltree.h"
#include "test.h"

#include <stdio.h>

/* A small world: addresses 1 to 26 are the functions a to z in "app", +100 in "lib". */
struct world {
    struct stacks stacks;
    struct tasks tasks;
    struct calls calls;
};

static void world_init(struct world *w)
{
    stacks_init(&w->stacks);
    tasks_init(&w->tasks);
    calls_init(&w->calls);
}

static void world_done(struct world *w)
{
    stacks_done(&w->stacks);
    tasks_done(&w->tasks);
    calls_done(&w->calls);
}

/* Adds a sample with the stack "abc", a the outermost caller. */
static void sample(struct world *w, uint32_t tid, const char *stack, uint64_t weight)
{
    uint32_t node = STACK_EMPTY;
    for (; *stack; stack++)
        node =
            stacks_push(&w->stacks, node, stacks_location(&w->stacks, NULL, (uint64_t)*stack, 0));
    stacks_add(&w->stacks, node, tasks_current(&w->tasks, 1, tid), 0, STACK_ANY_CPU, weight);
}

/* Capital letters are inlined into the function before them: "aB" is b inlined in a, one address
 * each all the same, so that the merge of inlined and called functions can be tested.  calls: pairs
 * of letters, the second of which is what the instruction at the first one calls. */
static void name_with_calls(struct world *w, const char *calls)
{
    uint32_t app = names_add(&w->calls.dsos, &w->calls.arena, "app");
    uint32_t lists[200] = {0}, items[200], called[200];
    for (uint32_t i = 0; i < 26; i++) {
        char name[2] = {(char)('a' + i), 0};
        ARRAY_PUSH(w->calls.symbols, w->calls.symbol_count, w->calls.symbol_capacity) =
            (struct profile_symbol){.name = arena_strdup(&w->calls.arena, name), .dso = app};
    }
    for (size_t i = 0; i < w->stacks.location_count; i++) {
        char c = (char)w->stacks.locations[i].address;
        bool inlined = c >= 'A' && c <= 'Z';
        uint32_t symbol = (uint32_t)(inlined ? c - 'A' : c - 'a');
        items[i] = calls_frame(&w->calls, symbol, 0, inlined);
        lists[i + 1] = lists[i] + 1;
    }
    for (size_t i = 0; i < w->stacks.location_count; i++) {
        called[i] = IDTABLE_NONE;
        for (const char *at = calls; *at; at += 2)
            if ((char)w->stacks.locations[i].address == at[0])
                called[i] = calls_frame(&w->calls, (uint32_t)(at[1] - 'a'), 0, false);
    }
    calls_from_stacks(&w->calls, &w->stacks, lists, items, &(struct calls_known){.called = called},
                      NULL);
}

static void name_all(struct world *w)
{
    name_with_calls(w, "");
}

static struct rows_options by_symbol(bool children)
{
    return (struct rows_options){
        .keys = {ROW_SYMBOL}, .key_count = 1, .children = children, .with_members = true};
}

static const struct row *row_of(const struct rows *rows, char name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->calls->symbols[rows->items[i].values[ROW_SYMBOL]].name[0] == name)
            return &rows->items[i];
    return NULL;
}

TEST(equal_stacks_are_one_cell)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "abc", 10);
    sample(&w, 1, "abc", 20);
    sample(&w, 1, "abd", 5);
    sample(&w, 2, "abc", 7);
    CHECK_INT(w.stacks.location_count, 4);
    CHECK_INT(w.stacks.node_count, 5); /* the empty one, a, ab, abc, abd */
    CHECK_INT(w.stacks.cell_count, 3);
    CHECK_INT(w.stacks.cells[0].weight, 30);
    CHECK_INT(w.stacks.cells[0].samples, 2);
    world_done(&w);
}

/* The functions of a stack, from its leaf. */
static void write_stack(const struct world *w, uint32_t node, char *out)
{
    for (; node; node = w->calls.nodes[node].parent)
        *out++ = calls_symbol(&w->calls, w->calls.nodes[node].frame)->name[0];
    *out = '\0';
}

TEST(a_function_that_gave_its_place_away_is_put_back)
{
    struct world w;
    char text[20];
    world_init(&w);
    sample(&w, 1, "ab", 10);  /* a called b */
    sample(&w, 1, "ac", 10);  /* a called b, which ended with a jump to c */
    sample(&w, 1, "acd", 10); /* and c called somebody, through a pointer */
    name_with_calls(&w, "ab");
    write_stack(&w, w.calls.cells[0].node, text);
    CHECK_STR(text, "ba");
    write_stack(&w, w.calls.cells[1].node, text);
    CHECK_STR(text, "cba");
    write_stack(&w, w.calls.cells[2].node, text);
    CHECK_STR(text, "dcba");
    world_done(&w);
}

TEST(tables_grow_and_keep_everything)
{
    struct stacks s;
    stacks_init(&s);
    for (unsigned round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 50000; i++) {
            uint32_t location = stacks_location(&s, NULL, i * 16, 0);
            uint32_t node = stacks_push(&s, i ? stacks_push(&s, STACK_EMPTY, 0) : 0, location);
            stacks_add(&s, node, i % 7, 0, 0, 1);
        }
    CHECK_INT(s.location_count, 50000);
    CHECK_INT(s.cell_count, 50000);
    uint64_t total = 0;
    for (size_t i = 0; i < s.cell_count; i++)
        total += s.cells[i].weight;
    CHECK_INT(total, 100000);
    for (size_t i = 1; i < s.node_count; i++)
        CHECK(s.nodes[i].parent < i);
    stacks_done(&s);
}

TEST(samples_that_wait_are_counted_too)
{
    struct stacks one, other;
    stacks_init(&one);
    stacks_init(&other);
    uint64_t state = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t choice = (uint32_t)(state >> 40), task = choice % 3, cpu = choice % 5;
        uint32_t parent = stacks_push(&one, 0, stacks_location(&one, NULL, choice % 50, 0));
        uint32_t leaf = stacks_location(&one, NULL, 100 + choice % 997, 0);
        stacks_add(&one, stacks_push(&one, parent, leaf), task, 0, cpu, i);
        struct stack_sample sample = {.task = task, .cpu = cpu, .weight = i};
        sample.parent = stacks_push(&other, 0, stacks_location(&other, NULL, choice % 50, 0));
        sample.location = stacks_location(&other, NULL, 100 + choice % 997, 0);
        stacks_add_later(&other, &sample);
    }
    stacks_finish(&other);
    CHECK_INT(other.cell_count, one.cell_count);
    CHECK_INT(other.node_count, one.node_count);
    uint64_t samples = 0, weight = 0, expected = 0;
    for (size_t i = 0; i < other.cell_count; i++) {
        samples += other.cells[i].samples;
        weight += other.cells[i].weight;
        expected += one.cells[i].weight;
    }
    CHECK_INT(samples, 20000);
    CHECK_INT(weight, expected);
    stacks_done(&one);
    stacks_done(&other);
}

TEST(self_counts_once_for_the_leaf)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "abc", 10);
    sample(&w, 1, "ac", 30);
    sample(&w, 1, "ab", 60);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(false);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(rows.count, 2);
    CHECK_INT(row_of(&rows, 'b')->self_weight, 60);
    CHECK_INT(row_of(&rows, 'c')->self_weight, 40);
    CHECK(row_of(&rows, 'b') == &rows.items[0]);
    CHECK_INT(rows.matched_weight, 100);
    rows_done(&rows);
    world_done(&w);
}

TEST(children_do_not_count_recursion_twice)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "arrrs", 50);
    sample(&w, 1, "arr", 30);
    sample(&w, 1, "a", 20);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(true);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(row_of(&rows, 'a')->total_weight, 100);
    CHECK_INT(row_of(&rows, 'a')->self_weight, 20);
    CHECK_INT(row_of(&rows, 'r')->total_weight, 80);
    CHECK_INT(row_of(&rows, 'r')->self_weight, 30);
    CHECK_INT(row_of(&rows, 's')->total_weight, 50);
    CHECK_INT(rows.matched_weight, 100);
    rows_done(&rows);
    world_done(&w);
}

TEST(inlined_code_counts_for_the_function_that_has_it)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "abC", 10); /* c inlined into b */
    sample(&w, 1, "ac", 5);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(false);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(row_of(&rows, 'b')->self_weight, 10);
    CHECK_INT(row_of(&rows, 'c')->self_weight, 5);
    rows_done(&rows);
    options.inline_rows = true;
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(row_of(&rows, 'c')->self_weight, 15);
    CHECK(!row_of(&rows, 'c')->is_inlined);
    rows_done(&rows);
    options = by_symbol(true);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(row_of(&rows, 'c')->total_weight, 15);
    CHECK_INT(row_of(&rows, 'c')->self_weight, 5);
    CHECK_INT(row_of(&rows, 'b')->self_weight, 10);
    rows_done(&rows);
    world_done(&w);
}

/* The tree as text: "b60(a60)", children in their order. */
static void put_tree(const struct calltree *tree, const struct calls *calls, uint32_t id, char *out)
{
    for (uint32_t child = tree->nodes[id].first_child; child != IDTABLE_NONE;
         child = tree->nodes[child].next) {
        const struct calltree_node *n = &tree->nodes[child];
        sprintf(out + strlen(out), "%s%llu", calls->symbols[n->symbol].name,
                (unsigned long long)n->weight);
        if (n->first_child != IDTABLE_NONE) {
            strcat(out, "(");
            put_tree(tree, calls, child, out);
            strcat(out, ")");
        }
        if (n->next != IDTABLE_NONE)
            strcat(out, " ");
    }
}

static const char *tree_text(const struct rows *rows, char name, enum calltree_order order)
{
    static char text[1000];
    struct calltree tree = {0};
    text[0] = 0;
    calltree_build(&tree, rows, row_of(rows, name), order);
    put_tree(&tree, rows->calls, 0, text);
    calltree_done(&tree);
    return text;
}

TEST(trees_of_callers_and_callees)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "abx", 10);
    sample(&w, 1, "acx", 30);
    sample(&w, 1, "acxy", 5);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(false);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_STR(tree_text(&rows, 'x', CALLTREE_CALLEE), "x40(c30(a30) b10(a10))");
    CHECK_STR(tree_text(&rows, 'x', CALLTREE_CALLER), "a40(c30(x30) b10(x10))");
    rows_done(&rows);
    options = by_symbol(true);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_STR(tree_text(&rows, 'x', CALLTREE_CALLEE), "x45(c35(a35) b10(a10))");
    CHECK_STR(tree_text(&rows, 'x', CALLTREE_CALLER), "x45(y5)");
    CHECK_STR(tree_text(&rows, 'a', CALLTREE_CALLER), "a45(c35(x35(y5)) b10(x10))");
    rows_done(&rows);
    world_done(&w);
}

TEST(a_tree_of_recursion_starts_inside_or_outside)
{
    struct world w;
    world_init(&w);
    sample(&w, 1, "arrs", 10);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(true);
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_STR(tree_text(&rows, 'r', CALLTREE_CALLEE), "r10(r10(a10))");
    CHECK_STR(tree_text(&rows, 'r', CALLTREE_CALLER), "r10(r10(s10))");
    rows_done(&rows);
    world_done(&w);
}

TEST(filters_by_comm_symbol_and_way)
{
    struct world w;
    world_init(&w);
    tasks_name(&w.tasks, 1, 1, "one");
    tasks_name(&w.tasks, 1, 2, "two");
    sample(&w, 1, "abx", 10);
    sample(&w, 2, "acx", 30);
    name_all(&w);
    struct rows rows;
    struct rows_options options = by_symbol(false);
    options.comms = (struct name_filter){.patterns = (const char *const[]){"t*"}, .count = 1};
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(rows.matched_weight, 30);
    rows_done(&rows);
    options.comms.count = 0;
    options.through = (struct name_filter){.patterns = (const char *const[]){"b"}, .count = 1};
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(rows.matched_weight, 10);
    rows_done(&rows);
    options.through.count = 0;
    options.symbols = (struct name_filter){.patterns = (const char *const[]){"y"}, .count = 1};
    rows_build(&rows, &w.calls, &w.tasks, &options);
    CHECK_INT(rows.count, 0);
    rows_done(&rows);
    world_done(&w);
}

TEST(patterns)
{
    struct name_filter f = {.patterns = (const char *const[]){"std::*::push_back", "operator*"},
                            .count = 2};
    CHECK(name_filter_match(&f, "std::vector<int>::push_back"));
    CHECK(!name_filter_match(&f, "std::vector<int>::push_front"));
    CHECK(name_filter_match(&f, "operator*"));
    CHECK(name_filter_match(&f, "operator[]"));
    CHECK(!name_filter_match(&f, "my_operator"));
    f = (struct name_filter){0};
    CHECK(name_filter_match(&f, "anything"));
}

TEST(sort_keys)
{
    enum row_key keys[ROW_KEY_COUNT];
    size_t count;
    struct error err;
    CHECK_INT(row_keys_parse("dso,sym,dso", keys, &count, &err), 0);
    CHECK_INT(count, 2);
    CHECK_INT(keys[0], ROW_DSO);
    CHECK_INT(keys[1], ROW_SYMBOL);
    CHECK(row_keys_parse("dso,colour", keys, &count, &err) < 0);
    CHECK_CONTAINS(err.message, "unknown sort key 'colour'");
    CHECK(row_keys_parse("", keys, &count, &err) < 0);
}

TEST(threads_take_names_from_records)
{
    struct tasks t;
    tasks_init(&t);
    uint32_t early = tasks_current(&t, 5, 5);
    CHECK_STR(tasks_comm(&t, early), ":5");
    tasks_name(&t, 5, 5, "prog"); /* samples before the record get the name too */
    CHECK_STR(tasks_comm(&t, early), "prog");
    CHECK_INT(tasks_current(&t, 5, 5), early);
    tasks_fork(&t, 5, 6, 5);
    CHECK_STR(tasks_comm(&t, tasks_current(&t, 5, 6)), "prog");
    tasks_name(&t, 5, 6, "worker"); /* from here on only */
    CHECK_STR(tasks_comm(&t, tasks_current(&t, 5, 6)), "worker");
    CHECK_STR(tasks_comm(&t, early), "prog");
    CHECK_STR(tasks_comm(&t, tasks_current(&t, 0, 0)), "swapper");
    CHECK(!tasks_exit(&t, 5, 5)); /* the main thread ends, the worker lives on */
    CHECK(tasks_exit(&t, 5, 6));
    CHECK_STR(tasks_comm(&t, tasks_current(&t, 5, 6)), "worker"); /* dies while sampled */
    tasks_done(&t);
}
