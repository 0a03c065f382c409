/* SPDX-License-Identifier: MIT */
/* `assay top` on a terminal: see top_screen.h. */
#include "report/live/top_screen.h"
#include "base/memory.h"
#include "base/process.h"
#include "config.h"
#include "report/live/top_text.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#if HAVE_NCURSES
#include "report/browser/libncurses.h"
#endif

#if HAVE_NCURSES

#define KEY_ESCAPE 27
#define CONTROL(letter) ((letter)&0x1f)
#define HEAD_LINES 3 /* title, views, heading */

enum { COLOUR_HOT = 1, COLOUR_WARM, COLOUR_BAR };
enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_SAVE };

struct screen {
    struct top *top;
    const struct top_screen_spec *spec;
    struct view_options options;
    struct view_rows rows;
    size_t selected, first; /* rows: the selected one, the first that is shown */
    bool has_moved;         /* the user chose the row: it is followed when the order changes */
    bool is_frozen, shows_help, is_done;
    enum prompt prompt;
    char text[256]; /* of the prompt */
    char filter[256];
    char message[512];
};

static const char *const help_lines[] = {
    "Tab, 1 2 3 4          functions, threads, system calls, waits",
    "Up Down PgUp PgDn     move; Home, End",
    "Enter                 zoom into the row",
    "Esc, Backspace        back out of a zoom; clear the filter",
    "s                     sort by the next column",
    "/                     show only rows that have a text",
    "i                     waits of threads that slept all the time",
    "Space                 freeze, go on",
    "w                     save what was sampled as a recording",
    "h, ?                  this help",
    "q                     quit",
};

static size_t body_lines(void)
{
    return LINES > HEAD_LINES + 1 ? (size_t)LINES - HEAD_LINES - 1 : 1;
}

/* A terminal without UTF-8 gets a question mark for each character that it cannot show. */
static void put_text(const struct screen *s, int y, int x, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf plain = {0};
    size_t columns = COLS > x ? (size_t)(COLS - x) : 0;
    const char *shown = text;
    if (!s->spec->utf8) {
        for (const char *c = text; *c; c++)
            if (!utf8_continues(*c))
                strbuf_putc(&plain, (unsigned char)*c < 0x80 ? *c : '?');
        shown = strbuf_text(&plain);
    }
    mvaddnstr(y, x, shown, (int)str_column_bytes(shown, columns));
}

static void put_bar(const struct screen *s, int y, const char *text)
{
    attrset(COLOR_PAIR(COLOUR_BAR) | A_REVERSE);
    move(y, 0);
    for (int x = 0; x < COLS; x++)
        addch(' ');
    put_text(s, y, 0, text);
    attrset(A_NORMAL);
}

static void put_views(const struct screen *s)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    for (enum view v = 0; v < VIEW_COUNT; v++)
        strbuf_printf(&line, v == s->options.view ? "[%d %s] " : " %d %s  ", (int)v + 1,
                      top_view_name(v));
    strbuf_printf(&line, " by %s", top_sort_name(s->options.sort));
    if (s->filter[0])
        strbuf_printf(&line, "  /%s", s->filter);
    for (size_t i = 0; i < s->options.zoom_count; i++) {
        strbuf_puts(&line, "  > ");
        top_put_zoom(top_window(s->top), &s->options.zooms[i], &line);
    }
    put_text(s, 1, 0, strbuf_text(&line));
}

static void put_rows(const struct screen *s)
{
    const struct recent *w = top_window(s->top);
    for (size_t i = 0; i < body_lines() && s->first + i < s->rows.count; i++) {
        const struct view_row *r = &s->rows.items[s->first + i];
        CLEANUP(strbuf_done) struct strbuf line = {0};
        double share = 100 * (s->options.view == VIEW_WAITS ? r->waiting : r->cpu);
        int look = share >= 20  ? COLOR_PAIR(COLOUR_HOT)
                   : share >= 2 ? COLOR_PAIR(COLOUR_WARM)
                                : (int)A_NORMAL;
        bool is_selected = s->first + i == s->selected;
        top_put_row(w, s->options.view, r, (size_t)COLS, &line);
        if (is_selected)
            strbuf_pad(&line, ' ', (size_t)COLS - str_columns(strbuf_text(&line)));
        attrset(look | (is_selected ? (int)A_REVERSE : 0));
        put_text(s, HEAD_LINES + (int)i, 0, strbuf_text(&line));
        attrset(A_NORMAL);
    }
    if (!s->rows.count)
        put_text(s, HEAD_LINES, 1, "nothing was seen here in the last seconds");
}

static void put_bottom(struct screen *s)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    if (s->prompt)
        strbuf_printf(&line, "%s: %s_", s->prompt == PROMPT_FILTER ? "Show only" : "Save as",
                      s->text);
    else if (s->message[0])
        strbuf_puts(&line, s->message);
    else if (s->is_frozen)
        strbuf_puts(&line, "frozen; Space goes on");
    if (!line.length)
        top_put_rest(&s->rows, &s->options, &line);
    if (!line.length && *top_notes(s->top))
        strbuf_printf(&line, "%.*s", (int)strcspn(top_notes(s->top), "\n"), top_notes(s->top));
    if (!line.length)
        strbuf_puts(&line, "h help  Enter zoom  / filter  s sort  Space freeze  w save  q quit");
    put_bar(s, LINES - 1, strbuf_text(&line));
}

static void draw(struct screen *s)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t room = body_lines();
    if (s->selected < s->first)
        s->first = s->selected;
    if (s->selected >= s->first + room)
        s->first = s->selected - room + 1;
    erase();
    top_put_title(s->top, &s->rows, &text);
    put_bar(s, 0, strbuf_text(&text));
    put_views(s);
    if (s->shows_help) {
        for (size_t i = 0; i < ARRAY_COUNT(help_lines) && i < room + 1; i++)
            put_text(s, HEAD_LINES - 1 + (int)i, 1, help_lines[i]);
    } else {
        strbuf_clear(&text);
        top_put_heading(s->options.view, (size_t)COLS, &text);
        put_text(s, 2, 0, strbuf_text(&text));
        put_rows(s);
    }
    put_bottom(s);
    refresh();
}

static bool is_same(const struct view_row *a, const struct view_row *b)
{
    return a->symbol == b->symbol && a->thread == b->thread && a->call == b->call &&
           a->place == b->place && a->pid == b->pid;
}

/* Builds the rows anew; the selected one stays selected wherever it went. */
static void rebuild(struct screen *s)
{
    struct view_row before = {0};
    bool had = s->has_moved && s->selected < s->rows.count;
    if (had)
        before = s->rows.items[s->selected];
    view_rows_done(&s->rows);
    s->options.filter = s->filter;
    view_build(&s->rows, top_window(s->top), &s->options);
    for (size_t i = 0; had && i < s->rows.count; i++)
        if (is_same(&s->rows.items[i], &before))
            s->selected = i;
    if (s->selected >= s->rows.count)
        s->selected = s->rows.count ? s->rows.count - 1 : 0;
}

static void go_to_view(struct screen *s, enum view view)
{
    s->options.view = view;
    s->options.sort = view_default_sort(view);
    s->selected = s->first = 0;
    s->has_moved = false;
}

static void move_by(struct screen *s, long by)
{
    long to = (long)s->selected + by, last = (long)s->rows.count - 1;
    to = to > last ? last : to;
    s->selected = to < 0 ? 0 : (size_t)to;
    s->has_moved = s->selected > 0;
}

static void next_sort(struct screen *s)
{
    /* Only columns that the view has. */
    static const bool has[VIEW_COUNT][SORT_COUNT] = {
        [VIEW_FUNCTIONS] = {[SORT_CPU] = true, [SORT_NAME] = true},
        [VIEW_THREADS] = {[SORT_CPU] = true, [SORT_READY] = true, [SORT_NAME] = true},
        [VIEW_CALLS] = {[SORT_CPU] = true, [SORT_WAITING] = true, [SORT_NAME] = true},
        [VIEW_WAITS] = {[SORT_WAITING] = true, [SORT_NAME] = true},
    };
    do
        s->options.sort = (s->options.sort + 1) % SORT_COUNT;
    while (!has[s->options.view][s->options.sort]);
}

static void save(struct screen *s)
{
    struct error err;
    uint64_t samples;
    bool is_cut;
    int r = top_save(s->top, s->text, s->spec->command_line, &samples, &is_cut, &err);
    if (r < 0)
        snprintf(s->message, sizeof(s->message), "%.400s", err.message);
    else
        snprintf(s->message, sizeof(s->message), "%" PRIu64 " %s saved in %.200s%s", samples,
                 plural(samples, "sample", "samples"), s->text,
                 is_cut ? "; the oldest were no longer there" : "");
}

/* A key while a text is asked for. */
static void act_prompt(struct screen *s, int key)
{
    size_t length = strlen(s->text);
    if (key == KEY_ESCAPE) {
        s->prompt = PROMPT_NONE;
    } else if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        if (s->prompt == PROMPT_FILTER)
            memcpy(s->filter, s->text, sizeof(s->filter));
        else if (length)
            save(s);
        s->prompt = PROMPT_NONE;
    } else if ((key == KEY_BACKSPACE || key == 127 || key == CONTROL('h')) && length) {
        while (length && utf8_continues(s->text[length - 1]))
            length--;
        s->text[length ? length - 1 : 0] = '\0';
    } else if (key == CONTROL('u')) {
        s->text[0] = '\0';
    } else if (key >= ' ' && key < 256 && key != 127 && length + 1 < sizeof(s->text)) {
        s->text[length] = (char)key;
        s->text[length + 1] = '\0';
    }
}

static void ask(struct screen *s, enum prompt prompt, const char *text)
{
    s->prompt = prompt;
    snprintf(s->text, sizeof(s->text), "%s", text);
}

static void go_back(struct screen *s)
{
    if (s->options.zoom_count) {
        s->options.zoom_count--;
        s->selected = s->first = 0;
        s->has_moved = false;
    } else if (s->filter[0]) {
        s->filter[0] = '\0';
    } else {
        snprintf(s->message, sizeof(s->message), "This is everything; q quits.");
    }
}

static void zoom(struct screen *s)
{
    if (s->selected >= s->rows.count)
        return;
    if (view_zoom(&s->options, &s->rows.items[s->selected])) {
        s->filter[0] = '\0';
        go_to_view(s, s->options.view);
        return;
    }
    snprintf(s->message, sizeof(s->message), "There are too many zooms already.");
}

/* Keys that move.  Whether it is one. */
static bool act_move(struct screen *s, int key)
{
    long room = (long)body_lines();
    switch (key) {
    case KEY_DOWN:
    case 'j':
        move_by(s, 1);
        return true;
    case KEY_UP:
    case 'k':
        move_by(s, -1);
        return true;
    case KEY_NPAGE:
        move_by(s, room);
        return true;
    case KEY_PPAGE:
        move_by(s, -room);
        return true;
    case KEY_HOME:
        move_by(s, -(long)s->rows.count);
        return true;
    case KEY_END:
        move_by(s, (long)s->rows.count);
        return true;
    default:
        return false;
    }
}

static void act(struct screen *s, int key)
{
    if (act_move(s, key))
        return;
    switch (key) {
    case 'q':
        s->is_done = true;
        break;
    case '\t':
        go_to_view(s, (s->options.view + 1) % VIEW_COUNT);
        break;
    case '1':
    case '2':
    case '3':
    case '4':
        go_to_view(s, (enum view)(key - '1'));
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        zoom(s);
        break;
    case KEY_ESCAPE:
    case KEY_BACKSPACE:
    case 127:
        go_back(s);
        break;
    case 's':
        next_sort(s);
        break;
    case 'i':
        s->options.with_sleepers = !s->options.with_sleepers;
        break;
    case '/':
        ask(s, PROMPT_FILTER, s->filter);
        break;
    case 'w':
        ask(s, PROMPT_SAVE, s->spec->save_as);
        break;
    case ' ':
        s->is_frozen = !s->is_frozen;
        top_freeze(s->top, s->is_frozen);
        break;
    case 'h':
    case '?':
        s->shows_help = true;
        break;
    default: /* KEY_RESIZE: drawn again in any case */
        break;
    }
}

static void take_keys(struct screen *s)
{
    for (int key; !s->is_done && (key = getch()) != ERR;) {
        s->message[0] = '\0';
        if (s->shows_help) {
            s->shows_help = key == KEY_RESIZE;
        } else if (s->prompt) {
            act_prompt(s, key);
        } else {
            act(s, key);
        }
        rebuild(s);
    }
}

static void start_screen(const struct top_screen_spec *spec)
{
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    if (!has_colors() || !spec->colour)
        return;
    start_color();
    use_default_colors();
    init_pair(COLOUR_HOT, COLOR_RED, -1);
    init_pair(COLOUR_WARM, COLOR_GREEN, -1);
    init_pair(COLOUR_BAR, -1, -1);
}

int top_screen_run(struct top *top, const struct top_screen_spec *spec, int *ret_signal,
                   bool *ret_ended, struct error *err)
{
    const char *terminal = getenv("TERM");
    struct screen s = {.top = top, .spec = spec, .options = spec->options};
    int r = library_load(&curses_library, err);
    if (r < 0)
        return r;
    if (spec->options.filter)
        snprintf(s.filter, sizeof(s.filter), "%s", spec->options.filter);
    setlocale(LC_CTYPE, "");
    set_escdelay(50);
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return error_set(err, -ENOTTY, "unknown terminal '%.40s'; use --plain",
                         terminal ? terminal : "");
    start_screen(spec);
    rebuild(&s);
    *ret_signal = 0;
    *ret_ended = false;
    while (!s.is_done) {
        draw(&s);
        enum top_event event = top_wait(top, STDIN_FILENO);
        if (event == TOP_SIGNAL)
            *ret_signal = process_signals_caught();
        *ret_ended = event == TOP_ENDED;
        s.is_done = event == TOP_SIGNAL || event == TOP_ENDED;
        rebuild(&s);
        take_keys(&s);
    }
    endwin();
    delscreen(screen);
    view_rows_done(&s.rows);
    return 0;
}

#else

int top_screen_run(struct top *top, const struct top_screen_spec *spec, int *ret_signal,
                   bool *ret_ended, struct error *err)
{
    (void)top, (void)spec, (void)ret_signal, (void)ret_ended;
    return error_set(err, -ENOSYS, "assay was built without ncurses; use --plain");
}

#endif
