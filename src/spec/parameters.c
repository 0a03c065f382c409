/* SPDX-License-Identifier: MIT */
/* Parameters of a command: see parameters.h. */
#include "spec/parameters.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

static void parameter_done(struct parameter *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->values[i]);
    free(p->values);
    free(p->name);
    *p = (struct parameter){0};
}

void parameters_done(struct parameter_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        parameter_done(&list->items[i]);
    free(list->items);
    *list = (struct parameter_list){0};
}

static int check_name(const struct parameter_list *list, const char *name, struct error *err)
{
    size_t length = strlen(name);
    bool good = length > 0;
    for (size_t i = 0; i < length; i++)
        good &= isalnum((unsigned char)name[i]) || strchr("_-.", name[i]);
    if (!good)
        return error_set(
            err, -EINVAL,
            "'%s' is not a valid parameter name: use letters, digits, '_', '-' and '.'", name);
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].name, name))
            return error_set(err, -EINVAL, "the parameter '%s' is given twice", name);
    return 0;
}

/* Takes over *p when all is well, else frees it. */
static int add(struct parameter_list *list, struct parameter *p, struct error *err)
{
    int r = check_name(list, p->name, err);
    if (r == 0 && parameters_combinations(list) * p->count > PARAMETER_COMBINATIONS_MAX)
        r = error_set(err, -E2BIG, "the parameters have more than %d combinations",
                      PARAMETER_COMBINATIONS_MAX);
    if (r < 0) {
        parameter_done(p);
        return r;
    }
    ARRAY_PUSH(list->items, list->count, list->capacity) = *p;
    return 0;
}

int parameters_add_list(struct parameter_list *list, const char *name, const char *values,
                        struct error *err)
{
    struct parameter p = {.name = memory_strdup(name)};
    CLEANUP(strbuf_done) struct strbuf value = {0};
    for (const char *c = values;; c++) {
        if (*c == '\\' && (c[1] == ',' || c[1] == '\\')) {
            strbuf_putc(&value, *++c);
        } else if (*c && *c != ',') {
            strbuf_putc(&value, *c);
        } else {
            ARRAY_PUSH(p.values, p.count, p.capacity) = memory_strdup(strbuf_text(&value));
            strbuf_clear(&value);
        }
        if (!*c)
            break;
    }
    return add(list, &p, err);
}

static int decimals_of(const char *number)
{
    const char *point = strchr(number, '.');
    return point ? (int)strlen(point + 1) : 0;
}

static int parse_range(const char *const *texts, double *numbers, int *ret_decimals,
                       struct error *err)
{
    *ret_decimals = 0;
    for (int i = 0; i < 3; i++) {
        int r = parse_double(texts[i], &numbers[i], err);
        if (r == 0 && (!isfinite(numbers[i]) || strpbrk(texts[i], "eExX")))
            r = error_set(err, -EINVAL, "'%s' is not a decimal number", texts[i]);
        if (r < 0)
            return r;
        int decimals = decimals_of(texts[i]);
        *ret_decimals = decimals > *ret_decimals ? decimals : *ret_decimals;
    }
    if (numbers[2] <= 0 || numbers[1] < numbers[0])
        return error_set(err, -EINVAL, "from %s to %s in steps of %s is not a range", texts[0],
                         texts[1], texts[2]);
    if (*ret_decimals > 12)
        return error_set(err, -EINVAL, "more than 12 decimal places");
    if ((numbers[1] - numbers[0]) / numbers[2] > PARAMETER_COMBINATIONS_MAX)
        return error_set(err, -E2BIG, "from %s to %s in steps of %s has more than %d values",
                         texts[0], texts[1], texts[2], PARAMETER_COMBINATIONS_MAX);
    return 0;
}

int parameters_add_range(struct parameter_list *list, const char *name, const char *first,
                         const char *last, const char *step, struct error *err)
{
    const char *texts[3] = {first, last, step ? step : "1"};
    double numbers[3];
    int decimals;
    int r = parse_range(texts, numbers, &decimals, err);
    if (r < 0)
        return error_wrap(err, r, "parameter '%s'", name);
    struct parameter p = {.name = memory_strdup(name)};
    for (size_t i = 0;; i++) {
        double value = numbers[0] + (double)i * numbers[2];
        /* A sum of decimals may end up a hair above the last. */
        if (value > numbers[1] + 1e-9 * numbers[2])
            break;
        ARRAY_PUSH(p.values, p.count, p.capacity) = memory_printf("%.*f", decimals, value);
    }
    return add(list, &p, err);
}

size_t parameters_combinations(const struct parameter_list *list)
{
    size_t count = 1;
    for (size_t i = 0; i < list->count; i++)
        count *= list->items[i].count;
    return count;
}

const char *parameters_value(const struct parameter_list *list, size_t parameter,
                             size_t combination)
{
    for (size_t i = list->count - 1; i > parameter; i--)
        combination /= list->items[i].count;
    return list->items[parameter].values[combination % list->items[parameter].count];
}

/* The parameter whose {name} stands at the text, and the length of that; -1 for none. */
static int find_hole(const struct parameter_list *list, const char *text, size_t *ret_length)
{
    if (*text != '{')
        return -1;
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strlen(list->items[i].name);
        if (strncmp(text + 1, list->items[i].name, length) == 0 && text[length + 1] == '}') {
            *ret_length = length + 2;
            return (int)i;
        }
    }
    return -1;
}

char *parameters_substitute(const struct parameter_list *list, size_t combination, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    while (*text) {
        size_t length = 1;
        int hole = find_hole(list, text, &length);
        if (hole < 0)
            strbuf_putc(&out, *text);
        else
            strbuf_puts(&out, parameters_value(list, (size_t)hole, combination));
        text += length;
    }
    return memory_strdup(strbuf_text(&out));
}

bool parameters_used(const struct parameter_list *list, size_t parameter, const char *text)
{
    for (; *text; text++) {
        size_t length;
        if (find_hole(list, text, &length) == (int)parameter)
            return true;
    }
    return false;
}

void parameters_describe(const struct parameter_list *list, size_t combination, struct strbuf *out)
{
    for (size_t i = 0; i < list->count; i++)
        strbuf_printf(out, "%s%s=%s", i ? ", " : "", list->items[i].name,
                      parameters_value(list, i, combination));
}
