/* SPDX-License-Identifier: MIT */
/* A record as its print fmt says: see print.h. */
#include "tracepoints/print.h"
#include "base/digits.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <stdio.h>

/* What an expression comes to. */
struct value {
    bool is_bytes;
    int64_t number;
    const unsigned char *bytes;
    size_t size;
    const struct tp_field *field; /* that the bytes are of */
};

struct run {
    struct tp_record record;
    struct strbuf scratch[4]; /* texts that expressions make; a record prints few */
    size_t scratch_count;
};

static struct value evaluate(struct run *r, const struct tp_node *n);

static struct value number_value(int64_t number)
{
    return (struct value){.number = number};
}

static struct value text_value(const char *text, size_t length)
{
    return (struct value){
        .is_bytes = true, .bytes = (const unsigned char *)text, .size = length, .number = 1};
}

static struct value scratch_value(struct strbuf *b)
{
    return text_value(strbuf_text(b), b->length);
}

/* The buffers are few and are used in turn: their texts live until the line is printed only when no
 * more than that many are made, which holds for all but nested helpers. */
static struct strbuf *next_scratch(struct run *r)
{
    struct strbuf *b = &r->scratch[r->scratch_count++ % ARRAY_COUNT(r->scratch)];
    strbuf_clear(b);
    return b;
}

static struct value field_value(struct run *r, const struct tp_node *n)
{
    const struct tp_field *f = n->field;
    struct value v = {.field = f};
    if (!f->is_text && !f->is_array && !f->is_dynamic) {
        v.number = tp_number(f, r->record);
        return v;
    }
    v.is_bytes = true;
    v.bytes = tp_bytes(f, r->record, &v.size);
    v.number = v.bytes != NULL;
    if (!v.bytes)
        v.size = 0;
    if (n->kind == TP_LENGTH) {
        uint32_t place = (uint32_t)tp_number(f, r->record);
        return number_value(place >> 16);
    }
    return v;
}

static struct value index_value(struct run *r, const struct tp_node *n)
{
    struct value base = evaluate(r, n->left), index = evaluate(r, n->right);
    if (!base.is_bytes || !base.field || !base.bytes)
        return number_value(0);
    return number_value(tp_element(base.field, base.bytes, base.size, (uint64_t)index.number));
}

static struct value cast_value(struct run *r, const struct tp_node *n)
{
    struct value v = evaluate(r, n->left);
    if (v.is_bytes)
        return v;
    switch (n->size) {
    case 1:
        v.number = n->is_signed ? (int64_t)(int8_t)v.number : (int64_t)(uint8_t)v.number;
        break;
    case 2:
        v.number = n->is_signed ? (int64_t)(int16_t)v.number : (int64_t)(uint16_t)v.number;
        break;
    case 4:
        v.number = n->is_signed ? (int64_t)(int32_t)v.number : (int64_t)(uint32_t)v.number;
        break;
    default:
        break;
    }
    return v;
}

static int64_t divide(int64_t a, int64_t b, bool remainder)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return 0;
    return remainder ? a % b : a / b;
}

static int64_t compute(uint32_t operator, int64_t a, int64_t b)
{
    switch (operator) {
    case TP_OPERATOR('|', '|'):
        return a || b;
    case TP_OPERATOR('&', '&'):
        return a && b;
    case TP_OPERATOR('=', '='):
        return a == b;
    case TP_OPERATOR('!', '='):
        return a != b;
    case TP_OPERATOR('<', '<'):
        return b >= 0 && b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    case TP_OPERATOR('>', '>'):
        return b >= 0 && b < 64 ? (int64_t)((uint64_t)a >> b) : 0;
    case TP_OPERATOR('<', '='):
        return a <= b;
    case TP_OPERATOR('>', '='):
        return a >= b;
    case '|':
        return a | b;
    case '^':
        return a ^ b;
    case '&':
        return a & b;
    case '<':
        return a < b;
    case '>':
        return a > b;
    case '+':
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case '-':
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case '*':
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case '/':
    case '%':
        return divide(a, b, operator== '%');
    default:
        return 0;
    }
}

static struct value unary_value(struct run *r, const struct tp_node *n)
{
    struct value v = evaluate(r, n->left);
    switch (n->operator) {
    case '-':
        return number_value((int64_t)(0 - (uint64_t)v.number));
    case '~':
        return number_value(~v.number);
    case '!':
        return number_value(!v.number);
    default: /* what a pointer into the record points to */
        return v.is_bytes && v.field && v.bytes
                   ? number_value(tp_element(v.field, v.bytes, v.size, 0))
                   : v;
    }
}

static struct value flags_value(struct run *r, const struct tp_node *n)
{
    uint64_t left = (uint64_t)evaluate(r, n->left).number;
    struct strbuf *out = next_scratch(r);
    const char *between = n->text && *n->text ? n->text : "|";
    bool any = false;
    for (size_t i = 0; i < n->pair_count; i++) {
        uint64_t mask = n->pairs[i].value;
        if ((left & mask) != mask || (mask == 0 && (left || any)))
            continue;
        strbuf_printf(out, "%s%s", any ? between : "", n->pairs[i].text);
        any = true;
        left &= ~mask;
        if (mask == 0)
            break;
    }
    if (left)
        strbuf_printf(out, "%s0x%llx", any ? between : "", (unsigned long long)left);
    return scratch_value(out);
}

static struct value symbolic_value(struct run *r, const struct tp_node *n)
{
    uint64_t value = (uint64_t)evaluate(r, n->left).number;
    for (size_t i = 0; i < n->pair_count; i++)
        if (n->pairs[i].value == value ||
            (n->pairs[i].value <= UINT32_MAX && (uint32_t)value == n->pairs[i].value &&
             (int64_t)value == (int32_t)(uint32_t)value))
            return text_value(n->pairs[i].text, strlen(n->pairs[i].text));
    struct strbuf *out = next_scratch(r);
    strbuf_printf(out, "0x%llx", (unsigned long long)value);
    return scratch_value(out);
}

static struct value hex_value(struct run *r, const struct tp_node *n)
{
    struct value bytes = evaluate(r, n->left), count = evaluate(r, n->right);
    struct strbuf *out = next_scratch(r);
    for (size_t i = 0; bytes.is_bytes && i < bytes.size && (int64_t)i < count.number; i++)
        strbuf_printf(out, "%s%02x", i && n->is_spaced ? " " : "", bytes.bytes[i]);
    return scratch_value(out);
}

static struct value array_value(struct run *r, const struct tp_node *n)
{
    struct value bytes = evaluate(r, n->left), count = evaluate(r, n->right),
                 size = evaluate(r, n->third);
    struct strbuf *out = next_scratch(r);
    struct tp_field element = {.element_size = (uint32_t)size.number};
    strbuf_putc(out, '{');
    for (size_t i = 0; bytes.is_bytes && size.number > 0 && size.number <= 8 &&
                       (int64_t)i < count.number && (i + 1) * (size_t)size.number <= bytes.size;
         i++)
        strbuf_printf(out, "%s0x%llx", i ? "," : "",
                      (unsigned long long)tp_element(&element, bytes.bytes, bytes.size, i));
    strbuf_putc(out, '}');
    return scratch_value(out);
}

static struct value evaluate(struct run *r, const struct tp_node *n)
{
    switch (n->kind) {
    case TP_NUMBER:
        return number_value((int64_t)n->number);
    case TP_TEXT:
        return text_value(n->text, strlen(n->text));
    case TP_FIELD:
    case TP_LENGTH:
        return field_value(r, n);
    case TP_INDEX:
        return index_value(r, n);
    case TP_CAST:
        return cast_value(r, n);
    case TP_UNARY:
        return unary_value(r, n);
    case TP_BINARY: {
        int64_t left = evaluate(r, n->left).number;
        return number_value(compute(n->operator, left, evaluate(r, n->right).number));
    }
    case TP_CHOICE:
        return evaluate(r, evaluate(r, n->left).number ? n->right : n->third);
    case TP_FLAGS:
        return flags_value(r, n);
    case TP_SYMBOLIC:
        return symbolic_value(r, n);
    case TP_HEX:
        return hex_value(r, n);
    case TP_ARRAY:
        return array_value(r, n);
    }
    return number_value(0);
}

/* One conversion of the format. */
struct conversion {
    char flags[8];
    int width, precision; /* -1 for none */
    size_t long_count, short_count;
    char kind;
    const char *extension; /* letters behind %p */
    size_t extension_length;
};

static const char *parse_conversion(const char *at, struct conversion *c, int star)
{
    size_t count = 0;
    *c = (struct conversion){.width = -1, .precision = -1};
    for (; *at && strchr("-+ #0", *at); at++)
        if (count + 1 < sizeof(c->flags))
            c->flags[count++] = *at;
    if (*at == '*') {
        c->width = star;
        at++;
    }
    for (; *at >= '0' && *at <= '9' && c->width < 1000; at++)
        c->width = (c->width < 0 ? 0 : c->width) * 10 + (*at - '0');
    if (*at == '.') {
        c->precision = 0;
        at++;
        if (*at == '*') {
            c->precision = star < 0 ? 0 : star;
            at++;
        }
        for (; *at >= '0' && *at <= '9' && c->precision < 1000; at++)
            c->precision = c->precision * 10 + (*at - '0');
    }
    for (; *at && strchr("hlLqjzt", *at); at++)
        *(*at == 'h' ? &c->short_count : &c->long_count) += 1;
    c->kind = *at;
    if (*at)
        at++;
    c->extension = at;
    while (c->kind == 'p' && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                              (at > c->extension && *at >= '0' && *at <= '9')))
        at++;
    c->extension_length = (size_t)(at - c->extension);
    return at;
}

/* Most numbers have no more to them than their base, perhaps zeros before them. */
static bool put_plain_number(struct strbuf *out, const struct conversion *c, uint64_t value,
                             bool is_signed)
{
    bool has_zeros = str_eq(c->flags, "0") && c->width > 0 && c->width <= 64;
    if (c->precision >= 0 || (!has_zeros && (c->flags[0] || c->width > 64)) ||
        !(is_signed || c->kind == 'u' || c->kind == 'x'))
        return false;
    size_t width = c->width > 0 ? (size_t)c->width : 0;
    if (is_signed && (int64_t)value < 0) {
        if (width)
            return false;
        strbuf_putc(out, '-');
        value = 0 - value;
    }
    strbuf_put_number(out, value, c->kind == 'x' ? 16 : 10, width, has_zeros ? '0' : ' ');
    return true;
}

static void put_number(struct strbuf *out, const struct conversion *c, int64_t number)
{
    char format[48], width[16] = "", precision[16] = "";
    bool is_signed = c->kind == 'd' || c->kind == 'i';
    uint64_t value = (uint64_t)number;
    if (c->short_count >= 2)
        value = is_signed ? (uint64_t)(int64_t)(int8_t)number : (uint8_t)number;
    else if (c->short_count == 1)
        value = is_signed ? (uint64_t)(int64_t)(int16_t)number : (uint16_t)number;
    else if (!c->long_count)
        value = is_signed ? (uint64_t)(int64_t)(int32_t)number : (uint32_t)number;
    if (put_plain_number(out, c, value, is_signed))
        return;
    if (c->width >= 0)
        snprintf(width, sizeof(width), "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof(precision), ".%d", c->precision);
    snprintf(format, sizeof(format), "%%%s%s%sll%c", c->flags, width, precision, c->kind);
    char text[1200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), format, (unsigned long long)value);
#pragma GCC diagnostic pop
    strbuf_puts(out, text);
}

static void put_padded(struct strbuf *out, const struct conversion *c, const char *text,
                       size_t length)
{
    bool left = strchr(c->flags, '-');
    if (c->precision >= 0 && (size_t)c->precision < length)
        length = (size_t)c->precision;
    size_t room = c->width > 0 && (size_t)c->width > length ? (size_t)c->width - length : 0;
    if (!left)
        strbuf_pad(out, ' ', room);
    strbuf_put_safe(out, text, length, SIZE_MAX);
    if (left)
        strbuf_pad(out, ' ', room);
}

static void put_text(struct strbuf *out, const struct conversion *c, struct value v)
{
    char number[32];
    if (v.is_bytes) {
        const char *text = v.bytes ? (const char *)v.bytes : "";
        put_padded(out, c, text, strnlen(text, v.size));
        return;
    }
    /* The address of a text in the kernel's memory. */
    snprintf(number, sizeof(number), "0x%llx", (unsigned long long)v.number);
    put_padded(out, c, number, strlen(number));
}

static void put_bitmask(struct strbuf *out, struct value v, bool as_list)
{
    bool any = false;
    size_t bits = v.size * 8;
    if (!as_list) {
        for (size_t i = v.size; i-- > 0;)
            strbuf_printf(out, "%02x%s", v.bytes[i], i && i % 4 == 0 ? "," : "");
        return;
    }
    for (size_t i = 0; i < bits; i++) {
        size_t last = i;
        if (!(v.bytes[i / 8] >> i % 8 & 1))
            continue;
        while (last + 1 < bits && v.bytes[(last + 1) / 8] >> (last + 1) % 8 & 1)
            last++;
        strbuf_printf(out, last > i ? "%s%zu-%zu" : "%s%zu", any ? "," : "", i, last);
        any = true;
        i = last;
    }
}

static void put_socket(struct strbuf *out, struct value v)
{
    char text[INET6_ADDRSTRLEN] = "?";
    uint16_t family = 0, port = 0;
    if (v.size >= 4) {
        memcpy(&family, v.bytes, 2);
        memcpy(&port, v.bytes + 2, 2);
    }
    if (family == AF_INET && v.size >= 8) {
        inet_ntop(AF_INET, v.bytes + 4, text, sizeof(text));
        strbuf_printf(out, "%s:%u", text, ntohs(port));
    } else if (family == AF_INET6 && v.size >= 24) {
        inet_ntop(AF_INET6, v.bytes + 8, text, sizeof(text));
        strbuf_printf(out, "[%s]:%u", text, ntohs(port));
    } else {
        strbuf_puts(out, text);
    }
}

/* %p and what the kernel's printf has behind it. */
static void put_pointer(struct strbuf *out, const struct conversion *c, struct value v)
{
    char text[INET6_ADDRSTRLEN];
    char kind = c->extension_length ? c->extension[0] : 0;
    char second = c->extension_length > 1 ? c->extension[1] : 0;
    if (!v.is_bytes || !v.bytes)
        strbuf_printf(out, "0x%llx", (unsigned long long)(v.is_bytes ? 0 : v.number));
    else if (kind == 'b')
        put_bitmask(out, v, second == 'l');
    else if (kind == 'I' && second == 'S')
        put_socket(out, v);
    else if ((kind == 'I' || kind == 'i') && second == '4' && v.size >= 4)
        strbuf_puts(out, inet_ntop(AF_INET, v.bytes, text, sizeof(text)));
    else if ((kind == 'I' || kind == 'i') && second == '6' && v.size >= 16)
        strbuf_puts(out, inet_ntop(AF_INET6, v.bytes, text, sizeof(text)));
    else
        for (size_t i = 0; i < v.size && i < 64; i++)
            strbuf_printf(out, "%s%02x", i && kind == 'M' ? ":" : "", v.bytes[i]);
}

static void put_converted(struct run *r, const struct tp_print *p, const struct conversion *c,
                          size_t argument, struct strbuf *out)
{
    if (argument >= p->argument_count)
        return;
    struct value v = evaluate(r, p->arguments[argument]);
    switch (c->kind) {
    case 's':
        put_text(out, c, v);
        break;
    case 'p':
        put_pointer(out, c, v);
        break;
    case 'c': {
        char character = (char)v.number;
        strbuf_put_safe(out, &character, 1, 1);
        break;
    }
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        put_number(out, c, v.number);
        break;
    default:
        break;
    }
}

void tp_print_put(const struct tp_print *p, struct tp_record record, struct strbuf *out)
{
    struct run r = {.record = record};
    size_t argument = 0;
    for (const char *at = p->format; *at;) {
        size_t plain = strcspn(at, "%");
        strbuf_append(out, at, plain);
        at += plain;
        if (!*at)
            break;
        if (at[1] == '%') {
            strbuf_putc(out, '%');
            at += 2;
            continue;
        }
        size_t end = strcspn(at + 1, "diouxXcsp"), star = strcspn(at + 1, "*");
        int width = -1;
        if (star < end && argument < p->argument_count)
            width = (int)evaluate(&r, p->arguments[argument++]).number;
        struct conversion c;
        at = parse_conversion(at + 1, &c, width > 1000 ? 1000 : width);
        put_converted(&r, p, &c, argument++, out);
    }
    for (size_t i = 0; i < ARRAY_COUNT(r.scratch); i++)
        strbuf_done(&r.scratch[i]);
}
