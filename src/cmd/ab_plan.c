/* SPDX-License-Identifier: MIT */
/* From the command line of `assay ab` to the contestants: see ab.h. */
#include "base/memory.h"
#include "base/process.h"
#include "cmd/ab.h"

#include <errno.h>
#include <stdio.h>

static int make_parameters(struct parameter_list *list, const struct ab_options *o,
                           struct error *err)
{
    for (size_t i = 0; i + 1 < o->lists.count; i += 2) {
        int r = parameters_add_list(list, o->lists.items[i], o->lists.items[i + 1], err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i + 2 < o->scans.count; i += 3) {
        int r = parameters_add_range(list, o->scans.items[i], o->scans.items[i + 1],
                                     o->scans.items[i + 2], o->step, err);
        if (r < 0)
            return r;
    }
    if (o->step && !o->scans.count)
        return error_set(err, -EINVAL, "-D sets the step of -P, but there is no -P");
    return 0;
}

static bool used_in(const struct parameter_list *list, size_t parameter,
                    const struct option_list *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        if (parameters_used(list, parameter, texts->items[i]))
            return true;
    return false;
}

/* A parameter that nothing uses is a misspelling. */
static int check_parameters(const struct ab_plan *plan, const struct ab_options *o,
                            char *const *commands, size_t command_count, struct error *err)
{
    const struct parameter_list *list = &plan->parameters;
    for (size_t i = 0; i < list->count; i++) {
        bool used = used_in(list, i, &o->setups) || used_in(list, i, &o->concludes) ||
                    used_in(list, i, &o->prepares) || used_in(list, i, &o->cleanups);
        for (size_t j = 0; j < command_count; j++)
            used |= parameters_used(list, i, commands[j]);
        if (!used)
            return error_set(err, -EINVAL,
                             "no command uses this parameter: write {%s} in at least one",
                             list->items[i].name);
    }
    return 0;
}

static int check_hooks(const struct option_list *hooks, const char *name, size_t command_count,
                       struct error *err)
{
    if (hooks->count <= 1 || hooks->count == command_count)
        return 0;
    return error_set(err, -EINVAL, "give --%s once for all commands, or once for each of the %zu",
                     name, command_count);
}

static char *hook_for(const struct ab_plan *plan, const struct option_list *hooks, size_t command,
                      size_t combination)
{
    if (!hooks->count)
        return NULL;
    const char *text = hooks->items[hooks->count > 1 ? command : 0];
    return parameters_substitute(&plan->parameters, combination, text);
}

/* The shell that all commands share, so that its start hits all alike. */
static int choose_shell(struct ab_plan *plan, const struct ab_options *o, char *const *commands,
                        size_t command_count, struct error *err)
{
    bool none = o->no_shell || (o->shell && str_eq(o->shell, "none"));
    bool automatic = !o->shell || str_eq(o->shell, "auto");
    if (o->no_shell && o->shell && !none)
        return error_set(err, -EINVAL, "-N and --shell %s cannot be used together", o->shell);
    plan->shell = automatic || none ? NULL : str_eq(o->shell, "default") ? "sh" : o->shell;
    if (o->copies > 1 && !plan->shell)
        plan->shell = "sh";
    if (none || !automatic)
        return 0;
    for (size_t i = 0; i < command_count; i++)
        for (size_t j = 0; j < parameters_combinations(&plan->parameters); j++) {
            CLEANUP(memory_freep)
            char *text = parameters_substitute(&plan->parameters, j, commands[i]);
            bool needs_shell = strchr(text, '\n');
            int r = needs_shell ? 0 : command_needs_shell(text, &needs_shell, err);
            if (r < 0)
                return r;
            if (needs_shell)
                plan->shell = "sh";
        }
    return 0;
}

/* A command for the shell that runs the text so many times at once, and fails with the last of them
 * that fails.  A line of its own ends a comment in the text. */
static char *copies_of(const char *text, uint64_t count)
{
    return memory_printf(
        "n=0 p=; while [ $n -lt %llu ]; do ( %s\n) & p=\"$p $!\"; n=$((n+1)); done; "
        "n=0; for i in $p; do wait $i || n=$?; done; exit $n",
        (unsigned long long)count, text);
}

static int add_contestant(struct ab_plan *plan, const struct ab_options *o, const char *command,
                          size_t index, size_t combination, size_t command_count, struct error *err)
{
    struct contestant *c = &plan->contestants[plan->count];
    CLEANUP(memory_freep)
    char *text = parameters_substitute(&plan->parameters, combination, command);
    CLEANUP(memory_freep) char *copies = o->copies > 1 ? copies_of(text, o->copies) : NULL;
    int r = command_init(&c->command, copies ? copies : text, plan->shell, err);
    if (r < 0)
        return r;
    if (copies) { /* what failed is told as it was given */
        free(c->command.text);
        c->command.text = memory_strdup(text);
    }
    const char *name = index < o->names.count ? o->names.items[index] : command;
    c->name = parameters_substitute(&plan->parameters, combination, name);
    c->group = command_count > 1 ? combination : 0;
    c->combination = combination;
    c->source_index = index;
    c->setup = hook_for(plan, &o->setups, index, combination);
    c->prepare = hook_for(plan, &o->prepares, index, combination);
    c->conclude = hook_for(plan, &o->concludes, index, combination);
    c->cleanup = hook_for(plan, &o->cleanups, index, combination);
    CLEANUP(strbuf_done) struct strbuf parameters = {0};
    parameters_describe(&plan->parameters, combination, &parameters);
    struct participant *p = &plan->participants[plan->count];
    p->command = memory_strdup(text);
    p->parameters = memory_strdup(strbuf_text(&parameters));
    p->group = c->group;
    plan->count++;
    return 0;
}

/* With its number, where others have the same name.  The caller frees it. */
static char *numbered(const char *const *names, size_t count, size_t index)
{
    size_t before = 0, same = 0;
    for (size_t i = 0; i < count; i++) {
        bool equal = str_eq(names[i], names[index]);
        same += equal;
        before += equal && i < index;
    }
    return same > 1 ? memory_printf("%s #%zu", names[index], before + 1)
                    : memory_strdup(names[index]);
}

/* Contestants of the same name get numbers, so that a table can tell them apart; what differs in
 * the parameters only gets those. */
static void name_participants(struct ab_plan *plan)
{
    CLEANUP(memory_freep) const char **names = memory_zalloc(plan->count + 1, sizeof(*names));
    CLEANUP(memory_freep) char **told = memory_zalloc(plan->count + 1, sizeof(*told));
    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->contestants[i].name;
    for (size_t i = 0; i < plan->count; i++) {
        bool elsewhere = false;
        for (size_t j = 0; j < plan->count; j++)
            elsewhere |= plan->contestants[i].combination != plan->contestants[j].combination &&
                         str_eq(names[i], names[j]);
        told[i] = elsewhere ? memory_printf("%s, %s", names[i], plan->participants[i].parameters)
                            : memory_strdup(names[i]);
    }
    for (size_t i = 0; i < plan->count; i++)
        plan->participants[i].name = numbered((const char *const *)told, plan->count, i);
    for (size_t i = 0; i < plan->count; i++)
        free(told[i]);
}

/* What each command is called whatever its parameters are: as a factor it has the same level in
 * each group, so that all groups are compared. */
static void name_variants(struct ab_plan *plan, const struct ab_options *o, char *const *commands,
                          size_t command_count)
{
    CLEANUP(memory_freep) const char **names = memory_zalloc(command_count + 1, sizeof(*names));
    for (size_t i = 0; i < command_count; i++)
        names[i] = i < o->names.count ? o->names.items[i] : commands[i];
    for (size_t i = 0; i < plan->count; i++)
        if (*plan->participants[i].parameters)
            plan->participants[i].variant =
                numbered(names, command_count, plan->contestants[i].source_index);
}

bool ab_reference_is_command(const struct ab_options *o, char *const *commands, size_t count)
{
    uint64_t number;
    const char *wanted = o->reference;
    CLEANUP(memory_freep) char *path = NULL;
    if (!wanted || parse_u64(wanted, &number, NULL) == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (str_eq(commands[i], wanted) || strchr(commands[i], '{'))
            return false; /* with parameters, names are made from them */
    for (size_t i = 0; i < o->names.count; i++)
        if (str_eq(o->names.items[i], wanted))
            return false;
    return wanted[strcspn(wanted, " /")] || process_find(wanted, &path, NULL) == 0;
}

/* The number that --reference means among some names: a name, or a number from 1 on. */
static int find_reference(const char *wanted, const char *const *names, const char *const *commands,
                          size_t count, size_t *ret_index, struct error *err)
{
    uint64_t number;
    *ret_index = 0;
    if (!wanted)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], wanted) || str_eq(commands[i], wanted)) {
            *ret_index = i;
            return 0;
        }
    if (parse_u64(wanted, &number, NULL) < 0 || number < 1 || number > count) {
        CLEANUP(strbuf_done) struct strbuf near = {0};
        size_t found = str_nearest(wanted, names, count, 1, &near);
        return error_set(err, -EINVAL,
                         "--reference %s: neither a command nor a name nor a number from 1 to "
                         "%zu%s%s%s",
                         wanted, count, found ? "; did you mean " : "", strbuf_text(&near),
                         found ? "?" : "");
    }
    *ret_index = number - 1;
    return 0;
}

/* With several commands, the reference is one of them in each group; with one command, it is one of
 * its combinations. */
static int set_references(struct ab_plan *plan, const struct ab_options *o, char *const *commands,
                          size_t command_count, struct error *err)
{
    bool by_command = command_count > 1;
    size_t count = by_command ? command_count : plan->count, reference;
    CLEANUP(memory_freep) const char **names = memory_zalloc(count, sizeof(*names));
    CLEANUP(memory_freep) const char **texts = memory_zalloc(count, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        names[i] = by_command ? (i < o->names.count ? o->names.items[i] : commands[i])
                              : plan->participants[i].name;
        texts[i] = by_command ? commands[i] : plan->participants[i].command;
    }
    int r = find_reference(o->reference, names, texts, count, &reference, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < plan->count; i++) {
        size_t index = by_command ? plan->contestants[i].source_index : i;
        plan->contestants[i].is_reference = index == reference;
        plan->participants[i].is_reference = index == reference;
    }
    return 0;
}

int ab_plan_make(struct ab_plan *plan, const struct ab_options *o, char *const *commands,
                 size_t command_count, struct error *err)
{
    *plan = (struct ab_plan){0};
    int r = make_parameters(&plan->parameters, o, err);
    if (r == 0)
        r = check_parameters(plan, o, commands, command_count, err);
    if (r == 0)
        r = check_hooks(&o->setups, "setup", command_count, err);
    if (r == 0)
        r = check_hooks(&o->prepares, "prepare", command_count, err);
    if (r == 0)
        r = check_hooks(&o->concludes, "conclude", command_count, err);
    if (r == 0)
        r = check_hooks(&o->cleanups, "cleanup", command_count, err);
    if (r == 0 && o->names.count > command_count)
        r = error_set(err, -EINVAL, "there are more names (%zu) than commands (%zu)",
                      o->names.count, command_count);
    if (r == 0)
        r = choose_shell(plan, o, commands, command_count, err);
    size_t combinations = parameters_combinations(&plan->parameters);
    plan->contestants = memory_zalloc(combinations * command_count, sizeof(*plan->contestants));
    plan->participants = memory_zalloc(combinations * command_count, sizeof(*plan->participants));
    for (size_t i = 0; i < combinations && r == 0; i++)
        for (size_t j = 0; j < command_count && r == 0; j++)
            r = add_contestant(plan, o, commands[j], j, i, command_count, err);
    if (r == 0) {
        name_participants(plan);
        name_variants(plan, o, commands, command_count);
        r = set_references(plan, o, commands, command_count, err);
    }
    if (r == 0 && o->duet && (command_count != 2))
        r = error_set(err, -EINVAL, "--duet needs exactly two commands");
    return r;
}

static bool has_values(const struct rounds *r, size_t contestant)
{
    for (size_t i = 0; i < r->count; i++)
        if (run_counts(&r->items[i].runs[contestant]))
            return true;
    return false;
}

void ab_plan_replace_references(struct ab_plan *plan, const struct rounds *r)
{
    for (size_t i = 0; i < plan->count; i++) {
        size_t other = 0;
        if (!plan->participants[i].is_reference || has_values(r, i))
            continue;
        while (other < plan->count &&
               (plan->participants[other].group != plan->participants[i].group ||
                !has_values(r, other)))
            other++;
        if (other == plan->count)
            continue;
        plan->participants[i].is_reference = false;
        plan->participants[other].is_reference = true;
    }
}

int ab_plan_import(struct ab_plan *plan, const struct ab_options *o, const char *const *names,
                   const char *const *commands, const char *const *parameters, size_t count,
                   struct error *err)
{
    size_t reference;
    *plan = (struct ab_plan){0};
    int r = find_reference(o->reference, names, commands, count, &reference, err);
    if (r < 0)
        return r;
    plan->participants = memory_zalloc(count, sizeof(*plan->participants));
    plan->count = count;
    for (size_t i = 0; i < count; i++)
        plan->participants[i] = (struct participant){
            .name = memory_strdup(i < o->names.count ? o->names.items[i] : names[i]),
            .command = memory_strdup(commands[i]),
            .parameters = memory_strdup(parameters[i]),
            .is_reference = i == reference};
    return 0;
}

void ab_plan_done(struct ab_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->contestants) {
            struct contestant *c = &plan->contestants[i];
            command_done(&c->command);
            free(c->name);
            free(c->setup);
            free(c->prepare);
            free(c->conclude);
            free(c->cleanup);
        }
        free(plan->participants[i].name);
        free(plan->participants[i].command);
        free(plan->participants[i].parameters);
        free(plan->participants[i].variant);
    }
    free(plan->contestants);
    free(plan->participants);
    parameters_done(&plan->parameters);
    *plan = (struct ab_plan){0};
}
