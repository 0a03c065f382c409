/* SPDX-License-Identifier: MIT */
/* Loads a library at run time and spends its time there: loads LIBRARY ROUNDS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    unsigned long (*work)(unsigned long) =
        (unsigned long (*)(unsigned long))dlsym(library, "plugin_work");
    unsigned long sum = 1;
    for (int i = 0; work && i < atoi(argv[2]); i++)
        sum = work(sum);
    printf("%lu\n", sum);
    dlclose(library);
    return 0;
}
