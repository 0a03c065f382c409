/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of a report's data: as a page, as the JSON within one, and as that of assay ab
 * and gate.
 */
#include "report/page/embedded.h"
#include "base/base64.h"
#include "base/memory.h"
#include "report/html/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must be fit to be shown. */
static void show(struct page *page)
{
    struct error err;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (page->data.set_count > 2 || page->data.flame_count > 4)
        return;
    if (page_prepare(page, &err) < 0)
        return;
    page_plot(page);
    html_put_page(&out, page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    CLEANUP(strbuf_done) struct strbuf wrapped = {0};
    strbuf_puts(&wrapped, "<script id=\"" EMBEDDED_ID "\" data-encoding=\"none\">");
    strbuf_put_base64(&wrapped, data, size);
    strbuf_puts(&wrapped, "</script>");
    for (int way = 0; way < 4; way++) {
        CLEANUP(page_done) struct page page = {0};
        int r = way == 0   ? embedded_read(&page.data, (const char *)data, size, "fuzz", &err)
                : way == 1 ? embedded_read(&page.data, wrapped.data, wrapped.length, "fuzz", &err)
                : way == 2 ? embedded_read_ab(&page.data, (const char *)data, size, "fuzz", &err)
                           : embedded_read_gate(&page.data, (const char *)data, size, "fuzz", &err);
        if (r == 0)
            show(&page);
    }
    return 0;
}
