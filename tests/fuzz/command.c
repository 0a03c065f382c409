/* SPDX-License-Identifier: MIT */
/* Fuzzes the splitting of command lines and the substitution of parameters. */
#include "run/command.h"
#include "base/memory.h"
#include "spec/parameters.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(memory_freep) char *text = memory_strndup((const char *)data, size);
    char **words;
    bool needs_shell;
    struct error err;
    if (command_split(text, &words, &needs_shell, &err) == 0)
        command_free_words(words);
    CLEANUP(parameters_done) struct parameter_list list = {0};
    if (parameters_add_list(&list, "a", text, &err) == 0) {
        char *changed = parameters_substitute(&list, parameters_combinations(&list) - 1, text);
        free(changed);
    }
    return 0;
}
