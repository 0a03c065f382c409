/* SPDX-License-Identifier: MIT */
/* The monitors' thread, their files, and the columns that readings are collected in. */
#include "monitors/monitors.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "monitors/monitor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>

static const struct monitor *const all_monitors[] = {
    &monitor_mpstat,    &monitor_vmstat,       &monitor_proc_vmstat, &monitor_numa_vmstat,
    &monitor_numastat,  &monitor_numa_meminfo, &monitor_meminfo,     &monitor_interrupts,
    &monitor_softirqs,  &monitor_slabinfo,     &monitor_diskstats,   &monitor_pressure,
    &monitor_schedstat, &monitor_cpuidle,      &monitor_thermal,     &monitor_turbostat,
    &monitor_perf_stat, &monitor_sched_debug,  &monitor_perf_sched,  &monitor_lock_contention,
    &monitor_syscalls,  &monitor_perf_profile,
};

const struct monitor *monitor_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(all_monitors); i++)
        if (str_eq(all_monitors[i]->name, name))
            return all_monitors[i];
    return NULL;
}

size_t monitor_names(const char *ret_names[MONITORS_MAX])
{
    static_assert(ARRAY_COUNT(all_monitors) <= MONITORS_MAX, "room for all");
    for (size_t i = 0; i < ARRAY_COUNT(all_monitors); i++)
        ret_names[i] = all_monitors[i]->name;
    return ARRAY_COUNT(all_monitors);
}

enum monitor_class monitor_class(const struct monitor *monitor)
{
    return monitor->class;
}

const char *monitor_what(const struct monitor *monitor)
{
    return monitor->what;
}

/* The components of the path where the pattern has a star, joined by dots. */
static void label_of(const char *pattern, const char *path, char *label, size_t size)
{
    size_t used = 0;
    label[0] = '\0';
    while (*pattern && *path) {
        size_t p = strcspn(pattern, "/"), q = strcspn(path, "/");
        if (memchr(pattern, '*', p))
            used += (size_t)snprintf(label + used, size - used, "%s%.*s", used ? "." : "", (int)q,
                                     path);
        if (used >= size)
            return;
        pattern += p + (pattern[p] == '/');
        path += q + (path[q] == '/');
    }
}

static void open_files(struct monitor_instance *i)
{
    for (size_t p = 0; i->monitor->paths[p]; p++) {
        glob_t found = {0};
        if (glob(i->monitor->paths[p], 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++) {
                int fd = open(found.gl_pathv[k], O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                    continue;
                struct monitor_file *file = &ARRAY_PUSH(i->files, i->file_count, i->file_capacity);
                file->fd = fd;
                label_of(i->monitor->paths[p], found.gl_pathv[k], file->label, sizeof(file->label));
            }
        globfree(&found);
    }
}

static void close_instance(struct monitor_instance *i)
{
    if (i->monitor->done)
        i->monitor->done(i);
    for (size_t f = 0; f < i->file_count; f++)
        if (i->files[f].fd >= 0)
            close(i->files[f].fd);
    free(i->files);
    strbuf_done(&i->text);
}

/* Files at fixed paths; whether they are there is known when they are read. */
static int name_files(struct monitor_instance *i, struct error *err)
{
    for (size_t p = 0; i->monitor->paths && i->monitor->paths[p]; p++) {
        if (strchr(i->monitor->paths[p], '*'))
            break;
        ARRAY_PUSH(i->files, i->file_count, i->file_capacity) =
            (struct monitor_file){.fd = -1, .path = i->monitor->paths[p]};
    }
    return i->file_count ? 0 : error_set(err, -ENOTSUP, "it watches this machine only");
}

static bool open_instance(struct monitors *m, struct monitor_instance *i)
{
    struct error err = {0};
    if (m->read_elsewhere) {
        if (name_files(i, &err) == 0)
            return true;
    } else if (i->monitor->open) {
        if (i->monitor->open(i, &err) == 0)
            return true;
    } else {
        open_files(i);
        if (i->file_count)
            return true;
        int code = access(i->monitor->paths[0], R_OK) < 0 ? -errno : -ENOENT;
        error_errno(&err, code, "%s", i->monitor->paths[0]);
    }
    strbuf_printf(&m->missing, "%s%s: %s", m->missing.length ? "; " : "", i->monitor->name,
                  err.message);
    return false;
}

static void *watch(void *context);
static void set_state(struct monitors *m, bool active, bool quit);

/* Everything but the thread. */
static int open_all(struct monitors *m, const char *const *names, size_t count, struct error *err)
{
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    m->instances = memory_zalloc(count + 1, sizeof(*m->instances));
    for (size_t n = 0; n < count; n++) {
        struct monitor_instance *i = &m->instances[m->instance_count];
        *i = (struct monitor_instance){.monitor = monitor_find(names[n])};
        if (!i->monitor) {
            monitors_done(m);
            return error_set(err, -EINVAL, "there is no monitor '%s'", names[n]);
        }
        if (i->monitor->class != m->class)
            continue;
        if (open_instance(m, i))
            m->instance_count++;
        else
            close_instance(i);
    }
    return 0;
}

int monitors_open_elsewhere(struct monitors *m, const char *const *names, size_t count,
                            monitor_read_fn *read, void *context, struct error *err)
{
    *m = (struct monitors){.class = MONITOR_READS, .read_elsewhere = read, .read_context = context};
    return open_all(m, names, count, err);
}

void monitors_put_unread(const struct monitors *m, struct strbuf *out)
{
    size_t told = 0;
    for (size_t i = 0; i < m->instance_count; i++)
        if (!m->instances[i].was_read)
            strbuf_printf(out, "%s%s", told++ ? ", " : "", m->instances[i].monitor->name);
}

int monitors_open(struct monitors *m, const char *const *names, size_t count,
                  enum monitor_class class, uint64_t interval_ns, struct error *err)
{
    *m = (struct monitors){.class = class, .interval_ns = interval_ns};
    int r = open_all(m, names, count, err);
    if (r < 0)
        return r;
    int code = m->instance_count ? pthread_create(&m->thread, NULL, watch, m) : 0;
    if (code) {
        monitors_done(m);
        return error_errno(err, -code, "starting the monitors' thread");
    }
    m->has_thread = m->instance_count > 0;
    return 0;
}

void monitors_done(struct monitors *m)
{
    if (m->has_thread) {
        set_state(m, false, true);
        pthread_join(m->thread, NULL);
    }
    for (size_t i = 0; i < m->instance_count; i++)
        close_instance(&m->instances[i]);
    for (size_t c = 0; c < m->column_count; c++) {
        free(m->columns[c].name);
        free(m->columns[c].values);
    }
    free(m->instances);
    free(m->columns);
    free(m->tick_ns);
    strbuf_done(&m->missing);
    strbuf_done(&m->troubles);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
    *m = (struct monitors){0};
}

void sink_prefix(struct monitor_sink *sink, const char *first, const char *second)
{
    int length = snprintf(sink->prefix, sizeof(sink->prefix), "%s%s%s", first,
                          second && *second ? second : "", second && *second ? "." : "");
    sink->prefix_length = length < 0                              ? 0
                          : (size_t)length < sizeof(sink->prefix) ? (size_t)length
                                                                  : sizeof(sink->prefix) - 1;
}

static bool is_column(const struct monitor_column *c, const struct monitor_sink *sink,
                      const char *key, size_t key_length)
{
    return strncmp(c->name, sink->prefix, sink->prefix_length) == 0 &&
           strncmp(c->name + sink->prefix_length, key, key_length) == 0 &&
           c->name[sink->prefix_length + key_length] == '\0';
}

static struct monitor_column *find_column(struct monitor_sink *sink, const char *key,
                                          size_t key_length)
{
    struct monitors *m = sink->m;
    for (size_t k = 0; k < m->column_count; k++) {
        size_t place = (sink->cursor + k) % m->column_count;
        if (is_column(&m->columns[place], sink, key, key_length)) {
            sink->cursor = place + 1;
            return &m->columns[place];
        }
    }
    struct monitor_column *c = &ARRAY_PUSH(m->columns, m->column_count, m->column_capacity);
    *c = (struct monitor_column){.name =
                                     memory_printf("%s%.*s", sink->prefix, (int)key_length, key)};
    sink->cursor = m->column_count;
    return c;
}

void sink_put(struct monitor_sink *sink, const char *key, size_t key_length, double value,
              enum column_mode mode, const char *unit)
{
    struct monitor_column *c = find_column(sink, key, key_length);
    size_t tick = sink->m->tick_count;
    if (c->capacity <= tick) {
        size_t before = c->capacity;
        c->values = memory_grow(c->values, &c->capacity, tick + 1, sizeof(*c->values));
        for (size_t k = before; k < c->capacity; k++)
            c->values[k] = NAN;
    }
    c->mode = mode;
    c->unit = unit;
    c->values[tick] = value;
}

static bool read_text(int fd, struct strbuf *text)
{
    strbuf_clear(text);
    for (;;) {
        char piece[16384];
        ssize_t got = pread(fd, piece, sizeof(piece), (off_t)text->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 && text->length > 0;
        strbuf_append(text, piece, (size_t)got);
        if (text->length > (size_t)16 << 20)
            return true;
    }
}

static bool read_file(const struct monitors *m, const struct monitor_file *file,
                      struct strbuf *text)
{
    if (!m->read_elsewhere)
        return read_text(file->fd, text);
    strbuf_clear(text);
    return m->read_elsewhere(m->read_context, file->path, text) == 0 && text->length > 0;
}

static void read_instance(struct monitor_instance *i, struct monitor_sink *sink)
{
    if (i->monitor->read) {
        i->monitor->read(i, sink);
        i->was_read = true;
        return;
    }
    for (size_t f = 0; f < i->file_count; f++)
        if (read_file(sink->m, &i->files[f], &i->text)) {
            i->monitor->parse(i, &i->files[f], sink);
            i->was_read = true;
        }
    if (i->monitor->finish)
        i->monitor->finish(i, sink);
}

/* What traces have is only emptied until the run has ended. */
static void drain(struct monitors *m)
{
    uint64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < m->instance_count; i++)
        if (m->instances[i].monitor->drain)
            m->instances[i].monitor->drain(&m->instances[i]);
    m->cpu_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

static void tick(struct monitors *m, bool is_last)
{
    if (m->class != MONITOR_READS && !is_last) {
        drain(m);
        return;
    }
    if (m->tick_count >= MONITOR_TICKS_MAX) {
        if (!is_last)
            return;
        m->tick_count--; /* the last reading takes the place of the one before */
    }
    uint64_t now_ns = clock_now_ns() - m->start_ns, cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    double seconds = m->tick_count ? (double)(now_ns - m->tick_ns[m->tick_count - 1]) / 1e9 : 0;
    m->tick_ns = memory_grow(m->tick_ns, &m->tick_capacity, m->tick_count + 1, sizeof(*m->tick_ns));
    m->tick_ns[m->tick_count] = now_ns;
    struct monitor_sink sink = {.m = m};
    for (size_t i = 0; i < m->instance_count; i++) {
        unsigned every = m->instances[i].monitor->every;
        if (every && m->tick_count % every != 0 && !is_last)
            continue;
        m->instances[i].seconds = seconds;
        read_instance(&m->instances[i], &sink);
        m->instances[i].has_previous = true;
    }
    m->tick_count++;
    m->cpu_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

/* The thread sleeps between runs.  It holds the lock while it reads. */
static void *watch(void *context)
{
    struct monitors *m = context;
    pthread_mutex_lock(&m->lock);
    while (!m->quit) {
        if (!m->active) {
            pthread_cond_wait(&m->wake, &m->lock);
            continue;
        }
        struct timespec due = timespec_from_ns(m->due_ns);
        if (pthread_cond_timedwait(&m->wake, &m->lock, &due) != ETIMEDOUT || !m->active || m->quit)
            continue;
        tick(m, false);
        uint64_t now_ns = clock_now_ns();
        m->due_ns += m->interval_ns;
        if (m->due_ns < now_ns) /* stopped for a while: no burst of ticks to catch up */
            m->due_ns = now_ns + m->interval_ns;
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void set_state(struct monitors *m, bool active, bool quit)
{
    pthread_mutex_lock(&m->lock);
    m->active = active;
    m->quit = quit;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

void monitors_start(struct monitors *m)
{
    if (!m->instance_count)
        return;
    for (size_t c = 0; c < m->column_count; c++)
        for (size_t k = 0; k < m->columns[c].capacity; k++)
            m->columns[c].values[k] = NAN;
    strbuf_clear(&m->troubles);
    for (size_t i = 0; i < m->instance_count; i++) {
        struct monitor_instance *instance = &m->instances[i];
        struct error err = {0};
        instance->has_previous = instance->was_read = false;
        if (instance->monitor->start && instance->monitor->start(instance, &err) < 0)
            strbuf_printf(&m->troubles, "%s%s: %s", m->troubles.length ? "; " : "",
                          instance->monitor->name, err.message);
    }
    m->tick_count = 0;
    m->cpu_ns = 0;
    m->start_ns = clock_now_ns();
    tick(m, false);
    m->due_ns = m->start_ns + m->interval_ns;
    set_state(m, true, false);
}

/* One number of a run's readings; seconds are those between the first and the last reading. */
static double reduce(const struct monitors *m, const struct monitor_column *c)
{
    size_t first = 0, last = m->tick_count < c->capacity ? m->tick_count : c->capacity, count = 0;
    double sum = 0;
    while (first < last && isnan(c->values[first]))
        first++;
    while (last > first && isnan(c->values[last - 1]))
        last--;
    if (first == last)
        return NAN;
    if (c->mode == COLUMN_LAST)
        return c->values[last - 1];
    if (c->mode == COLUMN_MEAN) {
        for (size_t k = first; k < last; k++)
            if (!isnan(c->values[k])) {
                sum += c->values[k];
                count++;
            }
        return sum / (double)count;
    }
    if (last - first < 2)
        return NAN;
    double delta = c->values[last - 1] - c->values[first];
    double seconds = (double)(m->tick_ns[last - 1] - m->tick_ns[first]) / 1e9;
    return c->mode == COLUMN_DELTA ? delta : seconds > 0 ? delta / seconds : NAN;
}

void monitors_stop(struct monitors *m)
{
    if (!m->instance_count)
        return;
    set_state(m, false, false);
    tick(m, true);
    for (size_t c = 0; c < m->column_count; c++)
        m->columns[c].value = reduce(m, &m->columns[c]);
}

bool scan_line(struct scan *s, const char **ret_line, size_t *ret_length)
{
    if (!*s->at)
        return false;
    *ret_line = s->at;
    *ret_length = strcspn(s->at, "\n");
    s->at += *ret_length;
    s->at += *s->at == '\n';
    return true;
}

bool scan_word(const char **line, const char **ret_word, size_t *ret_length)
{
    const char *p = *line + strspn(*line, " \t");
    size_t length = strcspn(p, " \t\n");
    *line = p + length;
    *ret_word = p;
    *ret_length = length;
    return length > 0;
}

bool scan_number(const char **line, double *ret_number)
{
    const char *p = *line + strspn(*line, " \t");
    bool negative = *p == '-';
    p += negative;
    if (*p < '0' || *p > '9')
        return false;
    double number = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        number = number * 10 + (*p - '0');
    if (*p == '.')
        for (double place = 0.1; *++p >= '0' && *p <= '9'; place /= 10)
            number += place * (*p - '0');
    *line = p;
    *ret_number = negative ? -number : number;
    return true;
}
