/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/memory.h"
#include "test.h"

TEST(nesting_and_commas)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    json_object(&j, NULL);
    json_u64(&j, "a", 1);
    json_array(&j, "b");
    json_i64(&j, NULL, -2);
    json_bool(&j, NULL, true);
    json_null(&j, NULL);
    json_object(&j, NULL);
    json_end(&j);
    json_end(&j);
    json_string(&j, "c", NULL);
    json_end(&j);
    CHECK_STR(strbuf_text(&out), "{\"a\":1,\"b\":[-2,true,null,{}],\"c\":null}\n");
}

TEST(numbers_read_back)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    json_array(&j, NULL);
    json_double(&j, NULL, 0.1);
    json_double(&j, NULL, 1.0 / 3);
    json_double(&j, NULL, INFINITY);
    json_double(&j, NULL, NAN);
    json_u64(&j, NULL, UINT64_MAX);
    json_end(&j);
    CHECK_STR(strbuf_text(&out), "[0.1,0.33333333333333331,null,null,18446744073709551615]\n");
}

TEST(any_bytes_become_valid_json)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char text[] = "q\" b\\ n\n c\x01 u\xc3\xa9 bad\xff\xed\xa0\x80 end\xe2\x82";
    strbuf_put_json(&out, text, sizeof(text) - 1);
    CHECK_STR(strbuf_text(&out), "\"q\\\" b\\\\ n\\n c\\u0001 u\xc3\xa9 "
                                 "bad\\ufffd\\ufffd\\ufffd\\ufffd end\\ufffd\\ufffd\"");
}

TEST(csv_quotes_only_where_needed)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    strbuf_put_csv(&out, "plain");
    strbuf_putc(&out, ',');
    strbuf_put_csv(&out, "a,\"b\"");
    CHECK_STR(strbuf_text(&out), "plain,\"a,\"\"b\"\"\"");
}
