/* SPDX-License-Identifier: MIT */
/*
 * Which files a command waits for.  Records of system calls have the numbers of descriptors, not
 * the names of files.  So a thread looks every few milliseconds which descriptor each thread of the
 * command is at, and what file that is.  It is looked at before and after the name is read: a name
 * is kept only when the thread was in the same call all the time.
 *
 *   struct files *files = files_watch();         before the command starts
 *   …                                            it runs
 *   files_stop(files);
 *   name = files_name(files, pid, tid, fd, from_ns, to_ns);
 *   files_free(files);
 */
#ifndef ASSAY_BILL_FILES_H
#define ASSAY_BILL_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct files;

/* Whether the first argument of the system call is a descriptor that one can wait for. */
bool files_has_descriptor(int64_t call);

/* What this process starts, from now on; NULL when it cannot be watched. */
struct files *files_watch(void);
void files_stop(struct files *f);
void files_free(struct files *f);

/* The file that the thread waited for with this descriptor between the two times: as it was seen
 * then, or else the only one that the descriptor was ever seen to be in this process.  NULL when
 * that is not known.  f may be NULL. */
const char *files_name(const struct files *f, uint32_t pid, uint32_t tid, uint32_t fd,
                       uint64_t from_ns, uint64_t to_ns);

/* For tests: as if it had been seen. */
struct files *files_new(void);
void files_add(struct files *f, uint32_t pid, uint32_t tid, uint32_t fd, uint64_t time_ns,
               const char *name);

#endif
