# SPDX-License-Identifier: MIT
"""assay bench: programs with assay.h, alone and in pairs, good ones and broken ones."""
import json
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

from harness import *

INCLUDE = ROOT / "include"
CC = os.environ.get("CC", "cc")
# Short, and none of the tests asks how long something took.
QUICK = ["-t", "20ms", "-r", "2"]
LONGER = ["-t", "200ms", "-r", "4"]

GOOD = r"""
#include <assay.h>
static uint64_t work(uint64_t x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ASSAY_KEEP(x);
    }
    return x;
}
ASSAY_BENCH(steady)
{
    uint64_t x = 1;
    ASSAY_LOOP { x = work(x, WORK); }
    ASSAY_CHECK(x != 0);
}
ASSAY_BENCH(sized, ASSAY_RANGE(n, 8, 100, 4), ASSAY_LIST(kind, 1, 2))
{
    uint64_t x = (uint64_t)kind;
    ASSAY_LOOP { x = work(x, n); }
    ASSAY_ITEMS(n);
    ASSAY_BYTES(n * 8);
    ASSAY_COUNTER("answer", 42);
}
ASSAY_BENCH(not_here) { ASSAY_SKIP("no such hardware"); ASSAY_LOOP {} }
"""


def build(source, name="prog", flags=(), compiler=CC, suffix=".c"):
    path = pathlib.Path(name.replace(".so", "") + "_source" + suffix)
    path.write_text(source)
    shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
    result = subprocess.run([*compiler.split(), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", *flags,
                             *shared, str(path), "-o", name, "-pthread"], text=True, capture_output=True)
    if result.returncode:
        raise AssertionError(result.stderr)
    return "./" + name


def body(text, head="#include <assay.h>\n"):
    return head + text + "\nASSAY_MAIN\n"


def failing(text, *args, flags=()):
    """One broken benchmark beside a good one: the good one is measured."""
    program = build(body("#include <signal.h>\nASSAY_BENCH(good) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } }\n" + text), flags=flags)
    result = assay("bench", *QUICK, "--json", *args, program, check=1)
    found = {b["name"]: b["versions"][0] for b in json.loads(result.stdout)["benchmarks"]}
    equal(found["good"]["status"], "measured")
    equal(found["bad"]["status"], "failed")
    contains(result.stderr, "assay bench: bad of ./prog: ")
    return found["bad"]["reason"]


@test
def one_program_is_listed_and_measured():
    program = build(body(GOOD, ""), flags=["-DWORK=100"])
    equal(assay("bench", "--list", program, check=0).stdout.split("\n")[:3],
          ["steady", "sized n=8 kind=1", "sized n=8 kind=2"])
    equal(assay("bench", "-l", program, check=0).stdout.count("\n"), 8)
    report = json.loads(assay("bench", *QUICK, "--json", program, check=0).stdout)
    equal(report["format"], "assay-bench-1")
    rows = {b["label"]: b for b in report["benchmarks"]}
    steady = rows["steady"]["versions"][0]
    equal(steady["status"], "measured")
    equal(steady["looks_empty"], False)
    equal(len(steady["metrics"]["time"]["values"]), 2)
    equal(len(steady["samples"]), 2 * rows["steady"]["samples_per_round"])
    between(steady["metrics"]["time"]["median"], 20, 1e5, "a hundred multiplications in ns")
    equal(rows["sized n=32 kind=2"]["versions"][0]["counters"], {"items": 32, "bytes": 256, "answer": 42})
    equal(rows["not_here"]["versions"][0]["status"], "skipped")
    equal(rows["not_here"]["versions"][0]["reason"], "no such hardware")
    text = assay("bench", *QUICK, program, check=0).stdout
    contains(text, "skipped: no such hardware")
    contains(text, "an empty iteration takes")
    contains(text, "/item, ")


@test
def filters_choose():
    program = build(body(GOOD, ""), flags=["-DWORK=10"])

    def listed(*filters):
        return assay("bench", "-l", *[w for f in filters for w in ("-b", f)], program, check=0).stdout.split("\n")[:-1]
    equal(listed("st*"), ["steady"])
    equal(listed("n=8"), ["sized n=8 kind=1", "sized n=8 kind=2"])
    equal(listed("n=8", "n=100", "kind=2"), ["sized n=8 kind=2", "sized n=100 kind=2"])
    equal(listed("sized n=8 kind=1"), ["sized n=8 kind=1"])
    equal(listed("steady", "not*"), ["steady", "not_here"])
    result = assay("bench", "-b", "nothing", program, check=1)
    contains(result.stderr, "no benchmark fits 'nothing'; --list shows the 8 that there are")


@test
def two_versions_are_judged():
    old = build(GOOD, "old.so", flags=["-DWORK=100"])
    new = build(GOOD, "new.so", flags=["-DWORK=200"])
    report = json.loads(assay("bench", "-t", "200ms", "-r", "30", "--json", "-b", "steady", old, new, check=0).stdout)
    found = report["benchmarks"][0]["comparison"]["time"]
    equal(found["verdict"], "worse")
    equal(found["stands"], True)
    between(found["estimate"], 1.6, 2.4, "twice the work")
    equal([v["name"] for v in report["versions"]], ["old", "new"])
    report = json.loads(assay("bench", "-t", "200ms", "-r", "30", "--json", "-b", "steady", new, old, check=0).stdout)
    equal(report["benchmarks"][0]["comparison"]["time"]["verdict"], "better")
    text = assay("bench", "-t", "20ms", "-r", "8", "-b", "s*", old, new, check=0).stdout
    contains(text, "all 7 benchmarks, time: ")
    equal(report["seed"] > 0, True)


def on_terminal(columns, *args):
    """What assay writes on a terminal of so many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.execve(ASSAY, [ASSAY, *args], dict(os.environ, TERM="xterm"))
    text = b""
    while True:
        try:
            text += os.read(terminal, 65536)
        except OSError:  # it has ended
            break
    os.close(terminal)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
    return text.decode()


@test
def terminals_of_any_width_are_fitted():
    old = build(GOOD, "old.so", flags=["-DWORK=100"])
    new = build(GOOD, "new.so", flags=["-DWORK=200"])
    for columns in (40, 80):
        for programs in ([old], [old, new]):
            text = on_terminal(columns, "bench", "-q", "-t", "20ms", "-r", "8", "-b", "s*", *programs)
            plain = re.sub("\033\\[[0-9;]*m", "", text)
            lines = plain.splitlines()
            for line in lines:
                equal(len(line) <= columns, True, f"{columns} columns: {line!r}")
            contains(" ".join(plain.split()), "sized n=32 kind=2")
            # Heads stand above the columns, or where there is no room for these, before the values.
            equal(any(line.startswith(" benchmark  ") for line in lines), columns == 80, plain)
            equal("   steady" in lines, columns == 40, plain)
            if len(programs) > 1:
                contains(text, "\033[3")
    equal("\033" in assay("bench", *QUICK, old, new, check=0).stdout, False, "colour without a terminal")


@test
def one_version_may_lack_benchmarks():
    old = build(GOOD + "ASSAY_BENCH(gone) { ASSAY_LOOP {} }", "old.so", flags=["-DWORK=10"])
    new = build(GOOD + "ASSAY_BENCH(fresh) { ASSAY_LOOP {} }", "new.so", flags=["-DWORK=10"])
    result = assay("bench", *QUICK, old, new, check=0)
    contains(result.stdout, "Only old has gone: not compared.")
    contains(result.stdout, "Only new has fresh: not compared.")
    result = assay("bench", *QUICK, "-b", "fresh", old, new, check=1)
    contains(result.stderr, "no benchmark in common")


@test
def a_crash_is_told_and_the_others_go_on():
    contains(failing("ASSAY_BENCH(bad) { ASSAY_LOOP { raise(SIGSEGV); } }"), "Segmentation fault (SIGSEGV)")
    reason = failing('ASSAY_BENCH(bad) { ASSAY_LOOP { fprintf(stderr, "so long\\n"); abort(); } }')
    contains(reason, "SIGABRT")
    contains(reason, "so long")
    contains(failing("ASSAY_BENCH(bad) { ASSAY_LOOP { exit(3); } }"), "exit code 3")
    contains(failing("ASSAY_BENCH(bad) { raise(SIGSEGV); ASSAY_LOOP {} }"), "SIGSEGV")


@test
def an_endless_loop_ends():
    reason = failing("ASSAY_BENCH(bad) { ASSAY_LOOP { for (;;) ASSAY_CLOBBER(); } }", "--timeout", "1s")
    contains(reason, "no answer for 1.00 s")


@test
def wrong_results_fail():
    reason = failing("ASSAY_BENCH(bad) { int x = 0; ASSAY_LOOP { ASSAY_KEEP(++x); } ASSAY_CHECK(x == -1); }")
    contains(reason, "wrong result: x == -1 does not hold (prog_source.c:")


@test
def loops_that_are_none():
    contains(failing("ASSAY_BENCH(bad) { int x = 1; ASSAY_KEEP(x); }"), "it has no loop")
    contains(failing("ASSAY_BENCH(bad) { ASSAY_LOOP { break; } }"), "left early")
    contains(failing("ASSAY_BENCH(bad) { ASSAY_LOOP { return; } }"), "left early")
    contains(failing("ASSAY_BENCH(bad) { ASSAY_LOOP { ASSAY_CLOBBER(); } ASSAY_LOOP { ASSAY_CLOBBER(); } }"),
             "more than one loop")


@test
def a_thread_that_leaves_ends_it_for_all():
    # One of several may skip, fail or leave; the others would wait for it for ever.
    text = """
    ASSAY_BENCH(leaves, ASSAY_THREADS(1, 2, 3)) { int x = 1; ASSAY_LOOP {
        ASSAY_KEEP(x++); if (x > 100 && ASSAY_THREAD == ASSAY_THREAD_COUNT - 1) break; } }
    ASSAY_BENCH(first_leaves, ASSAY_THREADS(2)) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); if (ASSAY_THREAD == 0) break; } }
    ASSAY_BENCH(one_skips, ASSAY_THREADS(2, 3)) { int x = 1; if (ASSAY_THREAD == 1) ASSAY_SKIP("not thread 1");
        ASSAY_LOOP { ASSAY_KEEP(x++); } }
    ASSAY_BENCH(all_skip, ASSAY_THREADS(2, 3)) { int x = 1; ASSAY_SKIP("none"); ASSAY_LOOP { ASSAY_KEEP(x++); } }
    ASSAY_BENCH(no_loop, ASSAY_THREADS(2)) { int x = 1; ASSAY_KEEP(x); }
    ASSAY_BENCH(second_fails, ASSAY_THREADS(2)) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } ASSAY_CHECK(ASSAY_THREAD == 0); }
    ASSAY_BENCH(good, ASSAY_THREADS(2)) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } }"""
    report = json.loads(assay("bench", *QUICK, "--json", build(body(text)), check=1).stdout)
    found = {}
    for b in report["benchmarks"]:
        version = b["versions"][0]
        found.setdefault(b["name"], set()).add((version["status"], (version["reason"] or "").split(":")[0]))
    equal(found, {"leaves": {("failed", "its loop was left early")}, "first_leaves": {("failed", "its loop was left early")},
                  "one_skips": {("skipped", "not thread 1")}, "all_skip": {("skipped", "none")},
                  "no_loop": {("failed", "it has no loop")}, "second_fails": {("failed", "wrong result")},
                  "good": {("measured", "")}})


@test
def timers_and_locales_are_the_benchmarks_own():
    # A timer that interrupts the worker while it waits, and a library that writes numbers with commas.
    text = """
    static void tick(int signal) { (void)signal; }
    ASSAY_BENCH(timer)
    {
        struct sigaction action = {.sa_handler = tick};
        struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
        int x = 1;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        ASSAY_LOOP { for (int i = 0; i < 100; i++) ASSAY_KEEP(x++); }
        setitimer(ITIMER_REAL, &never, NULL);
    }
    ASSAY_BENCH(locale) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } ASSAY_COUNTER("half", 0.5); ASSAY_COUNTER("big", -1e300); }"""
    commas = """
    #include <stdarg.h>
    #include <stdio.h>
    static inline int with_commas(char *out, size_t size, const char *format, ...)
    {
        va_list values;
        va_start(values, format);
        int length = vsnprintf(out, size, format, values);
        va_end(values);
        for (char *p = out; *p && format[1] == '.'; p++)
            if (*p == '.') *p = ',';
        return length;
    }
    #define snprintf with_commas
    """
    head = "#define _GNU_SOURCE\n" + commas + "#include <signal.h>\n#include <sys/time.h>\n#include <assay.h>\n"
    report = json.loads(assay("bench", *QUICK, "--json", build(body(text, head)), check=0).stdout)
    equal(report["benchmarks"][1]["versions"][0]["counters"], {"half": 0.5, "big": -1e300})


@test
def figures_that_are_none_are_told():
    contains(failing('ASSAY_BENCH(bad) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } ASSAY_COUNTER("ratio", __builtin_nan("")); }'),
             "the number that it gives with 'ratio' is")
    contains(failing('ASSAY_BENCH(bad) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } ASSAY_COUNTER("cache hits", 1); }'),
             "'cache hits' cannot be the name of a counter")


@test
def a_process_left_behind_does_not_hide_an_end():
    # The child has a session and the pipe of its own, and lives on; its parent has ended.
    text = """
    ASSAY_BENCH(leaver)
    {
        if (fork() == 0) { setsid(); for (int i = 0; i < 600 && access("enough", F_OK); i++) usleep(100000); _exit(0); }
        ASSAY_LOOP { _exit(7); }
    }"""
    program = build(body(text, "#define _GNU_SOURCE\n#include <unistd.h>\n#include <assay.h>\n"))
    try:
        contains(assay("bench", *QUICK, program, check=1).stderr, "leaver of ./prog: ended by itself with exit code 7")
    finally:
        pathlib.Path("enough").touch()


@test
def names_of_other_languages():
    # Filled in by hand, as another language does.
    text = """
    static void run(struct assay_run *assay) { ASSAY_LOOP { ASSAY_CLOBBER(); } }
    #define NAMED(id, text) \\
        static const struct assay_benchmark id = {text, "a file.c", run, __LINE__, 0, {ASSAY_NOTHING_}}; \\
        ASSAY_SECTION_ static const struct assay_benchmark *const entry_##id = &id;
    NAMED(one, "Vec<u8>::\\"push\\"[0]")
    NAMED(two, "größe%s")
    #ifdef BLANK
    NAMED(three, "push a string")
    #endif
    """
    program = build(body(text))
    equal(assay("bench", "-l", program, check=0).stdout, 'Vec<u8>::"push"[0]\ngröße%s\n')
    equal(assay("bench", "-l", "-b", 'Vec<u8>::"push"[0]', program, check=0).stdout, 'Vec<u8>::"push"[0]\n')
    contains(assay("bench", *QUICK, program, check=0).stdout, "größe%s")
    contains(assay("bench", "-l", build(body(text), flags=["-DBLANK"]), check=1).stderr,
             "'push a string' cannot be the name of a benchmark")


@test
def work_that_was_optimised_away_is_told():
    # Two short rounds may meet only layouts in which any loop takes two cycles.
    program = build(body("ASSAY_BENCH(bad) { int x = 1; ASSAY_LOOP { x = x * 3 + 1; } (void)x; }"))
    report = json.loads(assay("bench", *LONGER, "--json", program, check=0).stdout)
    equal(report["benchmarks"][0]["versions"][0]["looks_empty"], True)
    contains(assay("bench", *LONGER, program, check=0).stdout, "The compiler has removed the work")


@test
def output_is_no_matter():
    program = build(body('ASSAY_BENCH(loud) { ASSAY_LOOP { printf("s 1 2 3\\n"); fprintf(stderr, "x\\n"); } fflush(stdout); }'))
    result = assay("bench", *QUICK, program, check=0)
    lacks(result.stdout, "s 1 2 3")
    contains(assay("bench", *QUICK, "--show-output", program, check=0).stderr, "s 1 2 3")


@test
def files_that_are_no_benchmarks():
    contains(assay("bench", "./nothing", check=127).stderr, "./nothing: No such file or directory")
    contains(assay("bench", ".", check=1).stderr, "is a directory")
    contains(assay("bench", "/bin/true", check=1).stderr, "has no benchmarks of assay.h in it")
    pathlib.Path("text").write_text("hello\n")
    contains(assay("bench", "./text", check=1).stderr, "neither an executable nor a shared object")
    pathlib.Path("script").write_text("#!/bin/sh\necho hello >&2\nexit 4\n")
    contains(assay("bench", "./script", check=126).stderr, "Permission denied")
    os.chmod("script", 0o755)
    result = assay("bench", "./script", check=1)
    contains(result.stderr, "does not answer as a program with benchmarks does")
    contains(result.stderr, "hello")
    contains(assay("bench", build(body("")), check=1).stderr, "has no benchmarks")
    contains(assay("bench", build("int x;\n", "none.so"), check=1).stderr, "has no benchmarks of assay.h in it")
    lost = build("#include <assay.h>\nint lost(void);\nASSAY_BENCH(a) { ASSAY_LOOP { ASSAY_KEEP(lost()); } }", "lost.so")
    contains(assay("bench", lost, check=1).stderr, "undefined symbol: lost")
    build("#include <assay.h>\nASSAY_BENCH(a) { ASSAY_LOOP {} }", "a.o", flags=["-c"])
    contains(assay("bench", "a.o", check=1).stderr, "is an object file; link it")
    own = build("#include <assay.h>\nASSAY_BENCH(a) { ASSAY_LOOP {} }\nint main(void) { return 0; }")
    contains(assay("bench", own, check=1).stderr, "is ASSAY_MAIN, or a call of assay_main, in it?")
    contains(assay("bench", check=2).stderr, "name a program with benchmarks")


@test
def headers_compile_everywhere():
    # Without casts of its own, so that what is told is the header's.
    text = GOOD.replace("WORK", "3").replace("(uint64_t)kind", "1 + 0 * (kind > 1)")
    strict = ["-pedantic-errors", "-Wshadow", "-Wconversion", "-Wcast-qual"]
    for compiler, standards, suffix in (("gcc", ["c11", "gnu17"], ".c"), ("clang", ["c11"], ".c"),
                                        ("g++", ["c++17", "c++20"], ".cc"), ("clang++", ["c++17", "c++20"], ".cc")):
        if not shutil.which(compiler):
            continue
        for standard in standards:
            more = ["-Weverything"] if "clang" in compiler else ["-Wlogical-op", "-Wdouble-promotion", "-Wundef"]
            more += ["-Wold-style-cast"] if suffix == ".cc" else []
            more += ["-Wuseless-cast", "-Wzero-as-null-pointer-constant", "-Weffc++"] if compiler == "g++" else []
            program = build(body(text, ""), "strict", [f"-std={standard}", *strict, *more], compiler, suffix)
            equal(assay("bench", "-l", program, check=0).stdout.count("\n"), 8, compiler + standard)
    equal(assay("bench", *QUICK, "-b", "steady", program, check=0).stderr, "")


@test
def several_files_and_exceptions_in_cpp():
    if not shutil.which("g++"):
        skip("g++ is not installed")
    pathlib.Path("two.c").write_text("#include <assay.h>\nASSAY_BENCH(second) { int x = 2; ASSAY_LOOP { ASSAY_KEEP(x++); } }")
    subprocess.run([CC, "-c", f"-I{INCLUDE}", "two.c", "-o", "two.o"], check=True)
    program = build(body("ASSAY_BENCH(first) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } }\n"
                         "ASSAY_BENCH(bad) { ASSAY_LOOP { throw 1; } }"), flags=["two.o"], compiler="g++", suffix=".cc")
    subprocess.run(["strip", program], check=True)
    result = assay("bench", *QUICK, "--json", program, check=1)
    found = {b["name"]: b["versions"][0] for b in json.loads(result.stdout)["benchmarks"]}
    equal(sorted(found), ["bad", "first", "second"])
    contains(found["bad"]["reason"], "an exception left the benchmark")


@test
def threads_run_together():
    text = """
    static int here, most;
    ASSAY_BENCH(both, ASSAY_THREADS(1, 3))
    {
        ASSAY_LOOP {
            int now = __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
            if (now > most) most = now;
            for (int i = 0; i < 1000; i++) ASSAY_CLOBBER();
            __atomic_sub_fetch(&here, 1, __ATOMIC_SEQ_CST);
        }
        ASSAY_CHECK(ASSAY_THREAD < ASSAY_THREAD_COUNT);
        ASSAY_COUNTER("threads-here", ASSAY_THREAD_COUNT);
    }"""
    report = json.loads(assay("bench", *QUICK, "--json", build(body(text)), check=0).stdout)
    equal([b["versions"][0]["counters"]["threads-here"] for b in report["benchmarks"]], [1, 3])


@test
def setup_of_each_iteration_is_not_timed():
    text = """
    static int fresh;
    ASSAY_BENCH(with)
    {
        int used = 0;
        ASSAY_LOOP_WITH(fresh = 1) { used |= !fresh; fresh = 0; for (int i = 0; i < 500; i++) ASSAY_CLOBBER(); }
        ASSAY_CHECK(!used);
    }"""
    report = json.loads(assay("bench", *QUICK, "--json", build(body(text)), check=0).stdout)
    equal(report["benchmarks"][0]["versions"][0]["timed_by_call"], True)


@test
def setup_of_each_iteration_is_part_of_the_time_of_a_sample():
    """Short iterations with a long set-up: as many as timing alone would ask for took minutes."""
    text = """
    static volatile long k;
    static void set_up(void) { for (k = 0; k < 1000000; k++); }
    ASSAY_BENCH(with) { ASSAY_LOOP_WITH(set_up()) { for (k = 0; k < 100; k++); } }"""
    report = json.loads(assay("bench", *QUICK, "--json", build(body(text)), check=0).stdout)
    between(report["benchmarks"][0]["iterations_per_sample"], 1, 5, "iterations of a sample")


@test
def allocations_are_counted():
    if SANITIZED:
        skip("the sanitizer's own malloc is in the way")
    text = """
    ASSAY_BENCH(allocates) { ASSAY_LOOP { void *p = malloc(100); ASSAY_KEEP(p); p = realloc(p, 1000); ASSAY_KEEP(p); free(p); } }
    ASSAY_BENCH(does_not) { int x = 1; ASSAY_LOOP { ASSAY_KEEP(x++); } }"""
    for name in ("prog", "prog.so"):
        program = build(body(text) if name == "prog" else "#include <assay.h>\n" + text, name)
        report = json.loads(assay("bench", *QUICK, "--allocations", "--json", program, check=0).stdout)
        metrics = {b["name"]: b["versions"][0]["metrics"] for b in report["benchmarks"]}
        equal(metrics["allocates"]["allocations"]["median"], 2)
        equal(metrics["allocates"]["allocated"]["median"], 1100)
        equal(metrics["does_not"]["allocations"]["median"], 0)


@test
def instructions_are_exact():
    if SANITIZED or not shutil.which("valgrind"):
        skip("valgrind is not installed, or assay is built with sanitizers")
    text = 'ASSAY_BENCH(counted) { ASSAY_LOOP { __asm__ volatile(".rept 1000\\nnop\\n.endr"); } }'
    for name in ("prog", "prog.so"):
        program = build(body(text) if name == "prog" else "#include <assay.h>\n" + text, name)
        report = json.loads(assay("bench", *QUICK, "--sim", "--json", program, check=0).stdout)
        count = report["benchmarks"][0]["versions"][0]["metrics"]["sim:instructions"]["median"]
        between(count, 1000, 1010, name)
        equal(count, int(count), "instructions of an iteration, and no others")


@test
def growth_is_fitted():
    text = """
    static volatile int sink;
    ASSAY_BENCH(linear, ASSAY_LIST(n, 1000, 4000, 16000, 64000))
    {
        ASSAY_LOOP { for (int64_t i = 0; i < n; i++) sink = 1; }
        ASSAY_COMPLEXITY(n, LAW);
    }"""
    for law, holds in (("n", True), ("n^2", False)):
        program = build(body(text), flags=[f'-DLAW="{law}"'])
        fit = json.loads(assay("bench", "-t", "50ms", "-r", "3", "--json", program, check=0).stdout)["complexity"][0]
        equal((fit["law"], fit["holds"], fit["benchmark"]), (law, holds, "linear"))
        equal(fit["nearest"] in ("n", "n log n"), True, fit["nearest"])
    contains(assay("bench", "-t", "50ms", "-r", "3", program, check=0).stdout, "linear: does not grow like n^2: exponent 0.")
    equal(fit["certain"], True)


@test
def growth_is_of_the_parameters_that_make_n():
    text = """
    static volatile int sink;
    ASSAY_BENCH(grid, ASSAY_LIST(n, 2, 4, 8), ASSAY_LIST(k, 2, 4))
    {
        ASSAY_LOOP { for (int64_t i = 0; i < 100 * n; i++) sink = (int)k; }
        ASSAY_COMPLEXITY(n, "n");
    }
    ASSAY_BENCH(both, ASSAY_LIST(n, 20, 40, 80), ASSAY_LIST(k, 2, 5))
    {
        ASSAY_LOOP { for (int64_t i = 0; i < n * k; i++) sink = 1; }
        ASSAY_COMPLEXITY(n * k, "n");
    }"""
    fits = json.loads(assay("bench", *QUICK, "--json", build(body(text)), check=0).stdout)["complexity"]
    equal([fit["benchmark"] for fit in fits], ["grid k=2", "grid k=4", "both"])
    equal([fit["trouble"] for fit in fits], [None] * 3)


@test
def a_number_of_iterations_and_nothing_else():
    source = """
    static uint64_t count;
    ASSAY_BENCH(counted, ASSAY_LIST(n, 1, 7)) { ASSAY_LOOP { count++; ASSAY_CLOBBER(); }
        fprintf(stderr, "%d iterations, n=%d\\n", (int)count, (int)n); }"""
    for name in ("prog", "prog.so"):
        program = build(body(source) if name == "prog" else "#include <assay.h>\n" + source, name)
        equal(assay("bench", "-b", "n=7", "--iterations", "1234", program, check=0).stderr, "1234 iterations, n=7\n")
    contains(assay("bench", "--iterations", "5", program, check=2).stderr, "but 2 fit")


@test
def a_commit_is_compared_with():
    def git(*args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                       capture_output=True)
    git("init", "-q", ".")
    pathlib.Path("bench.c").write_text(body(GOOD, ""))
    pathlib.Path("make.sh").write_text(f"{CC} -O2 -I{INCLUDE} -DWORK=100 bench.c -o prog\n")
    git("add", "bench.c", "make.sh")
    git("commit", "-qm", "base")
    pathlib.Path("make.sh").write_text(f"{CC} -O2 -I{INCLUDE} -DWORK=300 bench.c -o prog\n")
    result = assay("bench", "-t", "50ms", "-r", "8", "-b", "steady", "--base", "HEAD", "--build", "sh make.sh", "prog",
                   check=0)
    contains(result.stdout, "working tree")
    contains(result.stdout, "slower")
    trees = subprocess.run(["git", "worktree", "list"], text=True, capture_output=True).stdout
    equal(len(trees.splitlines()), 1)
    contains(assay("bench", "--base", "HEAD", "--build", "true", "other", check=1).stderr, "./other")


@test
def results_are_kept_and_shown():
    old = build(GOOD, "old.so", flags=["-DWORK=100"])
    new = build(GOOD, "new.so", flags=["-DWORK=200"])
    result = assay("bench", "-t", "20ms", "-r", "8", "--save", "kept", "--html", "report.html", "--json=out.json",
                   "-b", "s*", old, new, check=0)
    contains(result.stderr, "kept as experiment 1 (kept)")
    contains(pathlib.Path("report.html").read_text(), "benchmark=steady")
    json.loads(pathlib.Path("out.json").read_text())
    contains(assay("list", check=0).stdout, "kept")
    compared = assay("compare", "version=old", "version=new", check=0).stdout
    contains(compared, "\nbenchmark=steady\n")  # the parameters of others are not its own
    assay("bench", "-t", "20ms", "-r", "8", "--save", "alone", "-b", "steady", old, check=0)
    contains(assay("show", "2", check=0).stdout, "steady")


@test
def an_interrupt_leaves_nothing_behind():
    program = build(body("ASSAY_BENCH(slow) { ASSAY_LOOP { for (;;) ASSAY_CLOBBER(); } }"))
    process = subprocess.Popen([ASSAY, "bench", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(1000):
        if workers := processes(parent=process.pid):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    equal(process.returncode, 130)
    for pid in workers:
        equal(os.path.exists(f"/proc/{pid}"), False, "a worker that is still there")


@test
def an_interrupt_while_it_builds_or_links_leaves_nothing_behind():
    os.mkdir("tree")
    os.mkdir("temporary")
    program = os.path.abspath(build(body(GOOD, ""), flags=["-DWORK=100"]))
    os.chdir("tree")
    for words in ("init -q .", "commit -q --allow-empty -m base"):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words.split()], check=True)
    seen = os.path.abspath("../seen")
    waits = f"touch {seen}; for i in $(seq 3000); do sleep 0.1; done"
    for args in (["--base", "HEAD", "--build", waits, "./prog"],
                 ["--layouts", "10", "--link", waits, "--json=r.json", program]):
        process = subprocess.Popen([ASSAY, "bench", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, TMPDIR=os.path.abspath("../temporary")), start_new_session=True)
        for _ in range(6000):
            if os.path.exists(seen):
                break
            time.sleep(0.01)
        os.unlink(seen)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=60)
        equal(process.returncode, 130, errors)
        contains(errors, "assay bench: interrupted by signal 2: nothing was measured")
        worktrees = subprocess.run(["git", "worktree", "list"], text=True, capture_output=True).stdout
        equal(len(worktrees.splitlines()), 1, worktrees)
        equal(os.listdir("../temporary"), [], "left behind")
        equal(os.listdir("."), [".git"], "left behind")


@test
def a_cpu_that_cannot_be_used_is_refused():
    program = build(body(GOOD, ""), flags=["-DWORK=100"])
    for cpu in ("1000", "100000"):
        result = assay("bench", *QUICK, "--cpu", cpu, program, check=2)
        contains(result.stderr, f"--cpu {cpu}: no such CPU, or not one that this process may use")
    own = str(min(os.sched_getaffinity(0)))
    contains(assay("bench", *QUICK, "--cpu", own, "-b", "steady", program, check=0).stdout, f" on CPU {own}, ")


@test
def figures_for_those_who_run_it():
    program = build(body(GOOD, ""), flags=["-DWORK=100"])
    result = assay("ab", "-r", "2", "-w", "0", f"{ASSAY} bench -t 10ms -r 2 -b steady {program}", "--json", check=0)
    names = [m["name"] for m in json.loads(result.stdout)["metrics"]]
    equal("steady" in names, True, names)


main()
