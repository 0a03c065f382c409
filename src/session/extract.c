/* SPDX-License-Identifier: MIT */
/* See extract.h. */
#include "session/extract.h"
#include "base/fd.h"
#include "base/memory.h"
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#if HAVE_JANSSON
#include <jansson.h>
#endif

/* "1,234.5" is how some programs print; a comma that is not between digits ends the number. */
static int number_of(const char *text, size_t length, double *ret_value, struct error *err)
{
    char digits[64];
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof(digits); i++)
        if (text[i] != ',' && text[i] != ' ' && text[i] != '_')
            digits[used++] = text[i];
    digits[used] = '\0';
    return parse_double(digits, ret_value, err);
}

int extract_regex(const regex_t *regex, const char *text, double *ret_value, struct error *err)
{
    regmatch_t match[2], last = {.rm_so = -1};
    size_t at = 0, last_at = 0;
    int flags = 0;
    while (text[at] && regexec(regex, text + at, 2, match, flags) == 0) {
        if (match[1].rm_so >= 0) {
            last = match[1];
            last_at = at;
        }
        at += match[0].rm_eo > 0 ? (size_t)match[0].rm_eo : 1;
        flags = at && text[at - 1] == '\n' ? 0 : REG_NOTBOL;
    }
    if (last.rm_so < 0)
        return error_set(err, -ENOENT, "nothing matches");
    return number_of(text + last_at + last.rm_so, (size_t)(last.rm_eo - last.rm_so), ret_value,
                     err);
}

#if HAVE_JANSSON

static int number_in(const json_t *value, double *ret_value, struct error *err)
{
    if (json_is_number(value)) {
        *ret_value = json_number_value(value);
        return 0;
    }
    if (json_is_string(value))
        return number_of(json_string_value(value), json_string_length(value), ret_value, err);
    return error_set(err, -EINVAL, "there is no number at that path");
}

static int walk_path(const json_t *root, const char *path, double *ret_value, struct error *err)
{
    const json_t *value = root;
    for (const char *p = path; *p;) {
        p += *p == '.' || *p == '[' || *p == ']' || (*p == '$' && p == path);
        size_t length = strcspn(p, ".[]");
        if (length == 0)
            continue;
        CLEANUP(memory_freep) char *key = memory_strndup(p, length);
        uint64_t index;
        if (json_is_array(value))
            value = parse_u64(key, &index, NULL) == 0 ? json_array_get(value, index) : NULL;
        else
            value = json_object_get(value, key);
        if (!value)
            return error_set(err, -ENOENT, "there is no '%s'", key);
        p += length;
    }
    return number_in(value, ret_value, err);
}

/* A program may print other lines before its JSON: parsing starts at the first bracket that works.
 */
int extract_json(const char *text, const char *path, double *ret_value, struct error *err)
{
    json_error_t problem = {0};
    json_t *root = json_loads(text, JSON_DISABLE_EOF_CHECK, &problem);
    for (const char *p = text; !root && (p = strpbrk(p, "{[")); p++)
        if (p == text || p[-1] == '\n')
            root = json_loads(p, JSON_DISABLE_EOF_CHECK, &problem);
    if (!root)
        return error_set(err, -EINVAL, "not JSON: %s", problem.text);
    int r = walk_path(root, path, ret_value, err);
    json_decref(root);
    return r;
}

#else

int extract_json(const char *text, const char *path, double *ret_value, struct error *err)
{
    (void)text, (void)path, (void)ret_value;
    return error_set(err, -ENOTSUP,
                     "assay was built without jansson and cannot read JSON; install libjansson-dev "
                     "and rebuild it");
}

#endif

static int from_text(const struct spec_metric *m, const char *text, double *ret_value,
                     struct error *err)
{
    return m->source == METRIC_REGEX ? extract_regex(&m->regex, text, ret_value, err)
                                     : extract_json(text, m->pattern, ret_value, err);
}

static int from_file(const struct spec_metric *m, const struct hole_values *values,
                     double *ret_value, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf path = {0}, text = {0};
    holes_fill(&path, m->file, values);
    if (strbuf_text(&path)[0] != '/') {
        CLEANUP(memory_freep) char *relative = memory_strdup(strbuf_text(&path));
        strbuf_clear(&path);
        strbuf_printf(&path, "%s/%s", spec_folder(values->spec, values->levels), relative);
    }
    int r = file_read(strbuf_text(&path), &text, err);
    if (r == 0)
        r = from_text(m, strbuf_text(&text), ret_value, err);
    return r < 0 ? error_wrap(err, r, "in %s", strbuf_text(&path)) : 0;
}

int extract_metric(const struct spec_metric *metric, const struct metric_list *printed,
                   const char *output, const struct hole_values *values, double *ret_value,
                   struct error *err)
{
    int r;
    if (metric->source == METRIC_PRINTED) {
        const struct metric *found = metrics_find(printed, metric->name);
        if (found) {
            *ret_value = found->value;
            return 0;
        }
        r = error_set(err, -ENOENT,
                      "the program did not report it (it should write 'assay.metric %s VALUE' to "
                      "the file descriptor in ASSAY_METRICS_FD)",
                      metric->name);
    } else if (metric->file) {
        r = from_file(metric, values, ret_value, err);
    } else {
        r = from_text(metric, output, ret_value, err);
        if (r < 0)
            r = error_wrap(err, r, "in standard output");
    }
    if (r == 0 && !isfinite(*ret_value))
        r = error_set(err, -EINVAL, "the value is not a finite number");
    return r < 0 ? error_wrap(err, r, "metric %s", metric->name) : 0;
}
