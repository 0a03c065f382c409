/* SPDX-License-Identifier: MIT */
/* See json_read.h. */
#include "base/json_read.h"
#include "base/memory.h"
#include "config.h"

#if HAVE_JANSSON

#include <jansson.h>

char *json_member_text(const char *document, const char *key)
{
    json_t *root = json_loads(document, 0, NULL);
    const json_t *member = json_object_get(root, key);
    char *text = NULL;
    if (json_is_string(member))
        text = memory_strdup(json_string_value(member));
    else if (member && !json_is_null(member))
        text = json_dumps(member, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(root);
    return text;
}

#else

char *json_member_text(const char *document, const char *key)
{
    (void)document;
    (void)key;
    return NULL;
}

#endif
