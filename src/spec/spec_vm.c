/* SPDX-License-Identifier: MIT */
/* A factor `kernel`, and the section that describes the machines which it means. */
#include "base/memory.h"
#include "base/strings.h"
#include "spec/spec_read.h"

#include <errno.h>

static int want_size(struct spec_reader *reader, const struct tree *value, uint64_t *ret_bytes)
{
    const char *text;
    int r = spec_want_text(reader, value, "vm.memory", &text);
    struct error err;
    if (r == 0 && (parse_size_bytes(text, ret_bytes, &err) < 0 || *ret_bytes < (64 << 20)))
        r = spec_fail(reader, value->line, "vm.memory: '%s' is not a size of at least 64M", text);
    return r;
}

static int want_arch(struct spec_reader *reader, const struct tree *value, const char **ret)
{
    int r = spec_want_text(reader, value, "vm.arch", ret);
    if (r == 0 && !vm_arch_find(*ret))
        r = spec_fail(reader, value->line, "vm.arch: '%s' is not aarch64 or x86_64", *ret);
    return r;
}

static int want_accel(struct spec_reader *reader, const struct tree *value, enum vm_accel *ret)
{
    const char *text;
    int r = spec_want_text(reader, value, "vm.accel", &text);
    if (r < 0)
        return r;
    if (!str_eq(text, "kvm") && !str_eq(text, "tcg"))
        return spec_fail(reader, value->line, "vm.accel: '%s' is not kvm or tcg", text);
    *ret = str_eq(text, "kvm") ? VM_ACCEL_KVM : VM_ACCEL_TCG;
    return 0;
}

static int want_startup(struct spec_reader *reader, const struct tree *value, bool *ret_keeps)
{
    const char *text;
    int r = spec_want_text(reader, value, "vm.startup", &text);
    if (r < 0)
        return r;
    if (!str_eq(text, "subtract") && !str_eq(text, "keep"))
        return spec_fail(reader, value->line, "vm.startup: '%s' is not subtract or keep", text);
    *ret_keeps = str_eq(text, "keep");
    return 0;
}

static int read_key(struct spec_reader *reader, const struct tree *key, const struct tree *value)
{
    static const char *const known[] = {"arch",         "accel",  "memory", "cpus",
                                        "files",        "guest",  "append", "rounds_per_boot",
                                        "boot_timeout", "startup"};
    struct spec_vm *vm = &reader->s->vm;
    if (str_eq(key->text, "arch"))
        return want_arch(reader, value, &vm->arch);
    if (str_eq(key->text, "accel"))
        return want_accel(reader, value, &vm->accel);
    if (str_eq(key->text, "memory"))
        return want_size(reader, value, &vm->memory_bytes);
    if (str_eq(key->text, "cpus"))
        return spec_want_u64(reader, value, "vm.cpus", 1, 64, &vm->cpus);
    if (str_eq(key->text, "files"))
        return spec_want_texts(reader, value, "vm.files", &vm->files, &vm->file_count);
    if (str_eq(key->text, "guest"))
        return spec_want_text(reader, value, "vm.guest", &vm->guest);
    if (str_eq(key->text, "append"))
        return spec_want_text(reader, value, "vm.append", &vm->append);
    if (str_eq(key->text, "rounds_per_boot"))
        return spec_want_u64(reader, value, "vm.rounds_per_boot", 1, 1000000, &vm->rounds_per_boot);
    if (str_eq(key->text, "startup"))
        return want_startup(reader, value, &vm->keeps_startup);
    if (str_eq(key->text, "boot_timeout"))
        return spec_want_duration(reader, value, "vm.boot_timeout", &vm->boot_timeout_ns);
    return spec_fail_unknown(reader, key, "key of vm", known, ARRAY_COUNT(known));
}

int spec_read_vm(struct spec_reader *reader, const struct tree *value)
{
    int r = spec_want(reader, value, TREE_MAP, "vm");
    reader->s->vm.given = true;
    reader->s->vm.line = value->line;
    for (size_t i = 0; r == 0 && i < value->count; i++)
        r = read_key(reader, &value->keys[i], &value->items[i]);
    return r;
}

int spec_check_vm(struct spec_reader *reader)
{
    struct spec *s = reader->s;
    s->kernel_factor = SPEC_NO_FACTOR;
    for (size_t f = 0; f < s->factor_count; f++)
        if (str_eq(s->factors[f].name, "kernel"))
            s->kernel_factor = f;
    if (s->vm.given && s->kernel_factor == SPEC_NO_FACTOR)
        return spec_fail(reader, s->vm.line,
                         "vm: there is no factor 'kernel', so nothing would be emulated");
    return 0;
}
