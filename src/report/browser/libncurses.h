/* SPDX-License-Identifier: MIT */
/* ncurses, loaded when a report is first browsed: see base/library.h. */
#ifndef ASSAY_REPORT_BROWSER_LIBNCURSES_H
#define ASSAY_REPORT_BROWSER_LIBNCURSES_H

#include "base/library.h"
#include "config.h"

#define NCURSES_NOMACROS /* what could be a macro must be a function to be found by name */
#include <ncurses.h>

#if LOAD_LIBRARIES
#define CURSES_FUNCTIONS(X) \
    X(COLOR_PAIR)           \
    X(addch)                \
    X(attrset)              \
    X(cbreak)               \
    X(curs_set)             \
    X(delscreen)            \
    X(echo)                 \
    X(endwin)               \
    X(erase)                \
    X(getch)                \
    X(getcurx)              \
    X(getcury)              \
    X(has_colors)           \
    X(init_pair)            \
    X(keypad)               \
    X(move)                 \
    X(mvaddnstr)            \
    X(mvgetnstr)            \
    X(newterm)              \
    X(nodelay)              \
    X(noecho)               \
    X(refresh)              \
    X(set_escdelay)         \
    X(start_color)          \
    X(use_default_colors)   \
    X(COLS)                 \
    X(LINES)                \
    X(stdscr)
LIBRARY_TABLE(curses, CURSES_FUNCTIONS, "libncursesw.so.6", "libncursesw6",
              "the browser on the terminal (--stdio prints without it)");
#define COLOR_PAIR curses.COLOR_PAIR
#define addch curses.addch
#define attrset curses.attrset
#define cbreak curses.cbreak
#define curs_set curses.curs_set
#define delscreen curses.delscreen
#define echo curses.echo
#define endwin curses.endwin
#define erase curses.erase
#define getch curses.getch
#define getcurx curses.getcurx
#define getcury curses.getcury
#define has_colors curses.has_colors
#define init_pair curses.init_pair
#define keypad curses.keypad
#define move curses.move
#define mvaddnstr curses.mvaddnstr
#define mvgetnstr curses.mvgetnstr
#define newterm curses.newterm
#define nodelay curses.nodelay
#define noecho curses.noecho
#define refresh curses.refresh
#define set_escdelay curses.set_escdelay
#define start_color curses.start_color
#define use_default_colors curses.use_default_colors
#define COLS (*curses.COLS)
#define LINES (*curses.LINES)
#define stdscr (*curses.stdscr)
#else
LIBRARY_LINKED(curses);
#endif

#endif
