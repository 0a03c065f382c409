/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, read by hand, as profile/export_pprof.c writes it.  Messages may stand in
 * any order, and numbers of things need not follow each other: everything is collected first, and
 * put together when the end is reached.  Every number from the file is checked before it is used.
 * Field numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#include "base/memory.h"
#include "base/strings.h"
#include "profile/given/given.h"

#include <errno.h>
#include <inttypes.h>

/* A part of the file; `at` moves on while it is read. */
struct part {
    const unsigned char *at, *end;
};

struct field {
    unsigned number, wire;
    uint64_t value;   /* of a varint, or of fixed bytes */
    struct part part; /* of bytes */
};

/* A function, a mapping or a location with its number, and where it stands. */
struct item {
    uint64_t id;
    struct part part;
};

struct items {
    struct item *list;
    size_t count, capacity;
};

struct pprof {
    struct given *g;
    const unsigned char *start;
    struct part *strings;
    size_t string_count, string_capacity;
    struct items functions, mappings, locations;
    struct part *types, *samples;
    size_t type_count, type_capacity, sample_capacity, sample_count;
    size_t samples_type; /* which value counts samples; type_count for none */
    uint64_t *factors;   /* of each value to its event's unit */
    uint64_t comment;    /* number of a string */
    struct error *err;
};

static int bad(const struct pprof *p, const unsigned char *at, const char *what)
{
    return error_set(p->err, -EINVAL,
                     "byte %zu: %s; this is not a profile of pprof, or it is damaged",
                     (size_t)(at - p->start), what);
}

static bool read_varint(struct part *part, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; part->at < part->end && shift < 64; shift += 7) {
        unsigned char byte = *part->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct part *part, size_t size, uint64_t *ret_value)
{
    if ((size_t)(part->end - part->at) < size)
        return false;
    *ret_value = 0;
    for (size_t i = 0; i < size; i++)
        *ret_value |= (uint64_t)part->at[i] << (8 * i);
    part->at += size;
    return true;
}

/* 1 for a field, 0 at the end, negative when there is none where one should be. */
static int next_field(const struct pprof *p, struct part *part, struct field *f)
{
    const unsigned char *start = part->at;
    uint64_t key;
    if (part->at == part->end)
        return 0;
    if (!read_varint(part, &key) || key >> 3 == 0 || key >> 3 > 1u << 28)
        return bad(p, start, "not a field");
    *f = (struct field){.number = (unsigned)(key >> 3), .wire = key & 7};
    bool whole = false;
    if (f->wire == 0)
        whole = read_varint(part, &f->value);
    else if (f->wire == 1 || f->wire == 5)
        whole = read_fixed(part, f->wire == 1 ? 8 : 4, &f->value);
    else if (f->wire != 2)
        return bad(p, start, "a kind of field that is not known");
    else if (read_varint(part, &f->value) && f->value <= (uint64_t)(part->end - part->at)) {
        f->part = (struct part){part->at, part->at + f->value};
        part->at = f->part.end;
        whole = true;
    }
    return whole ? 1 : bad(p, start, "a field that ends behind its message");
}

/* Where each step over the fields of a message ends; `r` says why. */
#define EACH_FIELD(p, from, left, f, r) \
    struct part left = from;            \
    struct field f;                     \
    while ((r = next_field(p, &left, &f)) > 0)

static int take_item(struct pprof *p, struct items *items, struct part message)
{
    struct item item = {.part = message};
    int r;
    EACH_FIELD(p, message, part, f, r)
    if (f.number == 1 && f.wire == 0)
        item.id = f.value;
    if (r == 0)
        ARRAY_PUSH(items->list, items->count, items->capacity) = item;
    return r;
}

/* A repeated number stands alone or in a row. */
static bool next_number(struct field *f, bool *is_first, uint64_t *ret_value)
{
    if (f->wire == 2)
        return read_varint(&f->part, ret_value);
    *ret_value = f->value;
    bool first = *is_first;
    *is_first = false;
    return first && f->wire == 0;
}

static int take_field(struct pprof *p, struct field *f)
{
    bool first = true;
    if (f->number == 10 && f->wire == 0)
        p->g->duration_ns = f->value;
    if (f->number == 13 && !p->comment)
        next_number(f, &first, &p->comment);
    if (f->wire != 2)
        return 0;
    switch (f->number) {
    case 1:
        ARRAY_PUSH(p->types, p->type_count, p->type_capacity) = f->part;
        return 0;
    case 2:
        ARRAY_PUSH(p->samples, p->sample_count, p->sample_capacity) = f->part;
        return 0;
    case 3:
        return take_item(p, &p->mappings, f->part);
    case 4:
        return take_item(p, &p->locations, f->part);
    case 5:
        return take_item(p, &p->functions, f->part);
    case 6:
        ARRAY_PUSH(p->strings, p->string_count, p->string_capacity) = f->part;
        return 0;
    default:
        return 0;
    }
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static const struct item *find(const struct items *items, uint64_t id)
{
    struct item wanted = {.id = id};
    return items->count ? bsearch(&wanted, items->list, items->count, sizeof(wanted), compare_items)
                        : NULL;
}

/* Number 0 is "", and what is out of range is refused. */
static int string_of(struct pprof *p, uint64_t number, const unsigned char *at, const char **ret)
{
    *ret = "";
    if (number == 0)
        return 0;
    if (number >= p->string_count)
        return bad(p, at, "the number of a string that is not there");
    const struct part *s = &p->strings[number];
    size_t length = (size_t)(s->end - s->at);
    const void *zero = memchr(s->at, 0, length);
    *ret = arena_strndup(&p->g->arena, (const char *)s->at,
                         zero ? (size_t)((const unsigned char *)zero - s->at) : length);
    return 0;
}

/* How many nanoseconds the unit has; 0 for one that is no time. */
static uint64_t time_factor(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"nanoseconds", 1},
                 {"ns", 1},
                 {"microseconds", 1000},
                 {"milliseconds", 1000000},
                 {"seconds", 1000000000}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq(units[i].name, unit))
            return units[i].ns;
    return 0;
}

/* Each type is an event, except the count of samples, which belongs to all of them. */
static int make_events(struct pprof *p)
{
    p->samples_type = p->type_count;
    p->factors = memory_zalloc(p->type_count + 1, sizeof(*p->factors));
    for (size_t i = 0; i < p->type_count; i++) {
        const char *type = "", *unit = "";
        int r, got = 0;
        EACH_FIELD(p, p->types[i], part, f, r)
        if (got == 0 && f.wire == 0 && (f.number == 1 || f.number == 2))
            got = string_of(p, f.value, p->types[i].at, f.number == 1 ? &type : &unit);
        if (r < 0 || got < 0)
            return r < 0 ? r : got;
        uint64_t factor = time_factor(unit);
        p->factors[i] = factor ? factor : 1;
        if (str_eq(type, "samples") && p->type_count > 1 && p->samples_type == p->type_count) {
            p->samples_type = i;
            continue;
        }
        ARRAY_PUSH(p->g->events, p->g->event_count, p->g->event_capacity) =
            (struct given_event){.name = *type ? type : "samples", .is_time = factor > 0};
    }
    return p->g->event_count ? 0
                             : error_set(p->err, -EINVAL, "there is no type of its values in it");
}

static int add_frame(struct pprof *p, struct part line, const char *binary)
{
    struct given_frame frame = {.name = "", .binary = binary, .file = ""};
    uint64_t function = 0, number = 0;
    int r, got = 0;
    EACH_FIELD(p, line, part, f, r)
    {
        function = f.number == 1 && f.wire == 0 ? f.value : function;
        number = f.number == 2 && f.wire == 0 ? f.value : number;
    }
    if (r < 0)
        return r;
    const struct item *item = find(&p->functions, function);
    if (!item)
        return bad(p, line.at, "the number of a function that is not there");
    const char *system = "";
    EACH_FIELD(p, item->part, inner, g, r)
    if (got == 0 && g.wire == 0 && g.number >= 2 && g.number <= 4)
        got = string_of(p, g.value, item->part.at,
                        g.number == 2   ? &frame.name
                        : g.number == 3 ? &system
                                        : &frame.file);
    if (!*frame.name)
        frame.name = system;
    frame.line = number <= UINT32_MAX ? (uint32_t)number : 0;
    ARRAY_PUSH(p->g->frames, p->g->frame_count, p->g->frame_capacity) = frame;
    return r < 0 ? r : got;
}

static int binary_of(struct pprof *p, uint64_t mapping, const char **ret)
{
    const struct item *item = mapping ? find(&p->mappings, mapping) : NULL;
    int r = 0, got = 0;
    *ret = "";
    if (!item)
        return 0;
    EACH_FIELD(p, item->part, part, f, r)
    if (got == 0 && f.number == 5 && f.wire == 0)
        got = string_of(p, f.value, item->part.at, ret);
    return r < 0 ? r : got;
}

static int make_location(struct pprof *p, const struct item *item)
{
    struct given *g = p->g;
    struct given_location location = {.first_frame = (uint32_t)g->frame_count};
    uint64_t mapping = 0;
    int r, got = 0;
    EACH_FIELD(p, item->part, part, f, r)
    {
        mapping = f.number == 2 && f.wire == 0 ? f.value : mapping;
        location.address = f.number == 3 && f.wire == 0 ? f.value : location.address;
    }
    if (r == 0)
        r = binary_of(p, mapping, &location.binary);
    if (r < 0)
        return r;
    EACH_FIELD(p, item->part, lines, line, r)
    if (got == 0 && line.number == 4 && line.wire == 2)
        got = add_frame(p, line.part, location.binary);
    location.frame_count = (uint32_t)(g->frame_count - location.first_frame);
    /* All but the outermost were inlined into it. */
    for (uint32_t i = 0; i + 1 < location.frame_count; i++)
        g->frames[location.first_frame + i].inlined = true;
    ARRAY_PUSH(g->locations, g->location_count, g->location_capacity) = location;
    return r < 0 ? r : got;
}

static int take_label(struct pprof *p, struct part message, struct given_sample *s)
{
    const char *key = "", *text = "";
    uint64_t number = 0;
    int r, got = 0;
    EACH_FIELD(p, message, part, f, r)
    {
        if (f.wire != 0 || got < 0)
            continue;
        if (f.number == 1 || f.number == 2)
            got = string_of(p, f.value, message.at, f.number == 1 ? &key : &text);
        number = f.number == 3 ? f.value : number;
    }
    if (r < 0 || got < 0)
        return r < 0 ? r : got;
    if (*text && (str_eq(key, "comm") || (!*s->comm && str_eq(key, "thread"))))
        s->comm = text;
    if (str_eq(key, "pid"))
        s->pid = (uint32_t)number;
    if (str_eq(key, "tid") || str_eq(key, "thread_id"))
        s->tid = (uint32_t)number;
    return 0;
}

static int take_chain(struct pprof *p, struct field *f, const unsigned char *at)
{
    uint64_t id;
    bool first = true;
    while (next_number(f, &first, &id)) {
        const struct item *item = find(&p->locations, id);
        if (!item)
            return bad(p, at, "the number of a location that is not there");
        ARRAY_PUSH(p->g->chain, p->g->chain_count, p->g->chain_capacity) =
            (uint32_t)(item - p->locations.list);
    }
    return 0;
}

/* One more of the sample's values, which follow the types. */
static int take_value(struct pprof *p, struct given_sample *s, uint64_t value, size_t at,
                      size_t number)
{
    uint64_t scaled;
    if (at >= p->type_count)
        return error_set(p->err, -EINVAL, "sample %zu has more values than there are types",
                         number);
    if (value > INT64_MAX || __builtin_mul_overflow(value, p->factors[at], &scaled))
        return error_set(p->err, -EINVAL,
                         "sample %zu has a negative value; the difference of two profiles cannot "
                         "be read: give 'assay diff' the two themselves",
                         number);
    if (at == p->samples_type)
        s->samples = value;
    else
        ARRAY_PUSH(p->g->values, p->g->value_count, p->g->value_capacity) = scaled;
    return 0;
}

static int make_sample(struct pprof *p, size_t number)
{
    struct given *g = p->g;
    struct part message = p->samples[number];
    struct given_sample s = {.first_location = g->chain_count, .comm = "", .samples = 1};
    size_t values = 0;
    int r, got = 0;
    EACH_FIELD(p, message, part, f, r)
    {
        uint64_t value;
        bool first = true;
        if (got < 0)
            continue;
        if (f.number == 1)
            got = take_chain(p, &f, message.at);
        while (f.number == 2 && got == 0 && next_number(&f, &first, &value))
            got = take_value(p, &s, value, values++, number + 1);
        if (f.number == 3 && f.wire == 2)
            got = take_label(p, f.part, &s);
    }
    if (r < 0 || got < 0)
        return r < 0 ? r : got;
    if (values != p->type_count)
        return error_set(p->err, -EINVAL, "sample %zu has %zu values, but there are %zu types",
                         number + 1, values, p->type_count);
    s.location_count = (uint32_t)(g->chain_count - s.first_location);
    ARRAY_PUSH(g->samples, g->sample_count, g->sample_capacity) = s;
    return 0;
}

static int put_together(struct pprof *p)
{
    struct items *all[] = {&p->functions, &p->mappings, &p->locations};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (all[i]->count)
            qsort(all[i]->list, all[i]->count, sizeof(struct item), compare_items);
    int r = make_events(p);
    for (size_t i = 0; r == 0 && i < p->locations.count; i++)
        r = make_location(p, &p->locations.list[i]);
    for (size_t i = 0; r == 0 && i < p->sample_count; i++)
        r = make_sample(p, i);
    if (r == 0 && p->comment)
        r = string_of(p, p->comment, p->start, &p->g->comment);
    return r;
}

int given_read_pprof(struct given *g, const char *bytes, size_t length, struct error *err)
{
    struct part whole = {(const unsigned char *)bytes, (const unsigned char *)bytes + length};
    struct pprof p = {.g = g, .start = whole.at, .err = err};
    int r, got = 0;
    EACH_FIELD(&p, whole, part, f, r)
    if (got == 0)
        got = take_field(&p, &f);
    r = r < 0 ? r : got;
    if (r == 0)
        r = put_together(&p);
    free(p.strings);
    free(p.functions.list);
    free(p.mappings.list);
    free(p.locations.list);
    free(p.types);
    free(p.samples);
    free(p.factors);
    return r;
}
