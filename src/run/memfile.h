/* SPDX-License-Identifier: MIT */
/*
 * A file in memory that a command writes to.  A pipe would need a reader that competes for the CPU
 * with what is measured; this costs the command a write and assay nothing until the end.  It is
 * one open file for both sides, so the next run starts again at its beginning.
 */
#ifndef ASSAY_RUN_MEMFILE_H
#define ASSAY_RUN_MEMFILE_H

#include "base/error.h"
#include "base/strings.h"

/* A descriptor of 10 or more, so that it is in nobody's way; close it as any other. */
int memfile_open(const char *name, struct error *err);
/* Empty again. */
void memfile_reset(int fd);
/* Gives memory back when the file has grown far over what is kept of it: its first bytes up to
 * `head`, and its last `tail`.  Returns the number of bytes that were written so far. */
size_t memfile_trim(int fd, size_t head_bytes, size_t tail_bytes);
/* Appends the first bytes, at most `most`; true when there is more. */
bool memfile_read_head(int fd, size_t most, struct strbuf *out);
/* Appends the last bytes, at most `most`; true when there was more before them. */
bool memfile_read_tail(int fd, size_t most, struct strbuf *out);

#endif
