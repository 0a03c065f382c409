/* SPDX-License-Identifier: MIT */
/*
 * The one temporary folder, and the process that removes it.
 *
 * The keeper holds the reading end of a pipe whose writing end every other process of this program
 * inherits.  It reads the end of the file when the last of them is gone, however they went, and
 * then removes the folder: nobody is left who could still put something into it.
 */
#ifndef SCALE_FOLDER_H
#define SCALE_FOLDER_H

#include "base/error.h"

#include <sys/types.h>

struct folder {
    char *path; /* NULL: there is none */
    pid_t keeper;
    int fd;
};

/* A new folder below `parent`. */
int folder_open(struct folder *f, const char *parent, struct error *err);
/* Waits until it is removed; a failure to remove it is an error. */
int folder_close(struct folder *f, struct error *err);

/* Removes a folder with all that is in it. */
int folder_remove(const char *path, struct error *err);

#endif
