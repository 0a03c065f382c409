/* SPDX-License-Identifier: MIT */
/* The interactive report on a terminal, with ncurses: see browser.h. */
#include "base/memory.h"
#include "config.h"
#include "report/browser/browser.h"
#include "report/profile/annotate_report.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if HAVE_NCURSES
#include "report/browser/libncurses.h"
#endif

#if HAVE_NCURSES

#define KEY_ESCAPE 27
#define CONTROL(letter) ((letter)&0x1f)

enum { COLOUR_HOT = 1, COLOUR_WARM, COLOUR_BAR };

struct screen {
    struct browser browser;
    size_t top;       /* the first line shown */
    char search[128]; /* the last search */
    char message[256];
};

static const char help_text[] =
    "  Up, Down, PgUp, PgDn, Home, End   move\n"
    "  Enter, +, Right                   open or close the call tree of a line\n"
    "  e, E                              open everything below the row; close it\n"
    "  /                                 search;  n, N: next, previous\n"
    "  f                                 zoom into the function: samples that pass through it\n"
    "  d                                 zoom into the binary (shared object)\n"
    "  t                                 zoom into the command (thread name)\n"
    "  Esc, Left, Backspace              back out of a zoom\n"
    "  a                                 annotate the function: source and instructions\n"
    "  c                                 call trees: by caller, by callee\n"
    "  s                                 children (time with callees) or self only\n"
    "  i                                 what this profile does not show, and what went wrong\n"
    "  Tab                               next event\n"
    "  h, ?                              this help\n"
    "  q                                 quit\n";

static size_t body_lines(void)
{
    return LINES > 3 ? (size_t)LINES - 2 : 1;
}

/* Puts text there.  A terminal whose locale has no UTF-8 gets a tilde where names were cut, and a
 * question mark for other characters that it could not show; each has one column as before. */
static void put_text(int y, int x, const char *text)
{
    if (MB_CUR_MAX > 1) {
        mvaddnstr(y, x, text, -1);
        return;
    }
    CLEANUP(strbuf_done) struct strbuf plain = {0};
    for (const char *at = text; *at;) {
        bool is_cut = strncmp(at, "…", sizeof("…") - 1) == 0;
        strbuf_putc(&plain, is_cut ? '~' : *at & 0x80 ? '?' : *at);
        for (at++; (*at & 0xc0) == 0x80;)
            at++;
    }
    mvaddnstr(y, x, strbuf_text(&plain), -1);
}

static void draw_bar(int y, const char *text)
{
    attrset(COLOR_PAIR(COLOUR_BAR) | A_REVERSE);
    move(y, 0);
    for (int x = 0; x < COLS; x++)
        addch(' ');
    CLEANUP(strbuf_done) struct strbuf shown = {0};
    strbuf_put_short(&shown, text, strlen(text), COLS > 2 ? (size_t)COLS - 2 : 1);
    put_text(y, 1, strbuf_text(&shown));
    attrset(A_NORMAL);
}

static void draw(struct screen *s)
{
    const struct browser *b = &s->browser;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t room = body_lines();
    if (b->selected < s->top)
        s->top = b->selected;
    if (b->selected >= s->top + room)
        s->top = b->selected - room + 1;
    erase();
    browser_put_title(b, &text);
    draw_bar(0, strbuf_text(&text));
    for (size_t i = 0; i < room && s->top + i < b->line_count; i++) {
        size_t line = s->top + i;
        double share = browser_share(b, line);
        strbuf_clear(&text);
        browser_put_line(b, line, (size_t)COLS, &text);
        int look = share >= 5     ? COLOR_PAIR(COLOUR_HOT)
                   : share >= 0.5 ? COLOR_PAIR(COLOUR_WARM)
                                  : (int)A_NORMAL;
        attrset((line == b->selected ? (int)A_REVERSE : 0) | look);
        put_text((int)i + 1, 0, strbuf_text(&text));
        if (line == b->selected)
            for (int x = getcurx(stdscr); x < COLS - 1 && getcury(stdscr) == (int)i + 1; x++)
                addch(' ');
        attrset(A_NORMAL);
    }
    draw_bar(LINES - 1, s->message[0] ? s->message
                                      : "h help  Enter open  / search  f d t zoom  Esc back  "
                                        "a annotate  q quit");
    s->message[0] = '\0';
    refresh();
}

/* Shows text that is longer than the screen until a key leaves it. */
static void page(const char *title, const char *text)
{
    size_t top = 0, count = 0;
    for (const char *c = text; *c; c++)
        count += *c == '\n';
    for (;;) {
        size_t room = body_lines(), last = count > room ? count - room : 0;
        const char *at = text;
        top = top > last ? last : top;
        erase();
        draw_bar(0, title);
        for (size_t i = 0; i < top && at; i++)
            at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
        for (size_t i = 0; at && *at && i < room; i++) {
            size_t length = strcspn(at, "\n");
            CLEANUP(strbuf_done) struct strbuf line = {0};
            strbuf_put_safe(&line, at, length, (size_t)COLS * 4);
            put_text((int)i + 1, 0, strbuf_text(&line));
            at += length + (at[length] == '\n');
        }
        draw_bar(LINES - 1, "Up Down PgUp PgDn scroll   q back");
        refresh();
        switch (getch()) {
        case KEY_DOWN:
        case 'j':
            top++;
            break;
        case KEY_UP:
        case 'k':
            top -= top > 0;
            break;
        case KEY_NPAGE:
        case ' ':
            top += room;
            break;
        case KEY_PPAGE:
            top = top > room ? top - room : 0;
            break;
        case KEY_HOME:
            top = 0;
            break;
        case KEY_END:
            top = last;
            break;
        case KEY_RESIZE:
            break;
        case 'q':
        case KEY_ESCAPE:
        case KEY_LEFT:
        case KEY_BACKSPACE:
        case '\n':
        case ERR:
            return;
        default:
            break;
        }
    }
}

static void annotate(struct screen *s)
{
    struct browser *b = &s->browser;
    uint32_t symbol = browser_symbol(b, b->selected);
    if (symbol == IDTABLE_NONE || !b->profile->calls.symbols[symbol].name) {
        snprintf(s->message, sizeof(s->message), "No function with a name on this line.");
        return;
    }
    uint32_t event =
        b->table.event == ROWS_ALL_EVENTS ? annotate_main_event(b->profile) : b->table.event;
    struct annotation a;
    annotate_build(&a, b->profile, event, symbol, NULL);
    if (a.samples) {
        CLEANUP(strbuf_done) struct strbuf text = {0};
        struct annotate_view view = {.columns = (size_t)COLS};
        annotate_put_text(&a, b->profile, &view, &text);
        page(b->profile->calls.symbols[symbol].name, strbuf_text(&text));
    } else {
        snprintf(s->message, sizeof(s->message), "No samples in this function itself.");
    }
    annotate_done(&a);
}

static void show_notes(struct screen *s)
{
    const struct browser *b = &s->browser;
    struct notes notes = {0};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    profile_file_notes(b->profile, true, &notes);
    for (uint32_t i = 0; i < b->profile->event_count; i++)
        if (b->profile->events[i].samples)
            profile_event_notes(b->profile, i, &notes);
    for (size_t i = 0; i < notes.count; i++) {
        /* Wrapped by hand: the pager cuts. */
        const char *at = notes.items[i];
        size_t width = COLS > 20 ? (size_t)COLS - 2 : 20;
        while (*at) {
            size_t length = strlen(at);
            if (length > width)
                for (length = width; length > 0 && at[length] != ' ';)
                    length--;
            length = length ? length : width;
            strbuf_append(&text, at, length);
            strbuf_putc(&text, '\n');
            at += length;
            at += strspn(at, " ");
        }
        strbuf_putc(&text, '\n');
    }
    if (!notes.count)
        strbuf_puts(&text, "Nothing was lost, and there are no warnings.\n");
    notes_done(&notes);
    page("Limits of this profile", strbuf_text(&text));
}

static void search(struct screen *s, int key)
{
    if (key == '/') {
        draw_bar(LINES - 1, "Search: ");
        echo();
        curs_set(1);
        char word[sizeof(s->search)];
        int r = mvgetnstr(LINES - 1, 9, word, (int)sizeof(word) - 1);
        noecho();
        curs_set(0);
        if (r == ERR || !word[0])
            return;
        snprintf(s->search, sizeof(s->search), "%s", word);
    }
    if (s->search[0] && !browser_search(&s->browser, s->search, key == 'N'))
        snprintf(s->message, sizeof(s->message), "'%.100s' was not found in the open lines.",
                 s->search);
}

static void zoom(struct screen *s, enum browser_zoom_kind kind)
{
    if (browser_zoom(&s->browser, kind))
        s->top = 0;
    else
        snprintf(s->message, sizeof(s->message), "Nothing to zoom into on this line.");
}

/* Keys that move through the lines.  Whether it is one. */
static bool act_move(struct browser *b, int key)
{
    long room = (long)body_lines();
    switch (key) {
    case KEY_DOWN:
    case 'j':
        browser_move(b, 1);
        return true;
    case KEY_UP:
    case 'k':
        browser_move(b, -1);
        return true;
    case KEY_NPAGE:
    case ' ':
        browser_move(b, room);
        return true;
    case KEY_PPAGE:
        browser_move(b, -room);
        return true;
    case KEY_HOME:
        browser_move(b, -(long)b->line_count);
        return true;
    case KEY_END:
        browser_move(b, (long)b->line_count);
        return true;
    default:
        return false;
    }
}

/* Keys that change what the lines are.  Whether it is one. */
static bool act_view(struct screen *s, int key)
{
    struct browser *b = &s->browser;
    switch (key) {
    case '\n':
    case '+':
    case KEY_ENTER:
    case KEY_RIGHT:
        browser_toggle(b);
        return true;
    case 'e':
    case 'E':
        browser_open_all(b, key == 'e');
        return true;
    case 'f':
        zoom(s, ZOOM_FUNCTION);
        return true;
    case 'd':
        zoom(s, ZOOM_DSO);
        return true;
    case 't':
        zoom(s, ZOOM_COMM);
        return true;
    case KEY_ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
    case 127:
        if (!browser_unzoom(b))
            snprintf(s->message, sizeof(s->message), "This is everything; q quits.");
        return true;
    case 'c':
        browser_set_order(b, b->view.order == CALLTREE_CALLER ? CALLTREE_CALLEE : CALLTREE_CALLER);
        snprintf(s->message, sizeof(s->message), "Call trees %s first.",
                 b->view.order == CALLTREE_CALLER ? "caller" : "callee");
        return true;
    case 's':
        browser_set_children(b, !b->view.rows.children);
        return true;
    case '\t':
        browser_next_table(b);
        return true;
    default:
        return false;
    }
}

/* False: the browser is to end. */
static bool act(struct screen *s, int key)
{
    if (act_move(&s->browser, key) || act_view(s, key))
        return true;
    switch (key) {
    case 'q':
    case CONTROL('c'):
        return false;
    case '/':
    case 'n':
    case 'N':
        search(s, key);
        break;
    case 'a':
        annotate(s);
        break;
    case 'i':
        show_notes(s);
        break;
    case 'h':
    case '?':
    case KEY_F(1):
        page("Keys", help_text);
        break;
    default: /* KEY_RESIZE: drawn again in any case */
        break;
    }
    return true;
}

int browser_run(struct profile *profile, const struct profile_view *view, struct error *err)
{
    const char *terminal = getenv("TERM");
    struct screen s = {0};
    int r = library_load(&curses_library, err);
    if (r < 0)
        return r;
    setlocale(LC_CTYPE, "");
    set_escdelay(50);
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return error_set(err, -ENOTTY, "unknown terminal '%.40s'; use --stdio",
                         terminal ? terminal : "");
    browser_init(&s.browser, profile, view);
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    if (has_colors() && view->colour) {
        start_color();
        use_default_colors();
        init_pair(COLOUR_HOT, COLOR_RED, -1);
        init_pair(COLOUR_WARM, COLOR_GREEN, -1);
        init_pair(COLOUR_BAR, -1, -1);
    }
    int key;
    do {
        draw(&s);
        key = getch();
    } while (key != ERR && act(&s, key));
    endwin();
    delscreen(screen);
    browser_done(&s.browser);
    return 0;
}

#else

int browser_run(struct profile *profile, const struct profile_view *view, struct error *err)
{
    (void)profile, (void)view;
    return error_set(err, -ENOSYS, "assay was built without ncurses and has no browser");
}

#endif
