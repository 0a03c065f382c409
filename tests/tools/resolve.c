/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses, printed as addr2line -a -f -i prints them, so that the two can be compared.
 *
 *   resolve [options] FILE        addresses in hexadecimal on standard input
 *
 * -n names only; -l no inlined functions; -C full demangled names (else linkage names);
 * -p "name start size module" instead; -d FOLDERS of debug files; -b BUILD-ID as recorded;
 * -r ROOT in which files are looked for; -i PID that mapped the file; -k PATH of a kallsyms.
 * FILE "[kernel]" is the kernel.  Diagnostics go to standard error.
 */
#include "base/memory.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <unistd.h>

static void print_request(const struct symbols_request *r, uint64_t address, bool demangled)
{
    printf("0x%016llx\n", (unsigned long long)address);
    for (uint32_t i = 0; i < r->frame_count; i++) {
        const struct symbols_frame *f = &r->frames[i];
        const char *name = !f->function ? "??"
                           : demangled  ? f->function->name
                                        : f->function->linkage_name;
        printf("%s\n%s:%u\n", name, f->file ? f->file : "??", f->line);
    }
}

static void print_place(const struct symbols_request *r, struct module *module)
{
    const struct function *f = r->frames[r->frame_count - 1].function;
    if (f)
        printf("%s %llx %llx %s\n", f->linkage_name,
               (unsigned long long)module_elf_address(module, f->start),
               (unsigned long long)f->size, module_name(f->module));
    else
        printf("??\n");
}

struct arguments {
    enum symbols_want want;
    bool demangled, places;
    struct symbols_options options;
    struct module_key key;
};

static struct build_id parse_build_id(const char *hex)
{
    uint8_t bytes[BUILD_ID_MAX] = {0};
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size && i < BUILD_ID_MAX; i++) {
        unsigned value = 0;
        sscanf(hex + 2 * i, "%2x", &value);
        bytes[i] = (uint8_t)value;
    }
    return build_id_from_bytes(bytes, size);
}

static bool parse_arguments(int argc, char **argv, struct arguments *a)
{
    *a = (struct arguments){.want = SYMBOLS_INLINES, .options = {.demangle = DEMANGLE_FULL}};
    for (int option; (option = getopt(argc, argv, "nlCpd:b:r:i:k:")) != -1;) {
        switch (option) {
        case 'n':
            a->want = SYMBOLS_NAMES;
            break;
        case 'l':
            a->want = SYMBOLS_LINES;
            break;
        case 'C':
            a->demangled = true;
            break;
        case 'p':
            a->places = true;
            break;
        case 'd':
            a->options.debug_folders = optarg;
            break;
        case 'b':
            a->key.build_id = parse_build_id(optarg);
            break;
        case 'r':
            a->options.file_root = optarg;
            break;
        case 'i':
            a->key.pid = atoi(optarg);
            break;
        case 'k':
            a->options.kallsyms_path = optarg;
            break;
        default:
            return false;
        }
    }
    a->key.path = argv[optind];
    return optind + 1 == argc;
}

int main(int argc, char **argv)
{
    struct arguments a;
    if (!parse_arguments(argc, argv, &a))
        return 2;
    struct symbols *symbols = symbols_new(&a.options);
    struct module *module =
        str_eq(a.key.path, "[kernel]") ? symbols_kernel(symbols) : symbols_module(symbols, &a.key);
    struct symbols_request *requests = NULL;
    uint64_t *addresses = NULL;
    size_t count = 0, capacity = 0, address_capacity = 0;
    for (unsigned long long address; scanf("%llx", &address) == 1;) {
        addresses = memory_grow(addresses, &address_capacity, count + 1, sizeof(*addresses));
        addresses[count] = address;
        ARRAY_PUSH(requests, count, capacity) =
            (struct symbols_request){.location = {module, module_address_of_elf(module, address)}};
    }
    symbols_resolve(symbols, requests, count, a.want);
    for (size_t i = 0; i < count; i++) {
        if (a.places)
            print_place(&requests[i], module);
        else
            print_request(&requests[i], addresses[i], a.demangled);
    }
    size_t diagnostics;
    const struct diagnostic *d = symbols_diagnostics(symbols, &diagnostics);
    for (size_t i = 0; i < diagnostics; i++)
        fprintf(stderr, "%d: %s\n", (int)d[i].kind, d[i].text);
    free(requests);
    free(addresses);
    symbols_free(symbols);
    return 0;
}
