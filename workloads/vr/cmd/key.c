/* SPDX-License-Identifier: MIT */
/* assay-vr key: the secret of a cluster, and keys for clients that may do less. */
#include "base/fd.h"
#include "base/memory.h"
#include "vr/cmd/cmd.h"
#include "vr/net/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct settings {
    const char *config, *role;
};

static const struct option options[] = {
    {'c', "config", OPTION_STRING, offsetof(struct settings, config), "FILE",
     "the cluster's configuration (cluster.conf)", "file"},
    {0, "role", OPTION_STRING, offsetof(struct settings, role), "ROLE",
     "write a key to a new file that allows only this: admin (everything but being a replica), "
     "write, or read",
     "admin write read"},
    {0},
};

static int find_role(const char *name, enum vr_role *ret_role, struct error *err)
{
    for (unsigned i = 0; i < VR_ROLES; i++)
        if (str_eq(name, vr_role_names[i])) {
            *ret_role = (enum vr_role)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--role '%s': use admin, write or read", name);
}

static int write_role(const struct vr_cluster *c, enum vr_role role, const char *path,
                      struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    if (role < c->key.role)
        return error_set(err, -EACCES, "%s is a key of role '%s'; no key for '%s' follows from it",
                         c->key_path, vr_role_names[c->key.role], vr_role_names[role]);
    vr_key_file_put_role(&c->key, role, c->config.cluster, &line);
    CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, -errno, "%s", path);
    int result = fd_write_all(fd, strbuf_text(&line), line.length);
    if (!result && fsync(fd))
        result = -errno;
    return result ? error_errno(err, result, "%s", path) : 0;
}

static int perform(const struct settings *o, const char *path, struct error *err)
{
    struct vr_cluster c;
    enum vr_role role = VR_ROLE_ADMIN;
    bool made = false;
    int result = o->role ? find_role(o->role, &role, err) : 0;
    if (!result)
        result = vr_cluster_read_settings(&c, o->config, err);
    if (result)
        return result;
    if (c.open)
        result = error_set(err, -EINVAL, "%s says 'open yes': this cluster has no key", o->config);
    if (!result && !o->role)
        result = vr_key_file_make(c.key_path, &made, err);
    if (!result)
        result = vr_cluster_read_keys(&c, err);
    if (!result && o->role)
        result = write_role(&c, role, path, err);
    if (!result && o->role)
        printf("%s allows its owner to %s\n", path,
               role == VR_ROLE_ADMIN   ? "read, write, back up and reconfigure"
               : role == VR_ROLE_WRITE ? "read and write"
                                       : "read");
    else if (!result)
        printf("%s %s\n", made ? "created" : "already there:", c.key_path);
    vr_cluster_done(&c);
    return result;
}

static int run(int argc, char **argv)
{
    struct settings o = {.config = "cluster.conf"};
    struct error err = {0};
    int first, code;
    if (!vr_options(&vr_verb_key, &o, argc, argv, &first, &code))
        return code;
    int count = argc - first;
    if (count != (o.role ? 1 : 0)) {
        error_set(&err, -EINVAL,
                  o.role ? "name one new file for the key"
                         : "the configuration says where the cluster's key is; "
                           "a file is named with --role only");
        return vr_fail(&vr_verb_key, &err, 2);
    }
    if (perform(&o, o.role ? argv[first] : NULL, &err))
        return vr_fail(&vr_verb_key, &err, err.code == -EINVAL ? 2 : 1);
    return 0;
}

const struct verb vr_verb_key = {
    "key",
    "create the key of a cluster, or one for clients that may do less",
    "[--config FILE] [--role admin|write|read FILE]",
    "  assay-vr key -c cluster.conf                       before replicas and clients start\n"
    "  assay-vr key -c cluster.conf --role read read.key  for a client that only reads\n",
    options,
    run,
    NULL};
