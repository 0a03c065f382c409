/* SPDX-License-Identifier: MIT */
/* A JSON document for people: what is single as a list of names and values, what is repeated as a
 * table.  A text that is no JSON object stands as it is, as all do where jansson is missing. */
#include "base/memory.h"
#include "config.h"
#include "report/html/html.h"

#if HAVE_JANSSON
#include <jansson.h>

#include <string.h>

#define COLUMNS_MAX 16

static void put_name(struct strbuf *out, const char *name)
{
    for (const char *part = name; *part;) {
        size_t length = strcspn(part, "_");
        strbuf_put_markup_n(out, part, length);
        part += length;
        if (*part == '_') {
            strbuf_putc(out, ' ');
            part++;
        }
    }
}

static void put_value(struct strbuf *out, const json_t *value)
{
    if (json_is_string(value)) {
        strbuf_put_markup_n(out, json_string_value(value), json_string_length(value));
    } else if (json_is_boolean(value)) {
        strbuf_puts(out, json_is_true(value) ? "yes" : "no");
    } else if (!json_is_null(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (text)
            strbuf_put_markup(out, text);
        free(text);
    }
}

static bool is_table(const json_t *value)
{
    return json_array_size(value) && json_is_object(json_array_get(value, 0));
}

static size_t find_columns(const json_t *rows, const char *columns[COLUMNS_MAX])
{
    size_t count = 0, i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *key;
        json_t *ignored;
        json_object_foreach((json_t *)row, key, ignored)
        {
            size_t c = 0;
            while (c < count && strcmp(columns[c], key) != 0)
                c++;
            if (c == count && count < COLUMNS_MAX)
                columns[count++] = key;
        }
    }
    return count;
}

static void put_table(struct strbuf *out, const char *name, const json_t *rows)
{
    const char *columns[COLUMNS_MAX];
    size_t count = find_columns(rows, columns), i;
    strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"document\"><caption>");
    put_name(out, name);
    strbuf_puts(out, "</caption><thead><tr>");
    for (size_t c = 0; c < count; c++) {
        strbuf_puts(out, "<th scope=\"col\">");
        put_name(out, columns[c]);
        strbuf_puts(out, "</th>");
    }
    strbuf_puts(out, "</tr></thead><tbody>\n");
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        strbuf_puts(out, "<tr>");
        for (size_t c = 0; c < count; c++) {
            strbuf_puts(out, "<td>");
            put_value(out, json_object_get(row, columns[c]));
            strbuf_puts(out, "</td>");
        }
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n");
}

/* Beside others in columns a long value would be a tall and narrow one. */
static void put_scalar(struct strbuf *out, const char *under, const char *key, const json_t *value)
{
    enum { LONG = 60 };
    CLEANUP(strbuf_done) struct strbuf text = {0};
    put_value(&text, value);
    const char *class = str_columns(strbuf_text(&text)) > LONG ? " class=\"long\"" : "";
    strbuf_printf(out, "<dt%s>", class);
    put_name(out, under);
    strbuf_puts(out, *under ? " " : "");
    put_name(out, key);
    strbuf_printf(out, "</dt><dd%s>%s</dd>\n", class, strbuf_text(&text));
}

static void put_scalars(struct strbuf *out, json_t *object, const char *under)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (is_table(value))
            continue;
        if (json_is_object(value) && !*under)
            put_scalars(out, value, key);
        else
            put_scalar(out, under, key, value);
    }
}

bool html_put_document(struct strbuf *out, const char *text)
{
    json_t *root = json_loads(text, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return false;
    }
    strbuf_puts(out, "<dl>\n");
    put_scalars(out, root, "");
    strbuf_puts(out, "</dl>\n");
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) if (is_table(value)) put_table(out, key, value);
    json_decref(root);
    return true;
}
#else
bool html_put_document(struct strbuf *out, const char *text)
{
    (void)out;
    (void)text;
    return false;
}
#endif
