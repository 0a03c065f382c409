/* SPDX-License-Identifier: MIT */
#include "vr/net/keys.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#define LEAST_BYTES 16
#define MADE_BYTES 32
#define MARK "assay-vr-key "

static int check_permissions(const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st))
        return error_errno(err, -errno, "%s", path);
    if (st.st_mode & 077)
        return error_set(err, -EPERM,
                         "%s: others than its owner may read or change this key (mode %03o); make "
                         "it private with 'chmod 600 %s', and change it if it was seen",
                         path, st.st_mode & 0777, path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return error_set(err, -EPERM, "%s belongs to another user", path);
    return 0;
}

static int parse_role(struct vr_key_file *f, const char *text, const char *name, uint32_t cluster,
                      struct error *err)
{
    char role[16];
    uint64_t high, low;
    unsigned of_cluster;
    if (sscanf(text, MARK "%15s %u %16lx%16lx", role, &of_cluster, &high, &low) != 4)
        return error_set(err, -EINVAL, "%s: not a key that 'assay-vr key --role' wrote", name);
    if (of_cluster != cluster)
        return error_set(err, -EINVAL, "%s is a key of cluster %u, not of %u", name, of_cluster,
                         cluster);
    for (unsigned i = 0; i < VR_ROLES; i++) {
        if (!str_eq(role, vr_role_names[i]))
            continue;
        *f = (struct vr_key_file){.role = (enum vr_role)i};
        vr_keys_set_role(&f->keys, f->role, (struct vr_key){{high, low}, 2, 4});
        return 0;
    }
    return error_set(err, -EINVAL, "%s: '%s' is not a role; roles are admin, write and read", name,
                     role);
}

int vr_key_file_parse(struct vr_key_file *ret_file, const char *bytes, size_t size,
                      const char *name, uint32_t cluster, struct error *err)
{
    if (size >= strlen(MARK) && memcmp(bytes, MARK, strlen(MARK)) == 0) {
        CLEANUP(memory_freep) char *text = memory_strndup(bytes, size);
        return parse_role(ret_file, text, name, cluster, err);
    }
    if (size < LEAST_BYTES)
        return error_set(err, -EINVAL, "%s has %zu bytes; a key needs at least %u", name, size,
                         LEAST_BYTES);
    *ret_file = (struct vr_key_file){.keys = vr_keys_secret(vr_key_secret(cluster, bytes, size)),
                                     .complete = true};
    return 0;
}

int vr_key_file_read(struct vr_key_file *ret_file, const char *path, uint32_t cluster,
                     struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    int result = check_permissions(path, err);
    if (!result)
        result = file_read(path, &bytes, err);
    return result
               ? result
               : vr_key_file_parse(ret_file, strbuf_text(&bytes), bytes.length, path, cluster, err);
}

int vr_key_file_make(const char *path, bool *ret_made, struct error *err)
{
    unsigned char secret[MADE_BYTES];
    if (ret_made)
        *ret_made = false;
    if (access(path, F_OK) == 0)
        return 0;
    if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
        return error_errno(err, -errno, "getrandom");
    /* Written whole, then given its name: whoever is first has made it, and nobody sees half. */
    CLEANUP(memory_freep) char *temporary = memory_printf("%s.%d.new", path, (int)getpid());
    CLEANUP(fd_closep) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, -errno, "%s", temporary);
    int result = fd_write_all(fd, secret, sizeof(secret));
    if (!result && fsync(fd))
        result = -errno;
    if (!result && link(temporary, path) == 0) {
        if (ret_made)
            *ret_made = true;
    } else if (!result && errno != EEXIST) {
        result = -errno;
    }
    unlink(temporary);
    return result ? error_errno(err, result, "%s", path) : 0;
}

void vr_key_file_put_role(const struct vr_key_file *file, enum vr_role role, uint32_t cluster,
                          struct strbuf *out)
{
    const struct vr_key *key = &file->keys.clients[role];
    strbuf_printf(out, MARK "%s %u %016lx%016lx\n", vr_role_names[role], cluster,
                  (unsigned long)key->word[0], (unsigned long)key->word[1]);
}
