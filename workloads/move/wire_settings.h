/* SPDX-License-Identifier: MIT */
/* What a receiver on another host must know of the sender's settings. */
#ifndef ASSAY_MOVE_WIRE_SETTINGS_H
#define ASSAY_MOVE_WIRE_SETTINGS_H

#include "settings.h"

/* Room for the names that the settings then point to. */
struct wire_names {
    char send[32], receive[32], cc[16];
};

int wire_settings_send(int fd, const struct settings *s, struct error *err);
/* Everything is checked as if it came from the command line. */
int wire_settings_receive(int fd, struct settings *ret, struct wire_names *names,
                          struct error *err);

#endif
