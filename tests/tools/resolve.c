/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses, printed as addr2line -a -f -i prints them, so that the two can be compared.
 *
 *   resolve [-n] [-l] [-C] FILE        addresses in hexadecimal on standard input
 *
 * -n names only, -l no inlined functions, -C full demangled names (else linkage names).
 * FILE "[kernel]" is the kernel.  -p prints "name start size" instead.
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

int main(int argc, char **argv)
{
    enum symbols_want want = SYMBOLS_INLINES;
    bool demangled = false, places = false;
    for (int option; (option = getopt(argc, argv, "nlCp")) != -1;) {
        want = option == 'n' ? SYMBOLS_NAMES : option == 'l' ? SYMBOLS_LINES : want;
        demangled = demangled || option == 'C';
        places = places || option == 'p';
    }
    if (optind + 1 != argc)
        return 2;
    struct symbols_options options = {.demangle = DEMANGLE_FULL, .no_debuginfod = false};
    struct symbols *symbols = symbols_new(&options);
    const char *path = argv[optind];
    struct module *module = str_eq(path, "[kernel]")
                                ? symbols_kernel(symbols)
                                : symbols_module(symbols, &(struct module_key){.path = path});
    struct symbols_request *requests = NULL;
    uint64_t *addresses = NULL;
    size_t count = 0, capacity = 0, address_capacity = 0;
    for (unsigned long long address; scanf("%llx", &address) == 1;) {
        addresses = memory_grow(addresses, &address_capacity, count + 1, sizeof(*addresses));
        addresses[count] = address;
        ARRAY_PUSH(requests, count, capacity) =
            (struct symbols_request){.location = {module, module_address_of_elf(module, address)}};
    }
    symbols_resolve(symbols, requests, count, want);
    for (size_t i = 0; i < count; i++) {
        if (places)
            print_place(&requests[i], module);
        else
            print_request(&requests[i], addresses[i], demangled);
    }
    size_t diagnostics;
    const struct diagnostic *d = symbols_diagnostics(symbols, &diagnostics);
    for (size_t i = 0; i < diagnostics; i++)
        fprintf(stderr, "%s\n", d[i].text);
    free(requests);
    free(addresses);
    symbols_free(symbols);
    return 0;
}
