/* SPDX-License-Identifier: MIT */
#include "symbols/addrspace.h"
#include "base/memory.h"
#include "test.h"

#include <stdio.h>

#define SMALL 64

static struct module *fake(uintptr_t number)
{
    return (struct module *)(number * 64);
}

static uint64_t module_at(const struct addrspace *space, uint64_t address)
{
    struct location l;
    return addrspace_find(space, address, &l) ? (uintptr_t)l.module / 64 : 0;
}

TEST(a_new_map_covers_what_was_there)
{
    struct addrspace *space = addrspace_new();
    struct location l;
    addrspace_map(space, 100, 100, 1000, fake(1));
    addrspace_map(space, 140, 20, 5000, fake(2));
    CHECK(addrspace_find(space, 139, &l) && l.module == fake(1) && l.address == 1039);
    CHECK(addrspace_find(space, 140, &l) && l.module == fake(2) && l.address == 5000);
    CHECK(addrspace_find(space, 160, &l) && l.module == fake(1) && l.address == 1060);
    CHECK(!addrspace_find(space, 200, &l) && l.module == NULL && l.address == 200);
    addrspace_unmap(space, 0, 150);
    CHECK_INT(module_at(space, 120), 0);
    CHECK_INT(module_at(space, 149), 0);
    CHECK_INT(module_at(space, 160), 1);
    CHECK(addrspace_find(space, 150, &l) && l.address == 5010);
    addrspace_map(space, 0, UINT64_MAX, 7, fake(3));
    CHECK_INT(module_at(space, 120), 3);
    CHECK_INT(module_at(space, 160), 3);
    addrspace_map(space, 10, 0, 0, fake(4));
    addrspace_map(space, UINT64_MAX - 10, 100, 0, fake(4));
    CHECK_INT(module_at(space, 10), 3);
    addrspace_free(space);
}

static uint32_t seed = 7;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % below;
}

/* Against arrays, with copies that are changed on their own. */
TEST(copies_are_independent)
{
    enum { COPIES = 8 };
    struct addrspace *spaces[COPIES];
    uint8_t model[COPIES][SMALL] = {0};
    for (int i = 0; i < COPIES; i++)
        spaces[i] = addrspace_new();
    for (int round = 0; round < 20000; round++) {
        uint32_t which = draw(COPIES), start = draw(SMALL), length = draw(SMALL - start) + 1;
        uint32_t action = draw(10);
        if (action == 0) {
            uint32_t from = draw(COPIES);
            struct addrspace *copy = addrspace_copy(spaces[from]);
            addrspace_free(spaces[which]);
            spaces[which] = copy;
            memmove(model[which], model[from], SMALL);
        } else if (action < 3) {
            addrspace_unmap(spaces[which], start, length);
            memset(model[which] + start, 0, length);
        } else {
            uint8_t number = (uint8_t)(1 + draw(200));
            addrspace_map(spaces[which], start, length, 0, fake(number));
            memset(model[which] + start, number, length);
        }
        uint32_t checked = draw(COPIES);
        for (uint32_t at = 0; at < SMALL; at++)
            if (module_at(spaces[checked], at) != model[checked][at])
                test_fail(__FILE__, __LINE__, "round %d: address %u", round, at);
    }
    for (int i = 0; i < COPIES; i++)
        addrspace_free(spaces[i]);
}

TEST(a_hundred_thousand_maps_and_forks)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = processes_new(symbols);
    struct process_map map = {.length = 0x1000, .path = "/usr/bin/true"};
    struct location l;
    for (uint64_t i = 0; i < 100000; i++) {
        map.start = 0x10000 + i * 0x1000;
        map.offset = i * 0x1000;
        processes_map(p, 1, &map);
    }
    for (int i = 0; i < 100000; i++) {
        pid_t child = 2 + i;
        processes_fork(p, 1, child);
        if (i % 3 == 0)
            processes_exec(p, child);
        map.start = 0x900000000ull;
        map.offset = (uint64_t)i;
        processes_map(p, child, &map);
        if (i % 2)
            processes_exit(p, child);
        CHECK(processes_find(p, child, false, 0x900000000ull, 0, &l) && l.address == (uint64_t)i);
    }
    CHECK(!processes_find(p, 1, false, 0x900000000ull, 0, &l));
    CHECK(processes_find(p, 1, false, 0x10000, 0, &l));
    CHECK(processes_find(p, 3, false, 0x10000, 0, &l) == false); /* ended long ago */
    CHECK(processes_find(p, 6, false, 0x10000 + 99999 * 0x1000ull, 0, &l));
    CHECK_INT(symbols_module_count(symbols), 1);
    processes_free(p);
    symbols_free(symbols);
}

TEST(the_life_of_a_process)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    struct processes *p = processes_new(symbols);
    struct location l;
    struct process_map map = {.start = 0x1000, .length = 0x1000, .path = "/bin/a"};
    CHECK(!processes_find(p, 10, false, 0x1000, 0, &l));
    CHECK(processes_space(p, 10, 0) == NULL);
    processes_map(p, 10, &map);
    processes_fork(p, 10, 11);
    processes_fork(p, 10, 10); /* a thread */
    CHECK(processes_find(p, 11, false, 0x1800, 0, &l) && l.address == 0x800);
    processes_exec(p, 11);
    CHECK(!processes_find(p, 11, false, 0x1800, 0, &l));
    processes_exit(p, 10);
    CHECK(processes_find(p, 10, false, 0x1800, 0, &l)); /* a late sample */
    map.path = "/bin/b";
    map.start = 0x8000;
    processes_map(p, 10, &map); /* the number again */
    CHECK(!processes_find(p, 10, false, 0x1800, 0, &l));
    CHECK_STR(module_name((processes_find(p, 10, false, 0x8000, 0, &l), l.module)), "b");
    processes_exit(p, 99);
    processes_free(p);
    symbols_free(symbols);
}

TEST(kinds_of_maps)
{
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_cache = true});
    static const struct {
        const char *path, *name;
        enum module_kind kind;
    } cases[] = {
        {"/usr/lib/libc.so.6", "libc.so.6", MODULE_FILE},
        {"/tmp/gone (deleted)", "gone (deleted)", MODULE_FILE},
        {"[vdso]", "[vdso]", MODULE_VDSO},
        {"[vsyscall]", "[vsyscall]", MODULE_NONE},
        {"//anon", "perf-42.map", MODULE_PERFMAP},
        {"[heap]", "perf-42.map", MODULE_PERFMAP},
        {"", "perf-42.map", MODULE_PERFMAP},
        {"/memfd:jit (deleted)", "perf-42.map", MODULE_PERFMAP},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct module *m =
            symbols_module(symbols, &(struct module_key){.path = cases[i].path, .pid = 42});
        CHECK_STR(module_name(m), cases[i].name);
        CHECK_INT(module_kind(m), cases[i].kind);
        CHECK(symbols_module_at(symbols, module_index(m)) == m);
    }
    struct build_id a = build_id_from_bytes("\1\2\3", 3), b = build_id_from_bytes("\1\2\4", 3);
    struct module *first =
        symbols_module(symbols, &(struct module_key){.path = "/bin/x", .build_id = a});
    CHECK(first != symbols_module(symbols, &(struct module_key){.path = "/bin/x", .build_id = b}));
    CHECK(first != symbols_module(symbols, &(struct module_key){.path = "/bin/x", .inode = 7}));
    CHECK(first == symbols_module(
                       symbols, &(struct module_key){.path = "/bin/x", .build_id = a, .inode = 7}));
    symbols_free(symbols);
}
