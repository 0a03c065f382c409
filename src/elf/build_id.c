/* SPDX-License-Identifier: MIT */
/* Build-ids: see build_id.h. */
#include "elf/build_id.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "elf/image.h"

#include <elf.h>

struct build_id build_id_from_bytes(const void *bytes, size_t size)
{
    struct build_id id = {.size = (uint8_t)(size < BUILD_ID_MAX ? size : BUILD_ID_MAX)};
    if (id.size)
        memcpy(id.bytes, bytes, id.size);
    return id;
}

/* perf's files pad an id with zeros to 20 bytes and older ones do not say how long it was. */
bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
    return a->size && b->size && memcmp(a->bytes, b->bytes, BUILD_ID_MAX) == 0;
}

char *build_id_format(const struct build_id *id, char *buffer)
{
    static const char digits[] = "0123456789abcdef";
    char *at = buffer;
    for (size_t i = 0; i < id->size && i < BUILD_ID_MAX; i++) {
        *at++ = digits[id->bytes[i] >> 4];
        *at++ = digits[id->bytes[i] & 15];
    }
    *at = '\0';
    return buffer;
}

bool build_id_in_notes(const void *notes, size_t size, struct build_id *ret_id)
{
    const uint8_t *at = notes;
    Elf64_Nhdr note; /* the same for 32 bits */
    for (size_t left = size; left >= sizeof(note);) {
        memcpy(&note, at, sizeof(note));
        at += sizeof(note);
        left -= sizeof(note);
        /* The last one may lack what would pad it. */
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t text = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > left || note.n_descsz > left - name)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 &&
            memcmp(at, "GNU", 4) == 0) {
            *ret_id = build_id_from_bytes(at + name, note.n_descsz);
            return true;
        }
        if (text > left - name)
            return false;
        at += name + text;
        left -= name + text;
    }
    return false;
}

bool build_id_of_notes(const char *path, struct build_id *ret_id)
{
    CLEANUP(strbuf_done) struct strbuf notes = {0};
    return file_read(path, &notes, NULL) == 0 &&
           build_id_in_notes(strbuf_text(&notes), notes.length, ret_id);
}

bool build_id_of_file(const char *path, struct build_id *ret_id)
{
    struct image image;
    if (image_open(&image, path, NULL) < 0)
        return false;
    *ret_id = image.build_id;
    image_close(&image);
    return ret_id->size > 0;
}
