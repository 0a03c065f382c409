/* SPDX-License-Identifier: MIT */
/*
 * `{factor}` and its like in a spec's texts:
 *
 *   {FACTOR}  {FACTOR.KEY}   the cell's value of a factor, or one of that value's attributes
 *   {build}   {build.NAME}   the folder that the build made
 *   {cell} {round} {seed}    the cell's number, the round's, and a seed that each run gets
 *   {host.ROLE} {hosts.ROLE} the address of a role's host, or of all with that role
 *   {on.ROLE}                as a word: what runs a command there; several words, or none
 *   {{ and }}                the braces themselves
 *
 * `${…}` and braces around what is no name are left as they are.
 */
#ifndef ASSAY_SPEC_HOLES_H
#define ASSAY_SPEC_HOLES_H

#include "base/strings.h"
#include "spec/spec.h"

/* What the holes are filled with; an unset part leaves its holes empty. */
struct hole_values {
    const struct spec *spec;
    const struct spec_level *const *levels; /* one per factor; NULL for none */
    const char *const *builds;              /* folders, one per build; NULL while building */
    size_t own_build;                       /* while building: {build} is build_folder */
    const char *build_folder;
    uint64_t cell, round, seed;
};

/* Every hole of every text of the spec is known; -EINVAL with line and nearest names. */
int holes_check(const struct spec *s, struct error *err);

void holes_fill(struct strbuf *out, const char *text, const struct hole_values *values);

/* Adds to `used` (one per factor) the factors that a text's holes need. */
void holes_factors(const struct spec *s, const char *text, bool *used);

/* The words of a command, filled; ends with NULL.  The caller frees with command_free_words. */
int holes_command(const struct spec_command *command, const struct hole_values *values,
                  char ***ret_words, struct error *err);

#endif
