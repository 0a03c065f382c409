/* SPDX-License-Identifier: MIT */
/* `assay top` on a terminal, with ncurses. */
#ifndef ASSAY_REPORT_LIVE_TOP_SCREEN_H
#define ASSAY_REPORT_LIVE_TOP_SCREEN_H

#include "top/top.h"

struct top_screen_spec {
    struct view_options options; /* to begin with */
    bool colour, utf8;
    const char *save_as;       /* offered when the user saves */
    char *const *command_line; /* for the saved file */
};

/* Until the user quits or a signal comes, which *ret_signal then has (else 0), or until all that
 * was looked at has ended (*ret_ended).  Fails where there is no ncurses or an unknown terminal. */
int top_screen_run(struct top *top, const struct top_screen_spec *spec, int *ret_signal,
                   bool *ret_ended, struct error *err);

#endif
