/* SPDX-License-Identifier: MIT */
/* The print fmt as a tree: see print.h. */
#include "base/memory.h"
#include "tracepoints/print.h"

#define DEPTH_MAX 64
#define PAIR_COUNT_MAX 4096

struct parser {
    struct tp_format *format;
    const char *at;
    unsigned depth;
    bool is_bad;
};

static struct tp_node *parse_expression(struct parser *p);

static struct tp_node *fail(struct parser *p)
{
    p->is_bad = true;
    return NULL;
}

static struct tp_node *new_node(struct parser *p, enum tp_node_kind kind)
{
    struct tp_node *n = arena_alloc(&p->format->arena, sizeof(*n));
    *n = (struct tp_node){.kind = kind};
    return n;
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    if (p->is_bad || *p->at != c)
        return false;
    p->at++;
    return true;
}

static void expect(struct parser *p, char c)
{
    if (!take(p, c))
        p->is_bad = true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

static bool take_word(struct parser *p, const char *word)
{
    skip_blanks(p);
    size_t length = strlen(word);
    if (word_length(p->at) != length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static char unescape(char c)
{
    return (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
}

/* "…", several of which may stand one behind another. */
static const char *parse_text(struct parser *p)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    while (take(p, '"')) {
        for (; *p->at && *p->at != '"'; p->at++) {
            if (*p->at == '\\' && p->at[1])
                strbuf_putc(&text, unescape(*++p->at));
            else
                strbuf_putc(&text, *p->at);
        }
        expect(p, '"');
    }
    return arena_strdup(&p->format->arena, strbuf_text(&text));
}

/* The size that a type's words come to; 0 for words that are no type. */
static uint32_t type_size(const char *words, bool *ret_signed)
{
    static const struct {
        const char *word;
        uint32_t size;
        bool is_signed;
    } types[] = {
        {"u8", 1, false},      {"__u8", 1, false},     {"s8", 1, true},        {"__s8", 1, true},
        {"u16", 2, false},     {"__u16", 2, false},    {"s16", 2, true},       {"__s16", 2, true},
        {"u32", 4, false},     {"__u32", 4, false},    {"s32", 4, true},       {"__s32", 4, true},
        {"u64", 8, false},     {"__u64", 8, false},    {"s64", 8, true},       {"__s64", 8, true},
        {"bool", 1, false},    {"char", 1, true},      {"short", 2, true},     {"int", 4, true},
        {"uint8_t", 1, false}, {"uint16_t", 2, false}, {"uint32_t", 4, false},
    };
    bool is_unsigned = strstr(words, "unsigned");
    *ret_signed = !is_unsigned;
    if (strchr(words, '*') || strstr(words, "long") || strstr(words, "64"))
        return 8;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        const char *found = strstr(words, types[i].word);
        if (!found || (found > words && is_word(found[-1])) ||
            is_word(found[strlen(types[i].word)]))
            continue;
        *ret_signed = types[i].is_signed && !is_unsigned;
        return types[i].size;
    }
    return is_unsigned ? 4 : 8; /* names of kernel types: wide enough */
}

/* "(unsigned long long)" and its like: words and stars only. */
static bool take_cast(struct parser *p, uint32_t *ret_size, bool *ret_signed)
{
    skip_blanks(p);
    if (*p->at != '(')
        return false;
    const char *at = p->at + 1, *start = at;
    bool has_word = false;
    for (; is_word(*at) || *at == ' ' || *at == '*'; at++)
        has_word |= *at > '9';
    if (*at != ')' || !has_word || (*start >= '0' && *start <= '9'))
        return false;
    CLEANUP(memory_freep) char *words = memory_strndup(start, (size_t)(at - start));
    /* What follows a cast is an operand; "(REC)" does not occur. */
    *ret_size = type_size(words, ret_signed);
    p->at = at + 1;
    return true;
}

static struct tp_node *parse_field(struct parser *p)
{
    skip_blanks(p);
    char name[128];
    size_t length = word_length(p->at);
    if (!length || length >= sizeof(name))
        return fail(p);
    memcpy(name, p->at, length);
    name[length] = '\0';
    p->at += length;
    struct tp_node *n = new_node(p, TP_FIELD);
    for (size_t i = 0; i < p->format->field_count && !n->field; i++)
        if (str_eq(p->format->fields[i].name, name))
            n->field = &p->format->fields[i];
    return n->field ? n : fail(p);
}

static struct tp_node *parse_number(struct parser *p)
{
    struct tp_node *n = new_node(p, TP_NUMBER);
    char *end;
    n->number = strtoull(p->at, &end, 0);
    if (end == p->at)
        return fail(p);
    while (*end == 'u' || *end == 'U' || *end == 'l' || *end == 'L')
        end++;
    p->at = end;
    return n;
}

static bool constant_of(const struct tp_node *n, uint64_t *ret);

static bool constant_binary(const struct tp_node *n, uint64_t a, uint64_t b, uint64_t *ret)
{
    switch (n->operator) {
    case '|':
        *ret = a | b;
        return true;
    case '&':
        *ret = a & b;
        return true;
    case '+':
        *ret = a + b;
        return true;
    case '-':
        *ret = a - b;
        return true;
    case TP_OPERATOR('<', '<'):
        *ret = b < 64 ? a << b : 0;
        return true;
    default:
        return false;
    }
}

/* Values of pairs are constants, but written as expressions. */
static bool constant_of(const struct tp_node *n, uint64_t *ret)
{
    uint64_t a, b;
    if (!n)
        return false;
    switch (n->kind) {
    case TP_NUMBER:
        *ret = n->number;
        return true;
    case TP_CAST:
        return constant_of(n->left, ret);
    case TP_UNARY:
        if (!constant_of(n->left, &a))
            return false;
        *ret = n->operator== '-' ? -a : n->operator== '~' ? ~a : !a;
        return true;
    case TP_BINARY:
        return constant_of(n->left, &a) && constant_of(n->right, &b) &&
               constant_binary(n, a, b, ret);
    default:
        return false;
    }
}

/* ", { 1, "A" }, { 2, "B" }", up to the closing bracket. */
static void parse_pairs(struct parser *p, struct tp_node *n)
{
    struct tp_pair *pairs = NULL;
    size_t capacity = 0;
    while (!p->is_bad && n->pair_count < PAIR_COUNT_MAX && take(p, ',')) {
        bool braced = take(p, '{');
        struct tp_pair pair = {0};
        if (!constant_of(parse_expression(p), &pair.value))
            p->is_bad = true;
        expect(p, ',');
        pair.text = parse_text(p);
        if (braced)
            expect(p, '}');
        ARRAY_PUSH(pairs, n->pair_count, capacity) = pair;
    }
    n->pairs = arena_alloc(&p->format->arena, (n->pair_count + 1) * sizeof(*pairs));
    if (n->pair_count)
        memcpy(n->pairs, pairs, n->pair_count * sizeof(*pairs));
    free(pairs);
}

static struct tp_node *parse_flags(struct parser *p, bool with_delimiter)
{
    struct tp_node *n = new_node(p, with_delimiter ? TP_FLAGS : TP_SYMBOLIC);
    n->left = parse_expression(p);
    if (with_delimiter) {
        expect(p, ',');
        n->text = parse_text(p);
    }
    parse_pairs(p, n);
    expect(p, ')');
    return n;
}

static struct tp_node *parse_bytes(struct parser *p, enum tp_node_kind kind)
{
    struct tp_node *n = new_node(p, kind);
    n->left = parse_expression(p);
    expect(p, ',');
    n->right = parse_expression(p);
    if (kind == TP_ARRAY) {
        expect(p, ',');
        n->third = parse_expression(p);
    }
    expect(p, ')');
    return n;
}

/* The helpers of include/trace/stages, without the kernel's state. */
static struct tp_node *parse_call(struct parser *p)
{
    static const struct {
        const char *name;
        enum tp_node_kind kind;
    } helpers[] = {
        {"__print_flags", TP_FLAGS},
        {"__print_flags_u64", TP_FLAGS},
        {"__print_symbolic", TP_SYMBOLIC},
        {"__print_symbolic_u64", TP_SYMBOLIC},
        {"__print_hex", TP_HEX},
        {"__print_hex_str", TP_HEX},
        {"__print_array", TP_ARRAY},
        {"__get_str", TP_FIELD},
        {"__get_rel_str", TP_FIELD},
        {"__get_dynamic_array", TP_FIELD},
        {"__get_rel_dynamic_array", TP_FIELD},
        {"__get_bitmask", TP_FIELD},
        {"__get_cpumask", TP_FIELD},
        {"__get_sockaddr", TP_FIELD},
        {"__get_dynamic_array_len", TP_LENGTH},
        {"__get_rel_dynamic_array_len", TP_LENGTH},
    };
    for (size_t i = 0; i < ARRAY_COUNT(helpers); i++) {
        if (!take_word(p, helpers[i].name))
            continue;
        expect(p, '(');
        if (helpers[i].kind == TP_FLAGS || helpers[i].kind == TP_SYMBOLIC)
            return parse_flags(p, helpers[i].kind == TP_FLAGS);
        if (helpers[i].kind == TP_HEX || helpers[i].kind == TP_ARRAY) {
            struct tp_node *bytes = parse_bytes(p, helpers[i].kind);
            bytes->is_spaced = str_eq(helpers[i].name, "__print_hex");
            return bytes;
        }
        struct tp_node *n = parse_field(p);
        if (n)
            n->kind = helpers[i].kind;
        expect(p, ')');
        return n;
    }
    return fail(p);
}

static struct tp_node *parse_sizeof(struct parser *p)
{
    bool unused;
    struct tp_node *n = new_node(p, TP_NUMBER);
    uint32_t size;
    if (!take_cast(p, &size, &unused))
        return fail(p);
    n->number = size;
    return n;
}

static struct tp_node *parse_primary(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '"') {
        struct tp_node *n = new_node(p, TP_TEXT);
        n->text = parse_text(p);
        return n;
    }
    if (*p->at >= '0' && *p->at <= '9')
        return parse_number(p);
    if (take(p, '(')) {
        struct tp_node *n = parse_expression(p);
        expect(p, ')');
        return n;
    }
    if (take_word(p, "REC")) {
        expect(p, '-');
        expect(p, '>');
        return parse_field(p);
    }
    return take_word(p, "sizeof") ? parse_sizeof(p) : parse_call(p);
}

static struct tp_node *parse_postfix(struct parser *p)
{
    struct tp_node *n = parse_primary(p);
    while (!p->is_bad && take(p, '[')) {
        struct tp_node *index = new_node(p, TP_INDEX);
        index->left = n;
        index->right = parse_expression(p);
        expect(p, ']');
        n = index;
    }
    return n;
}

static struct tp_node *parse_unary(struct parser *p)
{
    uint32_t size = 0;
    bool is_signed = false;
    if (p->is_bad || p->depth >= DEPTH_MAX)
        return fail(p);
    p->depth++;
    struct tp_node *n;
    if (take_cast(p, &size, &is_signed)) {
        n = new_node(p, TP_CAST);
        n->size = size;
        n->is_signed = is_signed;
        n->left = parse_unary(p);
    } else if (take(p, '&')) {
        n = parse_unary(p); /* the address of a field: its bytes */
    } else {
        skip_blanks(p);
        char c = *p->at;
        if (c == '-' || c == '~' || c == '!' || c == '*') {
            p->at++;
            n = new_node(p, TP_UNARY);
            n->operator=(unsigned char) c;
            n->left = parse_unary(p);
        } else {
            n = parse_postfix(p);
        }
    }
    p->depth--;
    return n;
}

/* The operator that stands here, and how tightly it binds; 0 for none. */
static unsigned peek_operator(struct parser *p, uint32_t *ret_operator, size_t *ret_length)
{
    static const struct {
        char text[3];
        unsigned binding;
    } operators[] = {
        {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<<", 8}, {">>", 8},
        {"<=", 7}, {">=", 7}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
        {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
    };
    skip_blanks(p);
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++) {
        size_t length = strlen(operators[i].text);
        if (strncmp(p->at, operators[i].text, length) != 0)
            continue;
        *ret_operator =
            TP_OPERATOR((unsigned char)operators[i].text[0], (unsigned char)operators[i].text[1]);
        *ret_length = length;
        return operators[i].binding;
    }
    return 0;
}

static struct tp_node *parse_binary(struct parser *p, unsigned least)
{
    struct tp_node *left = parse_unary(p);
    uint32_t operator= 0;
    size_t length = 0;
    unsigned binding;
    while (!p->is_bad && (binding = peek_operator(p, &operator, & length)) >= least && binding) {
        p->at += length;
        struct tp_node *n = new_node(p, TP_BINARY);
        n->operator= operator;
        n->left = left;
        n->right = parse_binary(p, binding + 1);
        left = n;
    }
    return left;
}

static struct tp_node *parse_expression(struct parser *p)
{
    if (p->is_bad || p->depth >= DEPTH_MAX)
        return fail(p);
    p->depth++;
    struct tp_node *n = parse_binary(p, 1);
    if (!p->is_bad && take(p, '?')) {
        struct tp_node *choice = new_node(p, TP_CHOICE);
        choice->left = n;
        choice->right = parse_expression(p);
        expect(p, ':');
        choice->third = parse_expression(p);
        n = choice;
    }
    p->depth--;
    return n;
}

struct tp_print *tp_print_parse(struct tp_format *f, const char *text)
{
    struct parser p = {.format = f, .at = text};
    struct tp_print *print = arena_alloc(&f->arena, sizeof(*print));
    *print = (struct tp_print){0};
    skip_blanks(&p);
    if (*p.at != '"')
        return NULL;
    print->format = parse_text(&p);
    while (!p.is_bad && take(&p, ',')) {
        if (print->argument_count == ARRAY_COUNT(print->arguments))
            return NULL;
        print->arguments[print->argument_count++] = parse_expression(&p);
    }
    skip_blanks(&p);
    return p.is_bad || *p.at ? NULL : print;
}
