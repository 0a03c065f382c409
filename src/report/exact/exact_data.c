/* SPDX-License-Identifier: MIT */
/* See exact.h and docs/FORMATS.md. */
#include "base/json.h"
#include "config.h"
#include "report/exact/exact.h"

#include <stdio.h>
#include <sys/wait.h>

static void put_count(struct json *j, const char *event, uint64_t value)
{
    json_object(j, NULL);
    json_string(j, "event", event);
    json_string(j, "state", "emulated");
    json_u64(j, "value", value);
    json_string(j, "unit", "count");
    json_end(j);
}

static void put_calls(struct json *j, const struct exact_tool *tool, const struct exact_counts *c)
{
    json_array(j, "syscalls");
    for (size_t i = 0; i < EXACT_CALLS; i++) {
        char name[32];
        if (!c->calls_by_number[i])
            continue;
        json_object(j, NULL);
        json_u64(j, "number", i);
        json_string(j, "name", exact_call_name(tool, i, name, sizeof(name)));
        json_u64(j, "count", c->calls_by_number[i]);
        json_end(j);
    }
    json_end(j);
}

/* Instructions of the kernel by what it was entered for. */
static void put_ways(struct json *j, const struct exact_counts *c)
{
    json_array(j, "kernel");
    for (size_t i = 0; i < c->way_count; i++) {
        json_object(j, NULL);
        json_string(j, "name", c->ways[i].name);
        json_u64(j, "count", c->ways[i].count);
        json_u64(j, "instructions", c->ways[i].instructions);
        json_end(j);
    }
    json_end(j);
    json_u64(j, "began_at_ns", c->began_at_ns);
    json_u64(j, "interrupt_instructions", c->interrupts);
    json_u64(j, "aside_instructions", c->aside);
}

static void put_names(struct json *j, const char *key, char *const *names, size_t count)
{
    json_array(j, key);
    for (size_t i = 0; i < count; i++)
        json_string(j, NULL, names[i]);
    json_end(j);
}

static void put_run(struct json *j, const struct exact_view *v, const struct exact_result *run)
{
    json_object(j, NULL);
    json_u64(j, "emulation_wall_ns", run->wall_ns);
    if (WIFSIGNALED(run->status))
        json_i64(j, "signal", WTERMSIG(run->status));
    else
        json_i64(j, "exit_code", WEXITSTATUS(run->status));
    json_u64(j, "processes", run->counts.process_count);
    json_u64(j, "threads", run->counts.thread_count);
    json_bool(j, "left_behind", run->left_behind);
    if (run->ran_out)
        json_bool(j, "ran_out", true);
    json_array(j, "counts");
    for (const struct exact_metric *m = exact_tool_metrics(v->tool); m->name; m++)
        put_count(j, m->name, m->value_of(&run->counts));
    json_end(j);
    if (!v->tool->is_cachegrind)
        put_calls(j, v->tool, &run->counts);
    if (v->tool->machine)
        put_ways(j, &run->counts);
    put_names(j, "not_counted", run->foreign, run->foreign_count);
    put_names(j, "without_set_id", run->set_id, run->set_id_count);
    json_end(j);
}

static void put_functions(struct json *j, const struct exact_functions *f)
{
    json_array(j, "functions");
    for (size_t i = 0; f && i < f->count; i++) {
        json_object(j, NULL);
        json_string(j, "name", f->items[i].name);
        json_string(j, "module", f->items[i].module);
        json_u64(j, "instructions", f->items[i].instructions);
        json_end(j);
    }
    json_end(j);
}

void report_exact_json(struct strbuf *out, const struct exact_view *v)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "format", "assay-stat-1");
    json_string(&j, "assay", ASSAY_VERSION);
    json_array(&j, "command");
    for (size_t i = 0; v->argv[i]; i++)
        json_string(&j, NULL, v->argv[i]);
    json_end(&j);
    json_string(&j, "target", "command");
    json_object(&j, "emulator");
    json_string(&j, "tool", v->tool->name);
    json_string(&j, "scope", v->tool->machine ? "user mode and kernel" : "user mode only");
    json_bool(&j, "fallback", v->tool->is_cachegrind && !v->tool->is_model);
    if (v->tool->is_model)
        json_string(&j, "model", EXACT_MODEL_WORDS);
    json_end(&j);
    json_array(&j, "runs");
    for (size_t i = 0; i < v->run_count; i++)
        put_run(&j, v, &v->runs[i]);
    json_end(&j);
    put_functions(&j, v->functions);
    json_object(&j, "losses");
    json_u64(&j, "runs_requested", v->requested_runs);
    json_u64(&j, "runs_finished", v->run_count);
    json_i64(&j, "interrupted_by_signal", v->signal);
    json_end(&j);
    machine_write_json(v->machine, &j, "machine");
    json_end(&j);
}

void report_exact_csv(struct strbuf *out, const struct exact_view *v)
{
    strbuf_puts(out, "where,event,state,unit,value,raw,enabled_ns,running_ns,note\n");
    strbuf_printf(out,
                  "all,emulator,note,,,,,,\"%s, %s\"\n"
                  "all,runs-requested,losses,count,%llu,,,,\n"
                  "all,runs-finished,losses,count,%zu,,,,\n",
                  v->tool->name, v->tool->machine ? "user mode and kernel" : "user mode only",
                  (unsigned long long)v->requested_runs, v->run_count);
    for (size_t i = 0; i < v->run_count; i++) {
        const struct exact_counts *c = &v->runs[i].counts;
        for (const struct exact_metric *m = exact_tool_metrics(v->tool); m->name; m++)
            strbuf_printf(out, "run %zu,%s,emulated,count,%llu,,,,\n", i + 1, m->name,
                          (unsigned long long)m->value_of(c));
    }
}
