/* SPDX-License-Identifier: MIT */
/* Names of symbols: see names.h. */
#include "symbols/tables/names.h"

#include "base/memory.h"
#include "config.h"

#include <setjmp.h>
#if HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#endif

static const char *const variant_words[] = {
    "isra", "constprop", "part", "cold", "lto_priv", "llvm", "localalias", "__uniq",
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Where ".word", ".word.N" or ".word.0123abcd" begins that ends at length; length when none. */
static size_t fold_one(const char *name, size_t length)
{
    size_t end = length;
    size_t digits = end;
    while (digits > 0 && is_digit(name[digits - 1]))
        digits--;
    if (digits < end && digits > 0 && name[digits - 1] == '.')
        end = digits - 1;
    for (size_t i = 0; i < ARRAY_COUNT(variant_words); i++) {
        size_t size = strlen(variant_words[i]);
        if (end > size + 1 && name[end - size - 1] == '.' &&
            memcmp(name + end - size, variant_words[i], size) == 0)
            return end - size - 1;
    }
    return length;
}

/* The same for what demanglers write: " [clone .word.N]". */
static size_t fold_clone(const char *name, size_t length)
{
    static const char open[] = " [clone ";
    size_t open_size = sizeof(open) - 1;
    if (length < open_size + 2 || name[length - 1] != ']')
        return length;
    for (size_t at = length - 1; at >= open_size; at--) {
        if (name[at - 1] != ' ' || memcmp(name + at - open_size, open, open_size) != 0)
            continue;
        const char *word = name + at;
        size_t size = length - 1 - at;
        if (size == 0)
            return length;
        /* The row inside must vanish whole: fold_one wants something before it. */
        while (size > 0) {
            size_t rest = fold_one(word - 1, size + 1);
            if (rest == size + 1)
                return length;
            size = rest > 0 ? rest - 1 : 0;
        }
        return at - open_size ? at - open_size : length;
    }
    return length;
}

size_t name_fold(const char *name, size_t length)
{
    for (;;) {
        size_t next = fold_clone(name, length);
        if (next == length)
            next = fold_one(name, length);
        if (next == length || next == 0)
            return length;
        length = next;
    }
}

#if HAVE_LIBIBERTY

/* A short mangled name can stand for gigabytes (each substitution doubles it), so the printing is
 * left from its callback.  The printer keeps all it has on the stack. */
struct demangling {
    struct strbuf *out;
    size_t before; /* its length at the start */
    jmp_buf too_long;
};

static void take_part(const char *part, size_t length, void *opaque)
{
    struct demangling *d = opaque;
    if (d->out->length - d->before + length > SYMBOLS_NAME_MAX)
        longjmp(d->too_long, 1);
    strbuf_append(d->out, part, length);
}

static bool demangle_base(const char *base, enum demangle_style style, struct strbuf *out)
{
    struct demangling d = {.out = out, .before = out->length};
    int options = style == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;
    bool done = false;
    if (setjmp(d.too_long) == 0) {
        if (rust_demangle_callback(base, DMGL_NO_OPTS, take_part, &d))
            return true;
        out->length = d.before;
        done = cplus_demangle_v3_callback(base, options, take_part, &d) && out->length > d.before;
    } else {
        done = false;
    }
    if (!done && out->data) {
        out->length = d.before;
        out->data[out->length] = '\0';
    }
    return done;
}

/* How much of a mangled name is the name itself: what follows is kept as text. */
static size_t mangled_length(const char *name, size_t length)
{
    const char *at = memchr(name, '@', length);
    if (at && at != name)
        length = (size_t)(at - name);
    return name_fold(name, length);
}

bool name_demangle(const char *name, enum demangle_style style, struct strbuf *out)
{
    if (style == DEMANGLE_NONE || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
        return false;
    size_t length = strnlen(name, SYMBOLS_NAME_MAX + 1);
    if (length > SYMBOLS_NAME_MAX)
        return false;
    size_t base_length = mangled_length(name, length);
    CLEANUP(memory_freep) char *base = memory_strndup(name, base_length);
    if (!demangle_base(base, style, out))
        return false;
    const char *rest = name + base_length;
    size_t variant = strcspn(rest, "@");
    if (variant && !str_has_prefix(rest, ".llvm.")) {
        strbuf_puts(out, " [clone ");
        strbuf_append(out, rest, variant);
        strbuf_putc(out, ']');
    }
    strbuf_puts(out, rest + variant);
    return true;
}

#else

bool name_demangle(const char *name, enum demangle_style style, struct strbuf *out)
{
    (void)name, (void)style, (void)out;
    return false;
}

#endif
