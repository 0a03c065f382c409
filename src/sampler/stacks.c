/* SPDX-License-Identifier: MIT */
/* Frame pointers or copies of the stack: see stacks.h. */
#include "sampler/stacks.h"
#include "base/fd.h"
#include "base/memory.h"
#include "elf/image.h"
#include "machine/frames.h"
#include "machine/parse.h"

#include <limits.h>
#include <stdio.h>

#define RING_LASTS_PARTS 5 /* of a second */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the code of a file keeps frame pointers; says why not, or adds its name to `kept`. */
static bool look_at_file(const char *path, bool is_libc, bool *ret_is_static, struct strbuf *kept,
                         struct strbuf *why)
{
    struct image image;
    struct frames frames = {0};
    if (image_open(&image, path, NULL) < 0) {
        strbuf_printf(why, "%s is not an ELF program that can be read", path);
        return false;
    }
    *ret_is_static = !image.interpreter.size;
    bool known = frames_count(&image, &frames);
    image_close(&image);
    if (!known) {
        strbuf_printf(why, "%s has no symbols that would show whether it keeps frame pointers",
                      last_part(path));
        return false;
    }
    if (!frames_suffice(&frames)) {
        strbuf_printf(why, "%s keeps no frame pointers (%.0f %% of its functions set one up)",
                      last_part(path), 100.0 * (double)frames.framed / (double)frames.functions);
        return false;
    }
    if (!is_libc && !frames_are_everywhere(&frames)) {
        strbuf_printf(why,
                      "%.0f %% of the functions of %s set up no frame, as compilers do where "
                      "a function calls no other, so its callers would be missing; compile with "
                      "-mno-omit-leaf-frame-pointer to avoid it",
                      100.0 * (double)(frames.functions - frames.framed) / (double)frames.functions,
                      last_part(path));
        return false;
    }
    strbuf_printf(kept, "%s%s", kept->length ? ", " : "", last_part(path));
    return true;
}

static bool look_at_libc(struct strbuf *kept, struct strbuf *why)
{
    char path[PATH_MAX] = "";
    bool unused;
    if (!frames_find_libc(path, sizeof(path))) {
        strbuf_puts(why, "no C library was found to look at");
        return false;
    }
    return look_at_file(path, true, &unused, kept, why);
}

/* All code that a process has mapped from files. */
static bool look_at_process(pid_t pid, struct strbuf *kept, struct strbuf *why)
{
    char name[64];
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    CLEANUP(strbuf_done) struct strbuf maps = {0};
    if (file_read(name, &maps, NULL) < 0) {
        strbuf_printf(why, "the libraries of process %d cannot be seen", (int)pid);
        return false;
    }
    for (const char *line = strbuf_text(&maps); line && *line; line = proc_next_line(line)) {
        struct proc_mapping map;
        bool unused;
        if (!proc_maps_line(line, &map) || !map.is_executable || map.path[0] != '/')
            continue;
        CLEANUP(memory_freep)
        char *path = memory_printf("/proc/%d/root%.*s", (int)pid, (int)map.path_length, map.path);
        const char *file = last_part(path);
        if (!look_at_file(path, str_has_prefix(file, "lib") || str_has_prefix(file, "ld-"), &unused,
                          kept, why))
            return false;
    }
    return true;
}

/* Whether frame pointers do for what is recorded; appends the reason. */
static bool have_frames(const struct recording_spec *spec, struct strbuf *why)
{
    CLEANUP(strbuf_done) struct strbuf kept = {0};
    CLEANUP(memory_freep) char *program = NULL;
    bool is_static = false;
    for (size_t i = 0; i < spec->pid_count; i++)
        if (!look_at_process(spec->pids[i], &kept, why))
            return false;
    if (!spec->pid_count && spec->command && !spec->whole_cpus &&
        process_find(spec->command->argv[0], &program, NULL) == 0 &&
        !look_at_file(program, false, &is_static, &kept, why))
        return false;
    if (!spec->pid_count && !is_static && !look_at_libc(&kept, why))
        return false;
    strbuf_printf(why, "%s set them up", strbuf_text(&kept));
    return true;
}

void stacks_choose(const struct recording_spec *spec, struct sampling_spec *s, struct strbuf *notes)
{
    CLEANUP(strbuf_done) struct strbuf why = {0};
    bool has_frames = have_frames(spec, &why), can_copy = sampling_can_copy_stacks();
    s->stacks = has_frames || !can_copy ? SAMPLING_FRAME_POINTERS : SAMPLING_DWARF;
    if (has_frames)
        strbuf_printf(notes, "call graphs by frame pointers: %s\n", strbuf_text(&why));
    else if (can_copy)
        strbuf_printf(notes, "call graphs by copies of the stack: %s\n", strbuf_text(&why));
    else
        strbuf_printf(notes,
                      "call graphs by frame pointers, many of them broken: %s, and stacks cannot "
                      "be copied on this architecture\n",
                      strbuf_text(&why));
}

/* How many samples a second a CPU may give; of events that happen one by one nobody knows. */
static uint64_t expected_rate_hz(const struct recording_spec *spec)
{
    const uint64_t busy_hz = 10000;
    if (spec->frequency_hz)
        return spec->off_cpu && spec->frequency_hz < busy_hz ? busy_hz : spec->frequency_hz;
    bool is_clock = !spec->period && !spec->off_cpu && !(spec->events && spec->events->count);
    return is_clock ? SAMPLING_FREQUENCY_DEFAULT : busy_hz;
}

uint32_t stacks_copy_bytes(uint64_t samples_per_second, size_t ring_bytes)
{
    uint64_t copies = samples_per_second / RING_LASTS_PARTS + 1;
    uint64_t bytes = ring_bytes / copies & ~(uint64_t)7;
    if (bytes > SAMPLING_STACK_BYTES_MAX)
        return SAMPLING_STACK_BYTES_MAX;
    return bytes < SAMPLING_STACK_BYTES_DEFAULT ? SAMPLING_STACK_BYTES_DEFAULT : (uint32_t)bytes;
}

int stacks_open(struct sampling *ret_sampling, const struct recording_spec *spec,
                struct sampling_spec *s, struct error *err)
{
    uint64_t rate_hz = expected_rate_hz(spec);
    size_t ring_bytes = s->ring_bytes ? s->ring_bytes : SAMPLING_RING_BYTES_LONG;
    for (;;) {
        s->stack_bytes = stacks_copy_bytes(rate_hz, ring_bytes);
        int code = sampling_open(ret_sampling, s, err);
        if (code < 0)
            return code;
        /* Limits of locked memory may have made them smaller. */
        ring_bytes = sampling_ring_bytes_least(ret_sampling);
        if (stacks_copy_bytes(rate_hz, ring_bytes) >= s->stack_bytes)
            return 0;
        sampling_done(ret_sampling);
    }
}
