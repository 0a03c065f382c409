/* SPDX-License-Identifier: MIT */
/*
 * Lambdas and closures have numbers for names: {lambda(long)#2}, $_1, {closure#0}.  One that is
 * added to the source moves the numbers of those behind it, so that equal numbers of two builds are
 * not the same one.  Here their code says which is which: functions that differ in the number only
 * and have the same instructions in both builds are one, and those between them keep their order.
 * Where numbers moved and nothing tells which is which, they are one function with the number "?".
 */
#ifndef ASSAY_PROFILE_NUMBERED_H
#define ASSAY_PROFILE_NUMBERED_H

#include "profile/match.h"

struct numbered;

/* NULL when no number moved. */
struct numbered *numbered_find(struct match *m, const struct profile *const *const profiles[2]);
void numbered_free(struct numbered *n);

/* The function's name with the numbers of side A.  False where there are none, or none moved. */
bool numbered_name(const struct numbered *n, unsigned side, const char *name, struct strbuf *out);

/* For tests: a function of a side with what its code is like, then the conclusion. */
struct numbered *numbered_new(void);
void numbered_add(struct numbered *n, unsigned side, const char *name, uint64_t code);
void numbered_conclude(struct numbered *n);

#endif
