/* SPDX-License-Identifier: MIT */
/* The ordered map in pages, beside a sorted array; and pages, of which earlier states stay. */
#include "vr/core/tree.h"
#include "base/memory.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 400

struct model {
    bool there[KEYS];
    uint32_t size[KEYS];
    unsigned char fill[KEYS];
};

struct lab {
    struct vr_pages pages;
    struct vr_tree tree;
    struct model model;
    uint64_t random;
};

static uint32_t below(struct lab *l, uint32_t limit)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((l->random >> 33) % limit);
}

static struct vr_bytes key_of(uint32_t number, char *text)
{
    /* Of different lengths, and in an order that is not that of their numbers. */
    int size = snprintf(text, 64, "%0*u", (int)(1 + number * 7 % 40), number * 2654435761u);
    return (struct vr_bytes){text, (size_t)size};
}

static void lab_open(struct lab *l, uint32_t page_bytes, uint32_t pages, uint64_t seed)
{
    *l = (struct lab){.random = seed};
    vr_pages_init(&l->pages, pages, page_bytes);
    vr_tree_init(&l->tree, &l->pages, 3);
}

static void lab_close(struct lab *l)
{
    vr_tree_done(&l->tree);
    vr_pages_done(&l->pages);
}

struct check {
    struct lab *l;
    char last[64];
    uint32_t count;
};

static bool see(void *context, struct vr_bytes key, struct vr_bytes value)
{
    struct check *c = context;
    char text[64] = "";
    (void)value;
    memcpy(text, key.at, key.size);
    CHECK(c->count == 0 || strcmp(c->last, text) < 0);
    memcpy(c->last, text, sizeof(text));
    c->count++;
    return true;
}

static void check_all(struct lab *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[64];
        struct vr_bytes value;
        bool there = vr_tree_find(&l->tree, key_of(i, text), &value);
        CHECK_INT(there, l->model.there[i]);
        count += there;
        if (!there)
            continue;
        CHECK_INT(value.size, l->model.size[i]);
        for (size_t b = 0; b < value.size; b++)
            CHECK_INT(((const unsigned char *)value.at)[b], l->model.fill[i]);
    }
    CHECK_INT(l->tree.at.count, count);
    struct check c = {.l = l};
    vr_tree_scan(&l->tree, (struct vr_bytes){"", 0}, see, &c);
    CHECK_INT(c.count, count);
    for (uint32_t page = 3; page < l->tree.at.used; page++)
        CHECK(vr_tree_page_valid(&l->pages, 3, vr_pages_at(&l->pages, page)));
}

static void operate(struct lab *l, uint32_t puts, uint32_t value_max)
{
    unsigned char value[512];
    char text[64];
    uint32_t i = below(l, KEYS);
    if (below(l, 100) < puts) {
        uint32_t size = below(l, value_max + 1);
        unsigned char fill = (unsigned char)below(l, 256);
        memset(value, fill, sizeof(value));
        CHECK(vr_tree_put(&l->tree, key_of(i, text), (struct vr_bytes){value, size}, UINT32_MAX));
        l->model.there[i] = true;
        l->model.size[i] = size;
        l->model.fill[i] = fill;
    } else {
        CHECK_INT(vr_tree_remove(&l->tree, key_of(i, text)), l->model.there[i]);
        l->model.there[i] = false;
    }
}

static void run(uint32_t page_bytes, uint32_t value_max, uint64_t seed)
{
    struct lab l;
    lab_open(&l, page_bytes, 2000, seed);
    static const uint32_t puts[] = {90, 50, 10, 70, 0, 95, 5};
    for (unsigned phase = 0; phase < 7; phase++) {
        for (unsigned i = 0; i < 2500; i++)
            operate(&l, puts[phase], value_max);
        check_all(&l);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[64];
        CHECK_INT(vr_tree_remove(&l.tree, key_of(i, text)), l.model.there[i]);
        l.model.there[i] = false;
    }
    check_all(&l);
    CHECK_INT(l.tree.at.root, 0);
    CHECK_INT(l.tree.free_count, l.tree.at.used - 3); /* nothing is lost */
    lab_close(&l);
}

TEST(it_is_a_map_in_order)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        run(480, 60, seed);
        run(4064, 512, seed);
    }
}

TEST(without_room_nothing_changes)
{
    struct lab l;
    lab_open(&l, 480, 12, 1);
    unsigned char value[60] = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[64];
        bool put = vr_tree_put(&l.tree, key_of(i, text), (struct vr_bytes){value, sizeof(value)},
                               UINT32_MAX);
        l.model.there[i] = put;
        l.model.size[i] = sizeof(value);
        kept += put;
    }
    CHECK(kept > 15 && kept < KEYS);
    check_all(&l);
    lab_close(&l);
}

TEST(depth_is_bounded_by_what_it_holds)
{
    /* Many keys are put and all but a few removed, over and over, always behind the others. */
    struct lab l;
    lab_open(&l, 480, 4000, 1);
    char text[64];
    for (uint32_t round = 0; round < 60; round++) {
        for (uint32_t i = 0; i < 600; i++) {
            int size = snprintf(text, sizeof(text), "%08u%055u", round * 600 + i, 0);
            CHECK(vr_tree_put(&l.tree, (struct vr_bytes){text, (size_t)size},
                              (struct vr_bytes){NULL, 0}, UINT32_MAX));
        }
        for (uint32_t i = 1; i < 600; i++) {
            int size = snprintf(text, sizeof(text), "%08u%055u", round * 600 + i, 0);
            CHECK(vr_tree_remove(&l.tree, (struct vr_bytes){text, (size_t)size}));
        }
    }
    uint16_t level;
    memcpy(&level, vr_pages_at(&l.pages, l.tree.at.root), sizeof(level));
    CHECK(level <= 5);
    CHECK_INT(l.tree.at.count, 60);
    CHECK(l.tree.at.used - 3 - l.tree.free_count < 60);
    lab_close(&l);
}

/* ---- pages */

TEST(a_frozen_state_stays_while_the_present_one_goes_on)
{
    struct lab l;
    lab_open(&l, 480, 2000, 3);
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 300; i++)
            operate(&l, 70, 60);
        unsigned char *before = memory_alloc(2000 * 480);
        memcpy(before, l.pages.memory, 2000 * 480);
        vr_pages_freeze(&l.pages);
        uint32_t next = 0;
        while (next < l.pages.newest.count) {
            operate(&l, 50, 60);
            uint32_t page = l.pages.newest.list[next];
            vr_pages_sum(&l.pages, next);
            CHECK(l.pages.pending_sums[next++] == vr_page_sum(page, before + page * 480, 480));
            CHECK(memcmp(vr_pages_pending(&l.pages, page), before + page * 480, 480) == 0);
        }
        vr_pages_settle(&l.pages);
        uint64_t root = 0;
        for (uint32_t page = 0; page < 2000; page++) {
            const unsigned char *then = vr_pages_newest(&l.pages, page);
            CHECK(memcmp(then, before + page * 480, 480) == 0);
            CHECK(!l.pages.sums[page] || l.pages.sums[page] == vr_page_sum(page, then, 480));
            root += l.pages.sums[page];
        }
        CHECK(root == l.pages.root);
        if (round == 5) { /* back to it */
            vr_pages_revert(&l.pages);
            CHECK(memcmp(l.pages.memory, before, 2000 * 480) == 0);
            free(before);
            break;
        }
        free(before);
    }
    lab_close(&l);
}

/* ---- parts of pages */

#define PAGES 40u
#define PAGE 1000u /* not a multiple of a block */

struct states {
    unsigned char present[PAGES][PAGE], newest[PAGES][PAGE], pending[PAGES][PAGE];
};

static void change(struct lab *l, struct states *s)
{
    unsigned char bytes[600];
    uint32_t page = below(l, PAGES), offset = below(l, PAGE), size = below(l, 600);
    if (size > PAGE - offset)
        size = PAGE - offset;
    memset(bytes, (int)below(l, 3), sizeof(bytes)); /* zeros, too */
    if (l->pages.written[page] && below(l, 8))
        vr_pages_put(&l->pages, page, offset, bytes, size);
    else
        memcpy(vr_pages_touch(&l->pages, page) + offset, bytes, size);
    memcpy(&s->present[page][offset], bytes, size);
}

static void look(struct lab *l, const struct states *s)
{
    uint32_t page = below(l, PAGES);
    CHECK(memcmp(vr_pages_newest(&l->pages, page), s->newest[page], PAGE) == 0);
    if (l->pages.has_pending)
        CHECK(memcmp(vr_pages_pending(&l->pages, page), s->pending[page], PAGE) == 0);
    CHECK(memcmp(vr_pages_at(&l->pages, page), s->present[page], PAGE) == 0);
}

static uint64_t sum_of(const struct lab *l, unsigned char (*state)[PAGE])
{
    uint64_t sum = 0;
    for (uint32_t page = 0; page < PAGES; page++) {
        CHECK(l->pages.sums[page] == vr_page_sum(page, state[page], PAGE));
        sum += vr_page_sum(page, state[page], PAGE);
    }
    return sum;
}

TEST(changed_bytes_are_kept_and_summed_like_whole_pages)
{
    struct states *s = memory_zalloc(1, sizeof(*s));
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lab l;
        memset(s, 0, sizeof(*s));
        lab_open(&l, PAGE, PAGES, seed);
        uint32_t changes = 1 + below(&l, 200), looks = below(&l, 2) ? 1000 : 10;
        for (unsigned round = 0; round < 20; round++) {
            for (uint32_t i = 0; i < changes; i++) {
                change(&l, s);
                if (below(&l, 1000) < looks)
                    look(&l, s);
            }
            if (below(&l, 4) == 0) {
                vr_pages_revert(&l.pages);
                memcpy(s->present, s->newest, sizeof(s->present));
                CHECK(memcmp(l.pages.memory, s->present, sizeof(s->present)) == 0);
                continue;
            }
            vr_pages_freeze(&l.pages);
            memcpy(s->pending, s->present, sizeof(s->present));
            for (uint32_t i = 0; i < l.pages.newest.count; i++) {
                change(&l, s);
                look(&l, s);
                vr_pages_sum(&l.pages, i);
            }
            vr_pages_settle(&l.pages);
            memcpy(s->newest, s->pending, sizeof(s->newest));
            CHECK(sum_of(&l, s->newest) == l.pages.root);
        }
        for (uint32_t page = 0; page < PAGES; page++)
            CHECK(memcmp(vr_pages_newest(&l.pages, page), s->newest[page], PAGE) == 0);
        lab_close(&l);
    }
    free(s);
}
