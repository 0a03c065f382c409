/* SPDX-License-Identifier: MIT */
/* See describe.h. */
#include "vm/describe.h"
#include "base/fd.h"
#include "base/memory.h"

#include <ctype.h>
#include <string.h>

#define BANNER "Linux version "
enum { BANNER_BYTES_MAX = 1024 };

/* Copies up to one of the ends. */
static void copy_word(char *to, size_t size, const char *from, const char *ends)
{
    size_t length = strcspn(from, ends);
    length = length < size ? length : size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
    to[length] = '\0';
}

/* "gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld …" of "(builder@host) (gcc-12 (Debian …".  */
bool vm_banner_parse(const char *text, struct vm_kernel_facts *ret)
{
    if (strncmp(text, BANNER, sizeof(BANNER) - 1) != 0 ||
        !isdigit((unsigned char)text[sizeof(BANNER) - 1]))
        return false;
    *ret = (struct vm_kernel_facts){0};
    copy_word(ret->release, sizeof(ret->release), text + sizeof(BANNER) - 1, " \n");
    const char *compiler = strstr(text, ") (");
    if (compiler)
        copy_word(ret->compiler, sizeof(ret->compiler), compiler + 3, " ,)\n");
    const char *build = strstr(text, " #");
    const char *debian = build ? strstr(build, " Debian ") : NULL;
    if (debian)
        copy_word(ret->version, sizeof(ret->version), debian + 8, " \n");
    return true;
}

/* The boot protocol of x86: at 0x20e stands where the text is, counted from 0x200. */
static bool read_header(const char *bytes, size_t length, struct vm_kernel_facts *ret)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (length < 0x210 || memcmp(b + 0x202, "HdrS", 4) != 0)
        return false;
    size_t at = 0x200 + ((size_t)b[0x20e] | (size_t)b[0x20f] << 8);
    if (at == 0x200 || at >= length || !memchr(bytes + at, '\0', length - at))
        return false;
    CLEANUP(memory_freep) char *banner = memory_printf(BANNER "%.500s", bytes + at);
    return vm_banner_parse(banner, ret);
}

bool vm_kernel_describe(const struct vm_kernel *k, struct vm_kernel_facts *ret)
{
    CLEANUP(strbuf_done) struct strbuf image = {0};
    struct vm_kernel_facts facts = {0};
    bool found = false;
    if (file_read(k->image, &image, NULL) < 0 || !image.length)
        return false;
    const char *at = image.data, *end = image.data + image.length;
    while (!found && (at = memmem(at, (size_t)(end - at), BANNER, sizeof(BANNER) - 1))) {
        size_t rest = (size_t)(end - at);
        CLEANUP(memory_freep)
        char *text = memory_strndup(at, rest < BANNER_BYTES_MAX ? rest : BANNER_BYTES_MAX);
        found = vm_banner_parse(text, &facts);
        at += sizeof(BANNER) - 1;
    }
    if (!found)
        found = read_header(image.data, image.length, &facts);
    const char *version = strchr(k->name, '_'); /* linux-image-6.1.0-54-arm64_6.1.190-1 */
    if (found && version && !strchr(k->name, '/'))
        copy_word(facts.version, sizeof(facts.version), version + 1, "_");
    if (found)
        *ret = facts;
    return found;
}
