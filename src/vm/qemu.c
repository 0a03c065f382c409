/* SPDX-License-Identifier: MIT */
/* The command line of QEMU: see machine_internal.h. */
#include "base/memory.h"
#include "vm/machine_internal.h"

#include <stdio.h>

struct words {
    char **items;
    size_t count, capacity;
};

static void add_word(struct words *w, char *word)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = word;
}

static void add(struct words *w, const char *first, const char *second)
{
    add_word(w, memory_strdup(first));
    if (second)
        add_word(w, memory_strdup(second));
}

void vm_qemu_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* Counts are to be the same each time: the clock counts instructions, and there is no other
 * randomness.  While a machine boots that is to be kept, nothing has to wait for its sleeps. */
static void add_clock(struct words *w, const struct vm_settings *s)
{
    add(w, "-icount", NULL);
    add_word(w, memory_printf("shift=%d%s", s->is_exact ? VM_CLOCK_SHIFT_EXACT : VM_CLOCK_SHIFT,
                              s->keeps ? ",sleep=off" : ""));
    if (s->is_exact)
        add(w, "-seed", "1");
}

static void add_memory(struct words *w, const struct vm_settings *s)
{
    uint64_t bytes = s->memory_bytes ? s->memory_bytes : VM_MEMORY_BYTES;
    add(w, "-m", NULL);
    add_word(w, memory_printf("%lluk", (unsigned long long)(bytes >> 10)));
    if (!s->memory_file)
        return;
    CLEANUP(memory_freep) char *path = vm_qemu_quoted(s->memory_file);
    add(w, "-object", NULL);
    add_word(w, memory_printf("memory-backend-file,id=ram,size=%lluk,mem-path=%s,share=%s",
                              (unsigned long long)(bytes >> 10), path, s->keeps ? "on" : "off"));
    add(w, "-machine", "memory-backend=ram");
}

static void add_machine(struct words *w, const struct vm_machine *m)
{
    const struct vm_settings *s = m->settings;
    for (size_t i = 0; s->arch->args[i]; i++)
        add(w, s->arch->args[i], NULL);
    if (m->is_kvm) {
        add(w, "-accel", "kvm");
        add(w, "-cpu", s->arch->kvm_cpu);
    } else {
        add(w, "-cpu", s->arch->cpu);
        add_clock(w, s);
    }
    add_memory(w, s);
    add(w, "-smp", NULL);
    add_word(w, memory_printf("%u", s->cpu_count ? s->cpu_count : 1));
    add(w, "-nodefaults", "-no-reboot");
    add(w, "-display", "none");
}

/* Addresses are the same at each boot: a layout is no source of differences unless it is asked for.
 */
static void add_kernel(struct words *w, const struct vm_machine *m, int initramfs)
{
    const struct vm_settings *s = m->settings;
    add(w, "-kernel", s->kernel->image);
    add(w, "-initrd", NULL);
    add_word(w, memory_printf("/proc/self/fd/%d", initramfs));
    add(w, "-append", NULL);
    add_word(w, memory_printf("console=%s loglevel=4 panic=-1 " VM_FIXED_WORDS "%s%s%s",
                              s->arch->console, s->is_exact ? " " VM_EXACT_WORDS : "",
                              s->append ? " " : "", s->append ? s->append : ""));
}

static void add_devices(struct words *w, const struct vm_machine *m, const struct vm_qemu_fds *fds)
{
    const struct vm_settings *s = m->settings;
    add(w, "-serial", NULL);
    add_word(w, memory_printf("file:/proc/self/fd/%d", fds->console));
    add(w, "-device", s->arch->serial_device);
    add(w, "-chardev", NULL);
    add_word(w, memory_printf("socket,id=port,fd=%d", fds->port));
    add(w, "-device", "virtserialport,chardev=port,name=assay");
    if (fds->monitor >= 0) {
        add(w, "-chardev", NULL);
        add_word(w, memory_printf("socket,id=monitor,fd=%d", fds->monitor));
        add(w, "-mon", "chardev=monitor,mode=control");
    } else {
        add(w, "-monitor", "none");
    }
    if (s->shares_files) {
        add(w, "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap");
        add(w, "-device", NULL);
        add_word(w, memory_printf("%s,fsdev=host,mount_tag=" VM_SHARE_TAG, s->arch->share_device));
    }
    if (s->plugin)
        add(w, "-plugin", s->plugin);
}

/* A comma separates QEMU's options; two of them are one. */
char *vm_qemu_quoted(const char *text)
{
    struct strbuf out = {0};
    for (; *text; text++)
        strbuf_puts(&out, *text == ',' ? ",," : (char[]){*text, '\0'});
    return out.data ? out.data : memory_strdup("");
}

char **vm_qemu_words(const struct vm_machine *m, const struct vm_qemu_fds *fds)
{
    struct words w = {0};
    add(&w, m->settings->arch->qemu, NULL);
    add_machine(&w, m);
    if (m->settings->state_file)
        add(&w, "-incoming", "defer");
    else
        add_kernel(&w, m, fds->initramfs);
    add_devices(&w, m, fds);
    add_word(&w, NULL);
    return w.items;
}
