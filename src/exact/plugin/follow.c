/* SPDX-License-Identifier: MIT */
/* See follow.h. */
#include "follow.h"
#include "exact/resolve.h"
#include "table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPTIONS_MAX = 16, TEXT_BYTES_MAX = 128 << 10 /* of one word, as the kernel has it */ };

static char own_text[65536];
static char *own_words[OPTIONS_MAX];
static int own_count;
static uint64_t guest_shift;
static uint16_t guest_machine;

void follow_set_shift(uint64_t shift)
{
    guest_shift = shift;
}

uint64_t follow_shift(void)
{
    return guest_shift;
}

/* This QEMU's words up to the plugin's own. */
bool follow_open(uint16_t machine)
{
    guest_machine = machine;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, own_text, sizeof(own_text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    for (ssize_t at = 0; at < got && own_count < OPTIONS_MAX;) {
        own_words[own_count++] = own_text + at;
        at += (ssize_t)strlen(own_text + at) + 1;
        if (own_count > 1 && strcmp(own_words[own_count - 2], "-plugin") == 0)
            return true;
    }
    return false;
}

/* Copies from the guest's memory, which need not be there. */
static ssize_t copy(uint64_t address, void *to, size_t size)
{
    struct iovec from = {(void *)(uintptr_t)(address + guest_shift), size}, here = {to, size};
    return process_vm_readv(getpid(), &here, 1, &from, 1, 0);
}

/* A string; NULL when it is not there or too long. */
static char *copy_text(uint64_t address)
{
    size_t length = 0, capacity = 256;
    char *text = malloc(TEXT_BYTES_MAX);
    while (text && length < TEXT_BYTES_MAX) {
        size_t in_page = 4096 - (address + length) % 4096;
        size_t want = in_page < capacity ? in_page : capacity;
        if (want > TEXT_BYTES_MAX - length)
            want = TEXT_BYTES_MAX - length;
        ssize_t got = copy(address + length, text + length, want);
        if (got <= 0)
            break;
        char *end = memchr(text + length, '\0', (size_t)got);
        if (end)
            return realloc(text, (size_t)(end - text) + 1);
        length += (size_t)got;
    }
    free(text);
    return NULL;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

/* A list of strings that ends with NULL; NULL when some part of it is not there. */
static char **copy_texts(uint64_t address)
{
    size_t count = 0, capacity = 64;
    char **texts = calloc(capacity, sizeof(*texts));
    for (; texts; count++) {
        uint64_t item = 0;
        if (address && copy(address + count * 8, &item, 8) != 8)
            break;
        if (!item)
            return texts;
        if (count + 1 == capacity) {
            capacity *= 2;
            texts = realloc(texts, capacity * sizeof(*texts));
        }
        texts[count] = copy_text(item);
        texts[count + 1] = NULL;
        if (!texts[count])
            break;
    }
    free_texts(texts);
    return NULL;
}

/* Variables that would act on QEMU itself: they go to the program only. */
static bool is_for_loader(const char *variable)
{
    return (strncmp(variable, "LD_", 3) == 0 || strncmp(variable, "GLIBC_TUNABLES=", 15) == 0) &&
           !strchr(variable, ','); /* which separates variables in QEMU's option */
}

/* The path of an execveat. */
static char *whole_path(int folder, char *path, int flags)
{
    char *whole = NULL;
    if (folder == AT_FDCWD || path[0] == '/')
        return path;
    if (!*path && !(flags & AT_EMPTY_PATH))
        return path;
    if (asprintf(&whole, "/proc/self/fd/%d%s%s", folder, *path ? "/" : "", path) < 0)
        return path;
    free(path);
    return whole;
}

/* Never returns, unless the kernel refuses. */
static void execute(const struct exact_program *p, char **arguments, char **variables)
{
    size_t argument_count = 0, variable_count = 0, count = 0, kept = 0;
    while (arguments[argument_count])
        argument_count++;
    while (variables[variable_count])
        variable_count++;
    size_t room = (size_t)own_count + 8 + EXACT_WORDS_MAX + argument_count + 2 * variable_count;
    char **words = calloc(room, sizeof(*words)), **rest = calloc(variable_count + 1, 8), path[4200];
    if (!words || !rest)
        return;
    for (int i = 0; i < own_count; i++)
        words[count++] = own_words[i];
    for (size_t i = 0; i < variable_count; i++) {
        if (is_for_loader(variables[i])) {
            words[count++] = "-E";
            words[count++] = variables[i];
        } else {
            rest[kept++] = variables[i];
        }
    }
    snprintf(path, sizeof(path), "%s%s", p->path[0] == '-' ? "./" : "", p->path);
    words[count++] = "-0";
    words[count++] = p->word_count ? p->words[0] : argument_count ? arguments[0] : path;
    words[count++] = path;
    for (int i = 1; i < p->word_count; i++)
        words[count++] = p->words[i];
    for (size_t i = 1; i < argument_count; i++)
        words[count++] = arguments[i];
    execve("/proc/self/exe", words, rest);
    free(words);
    free(rest);
}

void follow_exec(int folder, uint64_t path, uint64_t arguments, uint64_t environment, int flags)
{
    struct exact_program program = {0};
    char *name = copy_text(path);
    char **words = name ? copy_texts(arguments) : NULL;
    char **variables = words ? copy_texts(environment) : NULL;
    if (variables) {
        name = whole_path(folder, name, flags);
        enum exact_kind kind = exact_resolve(&program, name, guest_machine);
        if (kind == EXACT_FOREIGN)
            table_note("foreign", name);
        if (kind == EXACT_RUNS && program.is_set_id)
            table_note("set-id", name);
        if (kind == EXACT_RUNS)
            execute(&program, words, variables);
    }
    exact_program_done(&program);
    free(name);
    free_texts(words);
    free_texts(variables);
}
