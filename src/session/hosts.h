/* SPDX-License-Identifier: MIT */
/*
 * Where the parts of a distributed experiment run: `hosts:` in a spec names roles, and each role is
 * placed on a host.
 *
 *   hosts: {sender: 1, receiver: 1}        or, all of one: [sender, receiver]
 *   {host.receiver}                        its address, to connect to
 *   {hosts.replica}                        addresses of replica1, replica2, …, with commas
 *   {on.receiver}                          as a word of its own: the words that run a command there
 *
 * The first role is on the host where assay itself runs, so that what is measured there is measured
 * directly: its {on.…} is no word at all.  Without any placement all roles are on this host.  In a
 * task of a cluster they are on the nodes of its allocation, in their order, and srun starts what
 * runs there; else --hosts says where they are, and ssh (or what --launcher says) starts it.
 */
#ifndef ASSAY_SESSION_HOSTS_H
#define ASSAY_SESSION_HOSTS_H

#include "base/error.h"
#include "spec/spec.h"

/* `list`: "m1,m2" in the order of the roles, or "receiver=m2,sender=m1"; a host may be NAME@ADDRESS
 * when it is reached under another name than it is started by; "@FILE": one on each line.  NULL:
 * the task's allocation, or this host alone.  launcher: words with {host}; NULL for ssh. */
int hosts_place(struct spec *s, const char *list, const char *launcher, struct error *err);

#endif
