/* SPDX-License-Identifier: MIT */
/* What the readers of a spec's parts share.  Internal to the spec's files. */
#ifndef ASSAY_SPEC_SPEC_READ_H
#define ASSAY_SPEC_SPEC_READ_H

#include "spec/spec.h"
#include "spec/tree.h"

struct spec_reader {
    struct spec *s;
    struct error *err;
    bool in_quick; /* reading the quick section */
};

typedef int spec_read_fn(struct spec_reader *reader, const struct tree *value);

struct spec_key {
    const char *name;
    spec_read_fn *read;
    bool in_quick; /* the quick section may have it too */
};

/* "FILE:LINE: …"; returns -EINVAL. */
int spec_fail(struct spec_reader *reader, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a key that is none of the known ones, with the nearest of them. */
int spec_fail_unknown(struct spec_reader *reader, const struct tree *key, const char *what,
                      const char *const *known, size_t known_count);

int spec_want(struct spec_reader *reader, const struct tree *value, enum tree_kind kind,
              const char *key);
int spec_want_text(struct spec_reader *reader, const struct tree *value, const char *key,
                   const char **ret);
int spec_want_bool(struct spec_reader *reader, const struct tree *value, const char *key,
                   bool *ret);
int spec_want_u64(struct spec_reader *reader, const struct tree *value, const char *key,
                  uint64_t min, uint64_t max, uint64_t *ret);
int spec_want_duration(struct spec_reader *reader, const struct tree *value, const char *key,
                       uint64_t *ret_ns);
int spec_want_pairs(struct spec_reader *reader, const struct tree *value, const char *key,
                    struct text_pairs *ret);
/* A text, or a list of texts. */
int spec_want_texts(struct spec_reader *reader, const struct tree *value, const char *key,
                    const char ***ret_texts, size_t *ret_count);
int spec_want_command(struct spec_reader *reader, const struct tree *value, const char *key,
                      struct spec_command *ret);
/* Memory of the spec's arena, zeroed. */
void *spec_alloc(struct spec_reader *reader, size_t count, size_t size_bytes);
/* Letters, digits, _ and -, beginning with a letter: what may stand in a hole. */
bool spec_is_name(const char *text, size_t length);

spec_read_fn spec_read_factors, spec_read_exclude, spec_read_include, spec_read_build,
    spec_read_setup, spec_read_teardown, spec_read_metrics, spec_read_vm, spec_read_hosts;

/* Finds the factor of kernels, and checks what goes with it. */
int spec_check_vm(struct spec_reader *reader);

#endif
