/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded when they are first needed: see library.h. */
#include "base/library.h"
#include "base/strings.h"
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#if LOAD_LIBRARIES
/* The loader's words begin with the file that it could not open, ours or one that ours needs. */
static int not_there(const struct library *l, const char *words, struct error *err)
{
    if (!words || (str_has_prefix(words, l->soname) && strstr(words, "No such file")))
        return error_set(err, -ENOPKG,
                         "%s needs %s, which is not installed here; on Debian: apt install %s",
                         l->purpose, l->soname, l->package);
    return error_set(err, -ENOPKG, "%s, which %s needs, cannot be loaded: %s", l->soname,
                     l->purpose, words);
}

static int load(struct library *l, struct error *err)
{
    void *handle = dlopen(l->soname, RTLD_NOW);
    if (!handle)
        return not_there(l, dlerror(), err);
    for (size_t i = 0; i < l->count; i++) {
        l->addresses[i] = dlsym(handle, l->names[i]);
        if (l->addresses[i])
            continue;
        dlclose(handle);
        return error_set(err, -ENOPKG, "%s, which %s needs, is too old: it has no %s", l->soname,
                         l->purpose, l->names[i]);
    }
    l->ready = true;
    return 0;
}
#else
/* A static program has what it was linked with and can load nothing. */
static int load(struct library *l, struct error *err)
{
    return error_set(err, -ENOPKG, "%s needs %s, which this static program cannot load", l->purpose,
                     l->soname);
}
#endif

int library_load(struct library *library, struct error *err)
{
    pthread_mutex_lock(&lock);
    int r = library->ready ? 0 : load(library, err);
    pthread_mutex_unlock(&lock);
    return r;
}
