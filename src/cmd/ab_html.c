/* SPDX-License-Identifier: MIT */
/* What `assay ab` found as an HTML report: the same table of values that the text is made from. */
#include "base/json.h"
#include "base/memory.h"
#include "cmd/ab.h"
#include "report/html/html.h"

static char *machine_text(const struct machine *machine)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct json j = {.out = &text};
    if (machine)
        machine_write_json(machine, &j, NULL);
    return memory_strdup(strbuf_text(&text));
}

void ab_put_html(struct strbuf *out, const struct ab_view *v)
{
    CLEANUP(page_done) struct page page = {0};
    struct embedded *e = &page.data;
    ARRAY_PUSH(e->documents, e->set_count, e->document_capacity) =
        (struct embedded_documents){machine_text(v->machine), memory_strdup(""), memory_strdup("")};
    e->sets = memory_grow(e->sets, &e->set_capacity, 1, sizeof(*e->sets));
    e->sets[0] = *v->outcome->data; /* lent, and taken back below */
    e->command = memory_strdup("assay ab");
    struct error ignored;
    if (page_prepare(&page, &ignored) == 0) { /* nothing can fail with one table */
        page_plot(&page);
        html_put_page(out, &page);
    }
    e->sets[0] = (struct dataset){0};
}
