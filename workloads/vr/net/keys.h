/* SPDX-License-Identifier: MIT */
/*
 * Files with keys.  The cluster's own is any secret of at least 16 bytes; from it the keys of
 * replicas and of clients follow (core/hash.h).  The key of one role is a line of text,
 *
 *   assay-vr-key ROLE CLUSTER 32 hexadecimal digits
 *
 * and lets its owner do what that role may do, and nothing more.  A file that others than its owner
 * may read or write is refused.
 */
#ifndef ASSAY_VR_KEYS_H
#define ASSAY_VR_KEYS_H

#include "base/error.h"
#include "base/strings.h"
#include "vr/core/hash.h"

struct vr_key_file {
    struct vr_keys keys;
    enum vr_role role; /* the highest that it has keys for */
    bool complete;     /* it is the cluster's own: replicas' keys are there */
};

/* Errors: -ENOENT when there is none, -EPERM when its permissions are loose. */
int vr_key_file_read(struct vr_key_file *ret_file, const char *path, uint32_t cluster,
                     struct error *err);
/* Its content; name is for messages. */
int vr_key_file_parse(struct vr_key_file *ret_file, const char *bytes, size_t size,
                      const char *name, uint32_t cluster, struct error *err);
/* Makes the cluster's key where there is none: a file is never replaced.  *ret_made may be NULL. */
int vr_key_file_make(const char *path, bool *ret_made, struct error *err);
/* The line for the owner of one role. */
void vr_key_file_put_role(const struct vr_key_file *file, enum vr_role role, uint32_t cluster,
                          struct strbuf *out);

#endif
