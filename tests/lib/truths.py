# SPDX-License-Identifier: MIT
"""Pairs of programs with a known difference (tests/targets/pairs), and what `assay explain` must say
of them: right, or honestly undecided, never wrong.

tests/integration/explain_pairs.py tries some of them, tests/tools/truths.py (./dev truths) all.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "targets" / "pairs"
MEASURED = 5      # runs of each side that tell the truth, before and again after the explanation
TOLD_TIMES = 1.5  # as many half widths must a change have to count as told
TOLD_SHARE = 0.15  # a reason of less than this of the largest one is not held against the program


@dataclasses.dataclass
class Cause:
    """One true cause.  name: what the reason must be called; behind: what its name, place or
    evidence must mention; never: what they must not."""
    name: str
    behind: str = ""
    never: str = ""
    sign: int = 1
    sized: bool = True  # its size is what the program itself measures
    may: bool = False   # true as well, but need not be told


@dataclasses.dataclass
class Pair:
    name: str
    case: str
    causes: list
    flags: tuple = ("-O2", "-g")
    source: str = "pair.c"
    stripped: bool = False
    kernel: bool = False  # needs the kernel's part of stacks
    # The program measures by the clock: on a busy machine with the time until it has a CPU again, so
    # that its least disturbed run tells the truth.
    by_clock: bool = False


A_OR_C = r"\bfunc_[ac]\b"
OTHERS = r"\b(parse_input|check_input|write_page)\b"
STARTUP = Cause(r"page faults|exit_group|execve|mmap|munmap|other work of the kernel|interrupts",
                sized=False, may=True, sign=0)


def also(pattern, sign=1):
    return Cause(pattern, sized=False, may=True, sign=sign)


def callers(name, case, **more):
    return Pair(name, case, [Cause(r"^func_b$", never=A_OR_C)], **more)


PAIRS = [
    callers("inlined", "INLINED"),
    Pair("inlined-less", "INLINED_LESS", [Cause(r"^func_b$", never=A_OR_C, sign=-1)]),
    callers("folded", "FOLDED"),
    Pair("shared", "SHARED", [Cause(r"^work$", r"called by .*\bfunc_b\b", A_OR_C)]),
    Pair("deep", "DEEP", [Cause(r"^work$", r"called by .*\bfunc_b\b", A_OR_C)]),
    Pair("removed", "REMOVED", [Cause(r"^extra_path$", never=A_OR_C, sign=-1)]),
    Pair("renamed", "RENAMED", [Cause(r"func_b_fresh.*func_b_old", never=A_OR_C)]),
    Pair("renamed-only", "RENAMED_ONLY", [Cause(r"^work$", r"called by .*\bfunc_c\b", r"func_[ab]")]),
    Pair("moved", "MOVED", [Cause(r"^work$", r"called by .*\bfunc_c\b", r"func_[ab]\b")]),
    Pair("sleeps", "SLEEPS", [Cause(r"^sleeping", r"pause_a_while")], kernel=True, by_clock=True),
    Pair("locks", "LOCKS", [Cause(r"^waiting for a lock .*take_lock"),
                            also(r"^sleeping .*hold_lock"), also(r"futex|nanosleep")], kernel=True),
    Pair("faults", "FAULTS", [Cause(r"^page faults$", r"touch_pages", sized=False),
                              also(r"exit_group|touch_pages|munmap")], kernel=True),
    Pair("calls", "CALLS", [Cause(r"^system call getppid$", r"ask_often", sized=False),
                            also(r"entering and leaving|ask_often|^syscall$")], kernel=True),
    Pair("copies", "COPIES", [Cause(r"mem(cpy|move)", r"copy_more", r"copy_same", sized=False),
                              also(r"copy_(blocks|more)|page faults")]),
    Pair("sorts", "SORTS", [Cause(r"compare|sort|libc", sized=False),
                            also(r"compare|sort|mem(cpy|move)|libc|page faults|mmap|exit_group")]),
    Pair("threads", "THREADS", [Cause(r"^thread_job$", never=A_OR_C, sized=False)]),
    Pair("children", "CHILDREN", [Cause(r"^child_job$", never=A_OR_C, sized=False)]),
    Pair("wakes", "WAKES", [Cause(r"^sleeping .*slow_server", sized=False),
                            also(r"nanosleep|read|write")], kernel=True),
    Pair("flushes", "FLUSHES", [Cause(r"fsync", sized=False), also(r"fsync|pwrite64|kernel")],
         kernel=True),
    Pair("same", "SAME", []),
    Pair("two", "TWO", [Cause(r"^two_more$"), Cause(r"^func_a$", sign=-1, sized=False)]),
    Pair("reads", "READS", [Cause(r"^system call read$", r"read_in_pieces", sized=False),
                            also(r"entering and leaving|read_in_pieces|^read$|clear_user|memset")],
         kernel=True),
    Pair("quadratic", "QUADRATIC", [Cause(r"^find_all$", never=A_OR_C)]),
    Pair("misses", "MISSES", [Cause(r"^walk_list$", never=A_OR_C, sign=0)]),  # which is slower, caches decide
    Pair("clones", "CLONES", [Cause(r"^cloned$", r"", A_OR_C, sized=False)]),
    Pair("tails", "TAILS", [Cause(r"^last_work$", r"called by .*\btail_b\b", r"\btail_[ac]\b")]),
    Pair("equals", "EQUALS", [Cause(r"^equal_b$", never=r"\bequal_[ac]\b")]),
    Pair("stripped-equals", "EQUALS", [Cause(r"^equal_b$", never=r"\bequal_[ac]\b")], stripped=True),
    Pair("own-names", "OWN_NAMES", [Cause(r"^mmap_clone$", never=A_OR_C),
                                    Cause(r"^sleeping .*poll_and_sleep", sized=False)], kernel=True),
    Pair("templates", "TEMPLATES", [Cause(r"render<long>", never=r"\bparse\b")], source="pair.cc"),
    Pair("lambdas", "LAMBDAS", [Cause(r"reduce", never=r"\bgather\b")], source="pair.cc"),
    Pair("virtuals", "VIRTUALS", [Cause(r"circle::draw", never=r"square", sign=-1)],
         source="pair.cc"),
    callers("no-debug-information", "INLINED", flags=("-O2",)),
    Pair("no-optimization", "SHARED", [Cause(r"^work$", r"called by .*\bfunc_b\b", A_OR_C)],
         flags=("-O0", "-g")),
    callers("stripped-inlined", "INLINED", stripped=True),
    Pair("stripped-shared", "SHARED", [Cause(r"^work$", never=A_OR_C)], stripped=True),
    Pair("stripped-removed", "REMOVED", [Cause(r"^extra_path$", never=A_OR_C, sign=-1)],
         stripped=True),
    Pair("stripped-quadratic", "QUADRATIC", [Cause(r"^find_all$", never=A_OR_C)], stripped=True),
    Pair("stripped-two", "TWO", [Cause(r"^two_more$"), Cause(r"^func_a$", sign=-1, sized=False)],
         stripped=True),
    Pair("stripped-sleeps", "SLEEPS", [Cause(r"^sleeping", sized=True)], stripped=True, kernel=True,
         by_clock=True),
    Pair("stripped-same", "SAME", [], stripped=True),

    # What an inlined function, the C library, a lock, children or memory hide.
    Pair("nested", "NESTED", [Cause(r"^render_page$", never=OTHERS)], source="more.c"),
    Pair("allocates", "ALLOCATES", [Cause(r"malloc|free|libc|make_nodes|arena|consolidate|chunk", sized=False,
                                          never=rf"{OTHERS}|no frame"),
                                    also(r"malloc|free|libc|make_nodes|arena|consolidate|chunk")], source="more.c"),
    Pair("formats", "FORMATS", [Cause(r"print|itoa|_IO_|str|mem|libc|func", r"print_lines", r"print_headings|no frame",
                                      sized=False)], source="more.c"),
    Pair("scatters", "SCATTERS", [Cause(r".", r"load_rows", sized=False, never=r"check_rows|no frame"),
                                  also(r".")], source="more.c"),
    Pair("points", "POINTS", [Cause(r"^draw_points$", r"called by draw_through through a pointer, or by")],
         source="more.c"),
    Pair("holds", "HOLDS", [Cause(r"^waiting for a lock .*want_lock|^compute_under_lock$|^holder$", sized=False),
                            also(r"compute_under_lock|holder|futex|nanosleep|want_lock|sleeping", sign=0)],
         source="more.c", kernel=True),
    Pair("opens", "OPENS", [Cause(r"^system call (newfstatat|stat)$", r"look_at_files", sized=False),
                            also(r"entering and leaving|look_at_files|stat")], source="more.c", kernel=True),
    Pair("spawns", "SPAWNS", [Cause(r"page faults|execve|exit_group|clone|vfork|other work|mmap|loader|ld-linux"
                                    r"|dl_|do_lookup|_dl|ld\.so", sized=False, never=OTHERS),
                              Cause(r".", never=OTHERS, sized=False, may=True, sign=0)],
         source="more.c", kernel=True),
    Pair("chains", "CHAINS", [Cause(r"^look_up$", never=OTHERS), also("use_table|page faults", sign=0)],
         source="more.c"),
    Pair("recurses", "RECURSES", [Cause(r"^count_ways$", never=OTHERS)], source="more.c"),
    Pair("conditions", "CONDITIONS", [Cause(r"^render_page$", sized=False),
                                      also(r"futex|waiting|sleeping|wait_for_items", sign=0)], source="more.c",
         kernel=True),
    Pair("pipes", "PIPES", [Cause(r"^system call (write|read)$", sized=False),
                            also(r"entering and leaving|send_in_pieces|write|read|futex|waiting", sign=0)],
         source="more.c", kernel=True),
    Pair("maps", "MAPS", [Cause(r"^page faults$", r"use_memory", sized=False),
                          also(r"use_memory|munmap|exit_group", sign=0)], source="more.c", kernel=True),
    Pair("many", "MANY", [Cause(r"^render_page$", never=r"small_\d")], source="more.c"),
    Pair("twins", "TWINS", [Cause(r"^twin_right$|^twin_left$", r"right", r"left_side"),
                            also(r"right_side")], source="more.c"),
    Pair("idle", "IDLE", [Cause(r"^sleeping .*wait_a_little", r"timer"), also(r"nanosleep", sign=0)],
         source="more.c", kernel=True, by_clock=True),
    Pair("leaves", "LEAVES", [Cause(r"^leaf$", r"called by .*\bcalls_leaf_b\b", r"calls_leaf_a")],
         source="more.c"),
    Pair("leaves-frame-pointers", "LEAVES", [Cause(r"^leaf$", never=r"calls_leaf_a")],
         flags=("-O2", "-g", "-fno-omit-frame-pointer"), source="more.c"),
    Pair("beside", "BESIDE", [Cause(r"^render_page$", never=r"sleeping|look_sometimes")], source="more.c"),
    Pair("same-beside", "SAME_BESIDE", [also(r"interrupts|nanosleep|kernel", sign=0)], source="more.c"),
    Pair("divided", "DIVIDED", [Cause(r"^render_page$", never=r"\bread_")], source="more.c"),
    Pair("forgets", "FORGETS", [Cause(r"^waiting \(futex\) in wait_for_result$"), also("nanosleep|make_results|futex",
                                                                                         sign=0)],
         source="more.c", kernel=True, by_clock=True),
    Pair("replaced", "REPLACED", [Cause(r"^leaf$", r"called by second_stage_again in place of second_stage$",
                                        r"calls_leaf")], source="more.c"),
    Pair("same-busy", "SAME_BUSY", [], source="more.c"),
    Pair("same-polls", "POLLS", [], source="more.c"),
    Pair("stripped-many", "MANY", [Cause(r"^render_page$", never=r"small_\d")], stripped=True, source="more.c"),
    Pair("stripped-chains", "CHAINS", [Cause(r"^look_up$", never=OTHERS), also("use_table|page faults", sign=0)],
         stripped=True, source="more.c"),
    Pair("inserted-lambda", "INSERTED", [Cause(r"lambda", r"#2|second|lambda\(long\)#3", sized=False),
                                         also(r"lambda|spin|steps|apply")], source="more.cc"),
    Pair("compares", "COMPARES", [Cause(r"compare|by_name|memcmp|sort|by_number", sized=False, never="fill_tree"),
                                  also(r"compare|by_name|by_number|sort|mem|std::|string|swap|move|libc|insert",
                                       sign=0)],
         source="more.cc"),
    Pair("strings", "STRINGS", [Cause(r"mem(cpy|move)|page faults|malloc|free|libc|string|join", sized=False,
                                      never="fill_tree", sign=-1),
                                also(r"mem|malloc|free|libc|string|append|join|munmap|brk|create", sign=0)],
         source="more.cc"),
    Pair("generics", "GENERICS", [Cause(r"filter<long, 3>|^spin$", r"filter<long", r"filter<(int|char)")], source="more.cc"),
    Pair("jumps", "JUMPS", [Cause(r"^draw_line$", r"called by circle::draw\b", r"\b(square|star)\b")],
         source="more.cc"),
    Pair("throws", "THROWS", [Cause(r"nwind|libgcc|dl_|FDE|personality|cxa|strlen|mem|free|malloc|parse_number",
                                    sized=False), also(r".", sign=0)], source="more.cc"),
    Pair("same-tree", "SAME_TREE", [], source="more.cc"),
    Pair("rust", "", [Cause(r"render|closure|spin", never=r"\b(parse|store)\b", sized=False),
                      also(r"render|spin")], source="pair.rs"),
    Pair("script", "searches", [Cause(r"_sre|sre|python|libpython|re_|SRE", sized=False),
                                also(r"sre|SRE|python|Py|mem|libc|page faults|list|object|_", sign=0)],
         source="script.py"),
    Pair("script-sleeps", "sleeps", [Cause(r"^sleeping|waiting", sized=False), also("nanosleep|futex", sign=0)],
         source="script.py", kernel=True),
    Pair("script-same", "same", [], source="script.py"),
]


COMPILERS = {".cc": "g++", ".c": "gcc", ".rs": "rustc", ".py": "python3"}


def compiler(pair):
    return COMPILERS[pathlib.Path(pair.source).suffix]


def compile_one(pair, side, program):
    source = SOURCES / pair.source
    if pair.source.endswith(".rs"):
        words = ["-O", "-g", *(["--cfg", "new"] if side == "new" else []), "-o", program, source]
    else:
        words = [*pair.flags, f"-DCASE={pair.case}", *(["-DNEW"] if side == "new" else []), "-o", program,
                 source, "-pthread"]
    subprocess.run([compiler(pair), *words], check=True)


def missing(pair):
    """Why the pair cannot be built, "" where it can."""
    for program in (compiler(pair), *(["strip", "nm"] if pair.stripped else [])):
        if not shutil.which(program):
            return f"{program} is not installed"
    return ""


def build(pair, folder):
    """Both programs, in the folder; returns their commands and the names of stripped functions."""
    commands, names = [], {}
    for side in ("base", "new"):
        if pair.source.endswith(".py"):
            commands.append(f"python3 {SOURCES / pair.source} {pair.case} {side}")
            continue
        program = pathlib.Path(folder) / f"{pair.name}-{side}"
        compile_one(pair, side, program)
        if pair.stripped:
            listed = subprocess.run(["nm", program], check=True, capture_output=True, text=True)
            for line in listed.stdout.splitlines():
                if re.match(r"[0-9a-f]+ [tTwW] ", line):
                    address, _, name = line.split()
                    names[f"{program.name}+0x{int(address, 16):x}"] = name.split(".")[0]
            subprocess.run(["strip", program], check=True)
        commands.append(str(program))
    return commands, names


def took_ms(command):
    words = [*command.split(), "x"]
    return [float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            for _ in range(MEASURED)]


@dataclasses.dataclass
class Told:
    verdict: str  # right, undecided, wrong
    words: str
    truth_ms: float = 0
    told_ms: float = float("nan")
    half_ms: float = float("nan")

    def covers(self):
        return abs(self.told_ms - self.truth_ms) <= self.half_ms


def named(text, names):
    """With the names that were stripped."""
    return re.sub(r"[\w.-]+\+0x[0-9a-f]+", lambda m: names.get(m[0], m[0]), text)


def is_told(reason):
    cost = reason["cost"]
    return (cost["significant"] and not cost["below_resolution"] and
            abs(cost["change"]) >= TOLD_TIMES * (cost["half_width"] or 0))


def matches(cause, reason, names):
    name = named(reason["name"], names)
    # "new (old in the base)" is one function where both have one name
    one = re.match(r"^(.*) \((.*) in the base\)$", name)
    if one and one[1] == one[2]:
        name = one[1]
    all_of_it = named(f"{name} {reason['where']} {reason['evidence']}", names)
    change = reason["cost"]["change"]
    return (re.search(cause.name, name) and re.search(cause.behind, all_of_it) and
            not (cause.never and re.search(cause.never, all_of_it)) and change * cause.sign >= 0)


def judge(pair, e, truth_ms, names):
    """What is to be said of one explanation."""
    wanted = [c for c in pair.causes if not c.may]
    if e["outcome"] != "explained":
        return Told("right" if not wanted else "undecided", e["outcome"], truth_ms)
    reasons = e["reasons"]
    told = [r for r in reasons if is_told(r)]
    first = ", ".join(named(r["words"], names) for r in reasons[:2])
    if not told:
        return Told("undecided" if wanted else "right", "nothing certain: " + first, truth_ms)
    if not wanted:
        return Told("wrong", first, truth_ms)
    largest = abs(told[0]["cost"]["change"])
    for reason in told:
        if (abs(reason["cost"]["change"]) >= TOLD_SHARE * largest and
                not any(matches(c, reason, names) for c in [*pair.causes, STARTUP])):
            return Told("wrong", "told: " + named(reason["words"], names) + "; "
                        + named(reason["evidence"], names).replace("\n", "; "), truth_ms)
    result = Told("right", first, truth_ms)
    for cause in wanted:
        found = [r for r in told if matches(cause, r, names)]
        if not found:
            result.verdict = "undecided"
        elif cause.sized:
            change = sum(r["cost"]["change"] for r in found) / 1e6
            half = sum(r["cost"]["half_width"] or 0 for r in found) / 1e6
            result.told_ms, result.half_ms = change, half
            # Beyond twice the interval and a tenth of the truth it is no matter of luck.
            if abs(change - truth_ms) > 2 * half + 0.1 * abs(truth_ms):
                result.verdict = "wrong"
    return result


def try_pair(pair, assay, folder, *options):
    """Builds, explains and judges."""
    (base, new), names = build(pair, folder)
    truths = [took_ms(base), took_ms(new)]
    result = subprocess.run([assay, "explain", "--json", "--no-sim", *options, base, new], text=True,
                            capture_output=True, timeout=900, stdin=subprocess.DEVNULL,
                            env=dict(os.environ, LC_ALL="C.UTF-8"))
    if result.returncode:
        raise RuntimeError(result.stderr)
    truths[0] += took_ms(base)
    truths[1] += took_ms(new)
    typical = min if pair.by_clock else statistics.median
    truth = typical(truths[1]) - typical(truths[0])
    (e,) = json.loads(result.stdout)["explanations"]
    return judge(pair, e, truth, names), e
