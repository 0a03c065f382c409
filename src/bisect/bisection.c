/* SPDX-License-Identifier: MIT */
/*
 * The search for the commit: see bisection.h.  What a step's values say is in bisection_judge.c.
 *
 * Stretches to be searched are frames on a stack.  Looking for one change, the stack is the way
 * down from the whole range: each frame is a half of the one below it, so that what turns out to be
 * wrong is taken back by leaving the frame.  Looking for all, halves replace their frame.
 */
#include "base/memory.h"
#include "bisect/bisection_internal.h"
#include "stats/plan.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

enum {
    ROUNDS_FIRST = 10,
    ROUNDS_MAX = 1000,
    CONFIRM_ROUNDS_MIN = 16,
    CONFIRM_ROUNDS_MAX = 100,
    CONFIRM_TRIES = 3,
    REDO_MAX = 12, /* decisions that are made again, in all */
    ENDS_REDO_MAX = 3,
};

/* Half the width that a confirmation's interval is to have, as a share of the change: where that
 * takes a moderate number of rounds, and what it takes to be confirmed at all in 99 of 100. */
#define CONFIRM_WIDTH (1.0 / 6)
#define CONFIRM_WIDTH_MOST (1.0 / 2.6)
/* The chance that a step on the way is wrong, as a share of the error: these are found out. */
#define SPLIT_CHANCE 0.1

struct bisection_frame {
    size_t lo, hi;
    bool differs;                /* else its ends are alike, or: */
    bool unsure;                 /* the noise hides whether they differ */
    struct comparison known;     /* hi to lo */
    struct expectation expected; /* the same from all rounds that tell of it */
    size_t confirm_tries;
    size_t redone; /* how often its split was made again */
};

void bisection_init(struct bisection *b, size_t count, const struct bisection_options *options)
{
    assert(count >= 2);
    *b = (struct bisection){.options = *options, .count = count, .hi = count - 1};
    struct bisection_options *o = &b->options;
    o->error = o->error > 0 ? o->error : 0.05;
    o->min_change = o->min_change > 0 ? o->min_change : 0.01;
    o->rounds_first = o->rounds_first ? o->rounds_first : ROUNDS_FIRST;
    o->rounds_max = o->rounds_max ? o->rounds_max : ROUNDS_MAX;
    if (o->rounds_first < COMPARISON_ROUNDS_MIN)
        o->rounds_first = COMPARISON_ROUNDS_MIN;
    if (o->rounds_max < o->rounds_first)
        o->rounds_max = o->rounds_first;
    if (!o->stride)
        o->stride = count / 4 ? count / 4 : 1;
    b->states = memory_zalloc(count, sizeof(*b->states));
}

void bisection_done(struct bisection *b)
{
    for (size_t i = 0; i < b->step_count; i++)
        for (size_t k = 0; k < 3; k++)
            free(b->steps[i].values[k]);
    free(b->steps);
    free(b->states);
    free(b->frames);
    free(b->found);
    free(b->rests);
    *b = (struct bisection){0};
}

size_t bisection_build_count(const struct bisection *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++)
        count += b->states[i] != COMMIT_UNTOUCHED;
    return count;
}

const struct bisection_step *bisection_ends(const struct bisection *b)
{
    const struct bisection_step *ends = NULL;
    for (size_t i = 0; i < b->step_count; i++)
        if (b->steps[i].kind == BISECTION_ENDS && b->steps[i].outcome != BISECTION_OPEN)
            ends = &b->steps[i];
    return ends;
}

const char *bisection_outcome_name(enum bisection_outcome outcome)
{
    static const char *const names[] = {"open", "differs",   "same",    "left",   "right",
                                        "both", "undecided", "refuted", "dropped"};
    return names[outcome];
}

static struct bisection_frame *top_frame(struct bisection *b)
{
    return b->frame_count ? &b->frames[b->frame_count - 1] : NULL;
}

static struct bisection_frame *push_frame(struct bisection *b, size_t lo, size_t hi, bool differs,
                                          const struct comparison *known)
{
    struct bisection_frame *frame = &ARRAY_PUSH(b->frames, b->frame_count, b->frame_capacity);
    *frame = (struct bisection_frame){.lo = lo, .hi = hi, .differs = differs, .known = *known};
    frame->expected = expectation_from(known);
    return frame;
}

static void end(struct bisection *b, enum bisection_verdict verdict, size_t lo, size_t hi)
{
    b->verdict = verdict;
    b->lo = lo;
    b->hi = hi;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * How good it is to try commit i between lo and hi: how far it is from both, so that the middle is
 * best.  Commits that do not build often stand together, so the distance from one that was skipped
 * counts, too, if only half as much.
 */
static size_t merit(const struct bisection *b, size_t lo, size_t hi, size_t i)
{
    size_t reach = smaller(i - lo, hi - i), best = reach;
    for (size_t d = 1; d <= reach && 2 * d < best; d++)
        if (b->states[i - d] == COMMIT_SKIPPED || b->states[i + d] == COMMIT_SKIPPED)
            best = 2 * d;
    return best;
}

static size_t choose_middle(const struct bisection *b, size_t lo, size_t hi)
{
    size_t best = BISECTION_NONE, best_merit = 0;
    for (size_t i = lo + 1; i < hi; i++) {
        if (b->states[i] == COMMIT_SKIPPED)
            continue;
        size_t m = merit(b, lo, hi, i);
        /* One that is there already is measured again rather than another one built. */
        if (b->states[i] == COMMIT_BUILT && smaller(i - lo, hi - i) * 4 >= hi - lo)
            m = hi - lo;
        if (best == BISECTION_NONE || m > best_merit) {
            best = i;
            best_merit = m;
        }
    }
    return best;
}

static struct bisection_step *open_step(struct bisection *b, enum bisection_kind kind, size_t lo,
                                        size_t hi, size_t mid, size_t wanted, double chance)
{
    struct bisection_step *step = &ARRAY_PUSH(b->steps, b->step_count, b->step_capacity);
    *step = (struct bisection_step){
        .kind = kind, .lo = lo, .hi = hi, .mid = mid, .wanted = wanted, .chance = chance, .p = NAN};
    b->step_open = true;
    return step;
}

static size_t within(double rounds, size_t least, size_t most)
{
    size_t count = rounds < (double)most ? (size_t)rounds : most;
    return count > least ? count : least;
}

/* How many fresh rounds a confirmation takes: set before the first of them. */
static size_t confirm_rounds(const struct bisection *b, const struct bisection_frame *frame)
{
    const struct comparison *c = &frame->known;
    double shift = fabs(frame->expected.shift);
    double size = c->scale == COMPARISON_RATIO ? expm1(shift)
                  : c->base_median != 0        ? shift * fabs(c->base_median)
                                               : shift;
    size_t most = b->options.rounds_max;
    size_t least = smaller(most, CONFIRM_ROUNDS_MIN);
    size_t nice = within(plan_rounds_for_width(c, size * CONFIRM_WIDTH), least,
                         smaller(most, CONFIRM_ROUNDS_MAX));
    size_t needed = within(plan_rounds_for_width(c, size * CONFIRM_WIDTH_MOST), least, most);
    return (nice > needed ? nice : needed) << frame->confirm_tries;
}

static void open_confirm(struct bisection *b, struct bisection_frame *frame)
{
    /* Each confirmation has half of what the ones before have left, so that all of them together
     * stay below the error; looking for all changes, each change has its own. */
    size_t nth = b->options.all ? frame->confirm_tries : b->confirm_count;
    double chance = b->options.error / (double)((uint64_t)2 << (nth < 16 ? nth : 16));
    open_step(b, BISECTION_CONFIRM, frame->lo, frame->hi, BISECTION_NONE, confirm_rounds(b, frame),
              chance);
    b->confirm_count++;
    frame->confirm_tries++;
}

static double step_chance(const struct bisection *b, size_t redone)
{
    double chance = b->options.error < 0.05 ? b->options.error : 0.05;
    return chance / (double)((size_t)1 << (2 * (redone < 4 ? redone : 4)));
}

static double split_chance(const struct bisection *b, size_t redone)
{
    return step_chance(b, redone) * (b->options.all ? 1 : SPLIT_CHANCE);
}

static int compare_changes(const void *a, const void *b)
{
    const struct bisection_change *x = a, *y = b;
    return x->hi < y->hi ? -1 : x->hi > y->hi;
}

static void add_rest(struct bisection *b, const struct bisection_frame *frame)
{
    ARRAY_PUSH(b->rests, b->rest_count, b->rest_capacity) =
        (struct bisection_rest){frame->lo, frame->hi, frame->differs, frame->known};
}

/* That nothing was found is no proof where a stretch was not settled. */
static void finish_all(struct bisection *b)
{
    if (b->found_count)
        qsort(b->found, b->found_count, sizeof(*b->found), compare_changes);
    end(b, b->found_count ? BISECTION_FOUND : BISECTION_NO_CHANGE, 0, b->count - 1);
    if (!b->found_count && b->rest_count)
        b->verdict = BISECTION_CANNOT_TELL;
}

/* What comes next when no step is open: a build, a new step, or the end. */
static bool next_in_frame(struct bisection *b, struct bisection_action *a)
{
    struct bisection_frame *frame = top_frame(b);
    if (!frame) {
        finish_all(b);
        return false;
    }
    size_t mid = choose_middle(b, frame->lo, frame->hi);
    if (mid == BISECTION_NONE && !frame->differs) {
        if (frame->unsure)
            add_rest(b, frame);
        b->frame_count--;
        return false;
    }
    if (mid == BISECTION_NONE) {
        open_confirm(b, frame);
        return false;
    }
    if (b->states[mid] == COMMIT_UNTOUCHED) {
        *a = (struct bisection_action){BISECTION_BUILD, {mid}, 1, NULL};
        return true;
    }
    open_step(b, BISECTION_SPLIT, frame->lo, frame->hi, mid, b->options.rounds_first,
              split_chance(b, frame->redone));
    return false;
}

static bool next_at_start(struct bisection *b, struct bisection_action *a)
{
    size_t ends[] = {0, b->count - 1};
    for (size_t i = 0; i < 2; i++)
        if (b->states[ends[i]] == COMMIT_UNTOUCHED) {
            *a = (struct bisection_action){BISECTION_BUILD, {ends[i]}, 1, NULL};
            return true;
        }
    open_step(b, BISECTION_ENDS, 0, b->count - 1, BISECTION_NONE, b->options.rounds_first,
              step_chance(b, 0));
    return false;
}

void bisection_next(struct bisection *b, struct bisection_action *a)
{
    while (b->verdict == BISECTION_SEARCHING) {
        if (b->step_open) {
            const struct bisection_step *step = &b->steps[b->step_count - 1];
            *a = (struct bisection_action){
                BISECTION_MEASURE, {step->lo, step->hi, step->mid}, 2, step};
            a->commit_count += step->mid != BISECTION_NONE;
            return;
        }
        if (b->step_count ? next_in_frame(b, a) : next_at_start(b, a))
            return;
    }
    *a = (struct bisection_action){.kind = BISECTION_END};
}

void bisection_built(struct bisection *b, size_t commit, bool ok)
{
    b->states[commit] = ok ? COMMIT_BUILT : COMMIT_SKIPPED;
    if (!ok && (commit == 0 || commit == b->count - 1))
        end(b, BISECTION_BAD_END, commit, commit);
}

void bisection_unusable(struct bisection *b, size_t commit)
{
    if (b->step_open) {
        b->steps[b->step_count - 1].outcome = BISECTION_DROPPED;
        b->step_open = false;
    }
    bisection_built(b, commit, false);
    /* A commit that ran before and does not now is an end of some stretch: nothing to stand on. */
    for (size_t i = 0; i < b->frame_count; i++)
        if (b->frames[i].lo == commit || b->frames[i].hi == commit)
            end(b, BISECTION_BAD_END, commit, commit);
}

/* Good and bad themselves turned out not to differ by what they should: they are compared again, in
 * fresh rounds and more of them. */
static void redo_ends(struct bisection *b)
{
    size_t first = 4 * bisection_ends(b)->round_count;
    b->ends_redone++;
    open_step(b, BISECTION_ENDS, 0, b->count - 1, BISECTION_NONE,
              smaller(first, b->options.rounds_max), step_chance(b, b->ends_redone));
}

/* The stretch on top turned out not to differ: leaves it and makes the decision again that led
 * there, or the one before, where that was made again already. */
static void take_back(struct bisection *b)
{
    struct bisection_frame last = *top_frame(b);
    b->frame_count--;
    if (b->options.all) {
        add_rest(b, &last);
        return;
    }
    while (b->frame_count && b->frames[b->frame_count - 1].redone)
        b->frame_count--;
    if (!b->frame_count && b->ends_redone < ENDS_REDO_MAX) {
        redo_ends(b);
        return;
    }
    if (!b->frame_count || b->redo_count >= REDO_MAX) {
        end(b, BISECTION_CANNOT_TELL, b->frame_count ? top_frame(b)->lo : 0,
            b->frame_count ? top_frame(b)->hi : b->count - 1);
        return;
    }
    top_frame(b)->redone++;
    b->redo_count++;
}

static void after_ends(struct bisection *b, const struct bisection_step *step)
{
    bool differs = step->outcome == BISECTION_DIFFERS;
    if (differs || b->options.all)
        push_frame(b, step->lo, step->hi, differs, &step->whole)->unsure =
            step->outcome == BISECTION_UNDECIDED;
    else
        end(b, step->outcome == BISECTION_SAME ? BISECTION_NO_CHANGE : BISECTION_CANNOT_TELL,
            step->lo, step->hi);
}

/* What is to be expected of a half: what was known of the whole, if it has all of the change, as
 * it should; where its own rounds speak against that, what those say. */
static void expect_half(struct bisection_frame *half, struct expectation whole)
{
    struct relative own = comparison_shift(&half->known);
    if (own.low <= whole.shift && own.high >= whole.shift)
        half->expected = whole;
}

/* Looking for one: the half that has the (larger) change goes on top. */
static void after_split_one(struct bisection *b, const struct bisection_step *step)
{
    if (step->outcome == BISECTION_REFUTED) {
        take_back(b);
        return;
    }
    if (step->outcome == BISECTION_UNDECIDED) {
        end(b, BISECTION_CANNOT_TELL, step->lo, step->hi);
        return;
    }
    bool left = step->outcome == BISECTION_LEFT, both = step->outcome == BISECTION_BOTH;
    struct expectation whole = expectation_join(top_frame(b)->expected, &step->whole);
    if (both) {
        double in_left = fabs(comparison_shift(&step->left).estimate);
        double in_right = fabs(comparison_shift(&step->right).estimate);
        left = in_left >= in_right;
        b->more_changes |= fmin(in_left, in_right) >= b->options.min_change;
    }
    struct bisection_frame *half = left ? push_frame(b, step->lo, step->mid, true, &step->left)
                                        : push_frame(b, step->mid, step->hi, true, &step->right);
    if (!both)
        expect_half(half, whole);
}

/* Looking for all: a half that differs, or that is too long to be believed, is searched; one whose
 * rounds did not suffice is left unsettled. */
static void queue_half(struct bisection *b, size_t lo, size_t hi, bool differs, bool unsure,
                       const struct comparison *known)
{
    if (!differs && !unsure && hi - lo <= b->options.stride)
        return;
    struct bisection_frame *frame = push_frame(b, lo, hi, differs, known);
    frame->unsure = unsure;
    if (differs || hi - lo > b->options.stride)
        return;
    add_rest(b, frame);
    b->frame_count--;
}

static void after_split_all(struct bisection *b, const struct bisection_step *step)
{
    struct bisection_frame frame = *top_frame(b);
    bool left = step->outcome == BISECTION_LEFT || step->outcome == BISECTION_BOTH;
    bool right = step->outcome == BISECTION_RIGHT || step->outcome == BISECTION_BOTH;
    b->frame_count--;
    bool kept = frame.differs && !left && !right;
    if (kept) /* which says more than that its halves are not settled */
        add_rest(b, &frame);
    queue_half(b, step->mid, step->hi, right, step->right_unsure && !kept, &step->right);
    queue_half(b, step->lo, step->mid, left, step->left_unsure && !kept, &step->left);
}

static void after_confirm(struct bisection *b, const struct bisection_step *step)
{
    struct bisection_frame *frame = top_frame(b);
    if (step->outcome != BISECTION_DIFFERS) {
        if (step->outcome == BISECTION_REFUTED || frame->confirm_tries >= CONFIRM_TRIES)
            take_back(b);
        return;
    }
    ARRAY_PUSH(b->found, b->found_count, b->found_capacity) =
        (struct bisection_change){step->lo, step->hi, b->step_count - 1, step->whole};
    b->frame_count--;
    if (b->options.all)
        return;
    struct relative one = comparison_shift(&step->whole);
    struct relative whole = comparison_shift(&bisection_ends(b)->whole);
    bool differ = one.low > whole.high || one.high < whole.low;
    b->more_changes |= differ && fabs(one.estimate - whole.estimate) >= b->options.min_change;
    end(b, BISECTION_FOUND, step->lo, step->hi);
}

static void after_step(struct bisection *b)
{
    const struct bisection_step *step = &b->steps[b->step_count - 1];
    b->step_open = false;
    if (step->kind == BISECTION_ENDS)
        after_ends(b, step);
    else if (step->kind == BISECTION_CONFIRM)
        after_confirm(b, step);
    else if (b->options.all)
        after_split_all(b, step);
    else
        after_split_one(b, step);
}

void bisection_round(struct bisection *b, const double *values)
{
    assert(b->step_open);
    struct bisection_step *step = &b->steps[b->step_count - 1];
    size_t count = step->mid == BISECTION_NONE ? 2 : 3, room = step->capacity;
    for (size_t k = 0; k < count; k++) {
        step->capacity = room;
        step->values[k] =
            memory_grow(step->values[k], &step->capacity, step->round_count + 1, sizeof(double));
        step->values[k][step->round_count] = values[k];
    }
    step->round_count++;
    if (step->round_count < step->wanted)
        return;
    const struct bisection_frame *frame = top_frame(b);
    bisection_judge(step, &b->options, frame && frame->differs ? &frame->expected : NULL);
    if (step->outcome != BISECTION_OPEN)
        after_step(b);
}
