/* SPDX-License-Identifier: MIT */
/* See resolve.h. */
#include "exact/resolve.h"
#include "elf/machine.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256, NESTED_MAX = 4 }; /* as the kernel has them */

/* Puts words before those that are there; the first one there, the script's argv[0], is given up
 * for its path. */
static bool put_before(struct exact_program *p, char *interpreter, char *argument,
                       const char *script)
{
    int added = argument ? 2 : 1;
    int kept = p->word_count ? p->word_count - 1 : 0;
    if (kept + added + 1 > EXACT_WORDS_MAX)
        return false;
    char *own = strdup(script);
    if (p->word_count)
        free(p->words[0]);
    memmove(p->words + added + 1, p->words + 1, (size_t)kept * sizeof(*p->words));
    p->words[0] = strdup(interpreter);
    if (argument)
        p->words[1] = strdup(argument);
    p->words[added] = own;
    p->word_count = kept + added + 1;
    p->words[p->word_count] = NULL;
    return true;
}

/* The first line of a script: #! INTERPRETER [ARGUMENT]. */
static bool take_line(struct exact_program *p, char *line, const char *script)
{
    line[strcspn(line, "\n")] = '\0';
    size_t end = strlen(line);
    while (end && (line[end - 1] == ' ' || line[end - 1] == '\t'))
        line[--end] = '\0';
    char *interpreter = line + strspn(line, " \t");
    char *argument = interpreter + strcspn(interpreter, " \t");
    if (*argument) {
        *argument++ = '\0';
        argument += strspn(argument, " \t");
    }
    if (!*interpreter || strlen(interpreter) >= sizeof(p->path))
        return false;
    if (!put_before(p, interpreter, *argument ? argument : NULL, script))
        return false;
    strcpy(p->path, interpreter);
    return true;
}

static ssize_t read_head(struct exact_program *p, const char *path, char *head, size_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, head, size - 1) : -1;
    if (got >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
        p->is_set_id = (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
                       (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid());
    else
        got = -1;
    if (fd >= 0)
        close(fd);
    return got;
}

enum exact_kind exact_resolve(struct exact_program *p, const char *path, uint16_t machine)
{
    char head[LINE_MAX_BYTES + 1], script[PATH_MAX];
    *p = (struct exact_program){0};
    if (strlen(path) >= sizeof(p->path))
        return EXACT_FAILS;
    strcpy(p->path, path);
    for (int depth = 0; depth <= NESTED_MAX; depth++) {
        ssize_t got = read_head(p, p->path, head, sizeof(head));
        if (got < 0)
            return EXACT_FAILS;
        head[got] = '\0';
        if (image_is_for(head, (size_t)got, machine))
            return EXACT_RUNS;
        p->is_x86 = image_is_for(head, (size_t)got, EM_X86_64);
        p->is_arm64 = image_is_for(head, (size_t)got, EM_AARCH64);
        if (got < 2 || head[0] != '#' || head[1] != '!')
            return EXACT_FOREIGN;
        strcpy(script, p->path);
        if (!take_line(p, head + 2, script))
            return EXACT_FAILS;
    }
    return EXACT_FAILS;
}

void exact_program_done(struct exact_program *p)
{
    for (int i = 0; i < p->word_count; i++)
        free(p->words[i]);
    p->word_count = 0;
}
