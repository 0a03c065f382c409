# SPDX-License-Identifier: MIT
"""What verbs print: tables that fit the terminal, and results for programs where they are asked for."""
import csv
import io
import json
import os
import pathlib
import re
import sqlite3

from harness import *
from pages import trouble
from terminal import Terminal

# Metrics follow from the variant, the size and the round: small sizes are much faster, large ones are the same.
PROGRAM = """#!/bin/sh
case $1 in new) time=$((100 - ($2 < 4) * 40));; *) time=100;; esac
echo "assay.metric delay $((time * 10 + $3 % 3)) ms" > /proc/self/fd/$ASSAY_METRICS_FD
"""

SPEC = """name: demo
question: which is faster, and how does a question of many words fit a narrow terminal?
command: ['./program', '{variant}', '{size}', '{round}']
factors:
  variant: [old, new]
  size: [SIZES]
metrics: {delay: {better: lower, unit: ms, headline: true}}
rounds: 8
warmup: 0
baseline: {variant: old}
"""


def store(sizes=range(1, 19)):
    """Experiments 1 and 2, alike: of 18 sizes three are faster with the new variant."""
    pathlib.Path("program").write_text(PROGRAM)
    os.chmod("program", 0o755)
    pathlib.Path("demo.yaml").write_text(SPEC.replace("SIZES", ", ".join(map(str, sizes))))
    for seed in "12":
        assay("run", "-q", "--fresh", "--seed", seed, "demo.yaml", check=0)


def on_terminal(columns, *args, **environment):
    """What assay writes on a terminal of so many columns, with its control sequences."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    with Terminal(["env", *settings, ASSAY, *args], columns=columns) as terminal:
        terminal.finish()
        return terminal.output


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m|\r", "", text)


@test
def tables_fit_the_terminal():
    store()
    for args in (["show", "1"], ["show", "1", "--all"], ["compare", "variant=old", "variant=new"],
                 ["compare", "1", "2"], ["compare", "1", "2", "--all"], ["answers", "1"], ["list"]):
        for columns in (40, 80, 200):
            text = plain(on_terminal(columns, *args))
            contains(text, "demo" if args[0] == "list" else "delay")
            for line in text.splitlines():
                if len(line) > columns:
                    raise AssertionError(f"{args} on {columns} columns: {len(line)}: {line!r}")


@test
def a_label_without_room_keeps_its_end():
    """Where only the end tells two cells apart, a cut would make them one."""
    pathlib.Path("label.yaml").write_text(
        "name: label\ncommand: ['true', '{configuration_of_the_machine}', '{size}']\nrounds: 2\nwarmup: 0\n"
        "factors: {configuration_of_the_machine: [everything-that-can-be-turned-on], size: [1, 2]}\n")
    assay("run", "-q", "label.yaml", check=0)
    for text in (plain(on_terminal(40, "show")), plain(on_terminal(80, "show")), assay("show", check=0).stdout):
        words = " ".join(text.split())
        for size in (1, 2):
            contains(words, f"configuration_of_the_machine=everything-that-can-be-turned-on size={size} ")


@test
def what_moved_is_first_and_what_did_not_is_folded():
    store()
    text = assay("show", "1", check=0).stdout
    cells = re.findall(r"^variant=(\w+) size=(\d+)", text, re.M)
    equal(cells[:3], [("new", "1"), ("new", "2"), ("new", "3")], "what moved is first")
    equal({variant for variant, _ in cells[3:]}, {"old"}, "then the baseline; what did not move is folded")
    contains(text, "… 15 cells did not change for certain; --all lists them")
    equal(len(re.findall(r"^variant=", assay("show", "1", "--all", check=0).stdout, re.M)) >= 36, True, "all")
    text = assay("compare", "variant=old", "variant=new", check=0).stdout
    equal(re.findall(r"^size=(\d+)", text, re.M)[:3], ["1", "2", "3"], "what moved is first")
    contains(text, "… 15 headline rows did not change for certain; --all lists them")


@test
def ratios_are_drawn_where_the_terminal_can():
    store([1, 2, 8])
    for args in (["show", "1"], ["compare", "variant=old", "variant=new"]):
        lines = plain(on_terminal(200, *args)).splitlines()
        bars = [line for line in lines if "●" in line]
        equal(len(bars), 3, f"bars of {args}")
        faster = [line for line in bars if "faster" in line or "less" in line]
        equal(len(faster), 2, "two of them moved")
        for line in faster:
            equal(line.index("●") < line.index("┊"), True, f"less is left of 1: {line}")
        still, = set(bars) - set(faster)
        lacks(still, "┊")  # the point is where 1 is
        columns = {line.index("┊") for line in faster} | {still.index("●")}
        equal(len(columns), 1, "1 is in one column")
        for text in (plain(on_terminal(40, *args)), plain(on_terminal(200, *args, LC_ALL="C")),
                     assay(*args, check=0).stdout):
            lacks(text, "●")
    # A counter that is far beyond the headlines' scale is an arrow at its end.
    pathlib.Path("wide").write_text("#!/bin/sh\nexec > /proc/self/fd/$ASSAY_METRICS_FD\n"
                                    'echo "assay.metric delay $((100 + $1 * 10 + $2 % 2)) ms"\n'
                                    'echo "assay.metric misses $((1 + $1 * 1000)) "\n')
    os.chmod("wide", 0o755)
    pathlib.Path("wide.yaml").write_text(
        "name: wide\ncommand: ['./wide', '{n}', '{round}']\nfactors: {n: [0, 1]}\nrounds: 8\nwarmup: 0\n"
        "metrics: {delay: {better: lower, unit: ms, headline: true}}\n")
    assay("run", "-q", "wide.yaml", check=0)
    lines = plain(on_terminal(200, "compare", "n=0", "n=1")).splitlines()
    line, = [line for line in lines if "misses" in line]
    equal("»" in line and "●" not in line, True, line)


@test
def a_terminal_without_a_name_gets_no_sequences():
    store([1, 2])
    for args in (["show", "1"], ["compare", "1", "2"], ["answers", "1"], ["list"], ["history", "delay"]):
        contains(on_terminal(80, *args, TERM="xterm") + "\x1b", "\x1b")
        for name in ("", "dumb"):
            lacks(on_terminal(80, *args, TERM=name), "\x1b")
    contains(on_terminal(80, "show", "1", TERM="xterm"), "\x1b[1m")
    lacks(on_terminal(80, "show", "1", TERM="xterm", NO_COLOR="1"), "\x1b")


@test
def what_failed_and_what_was_stopped_is_told_by_every_verb():
    needs_file_store("the state of an experiment is changed by hand")
    os.environ["ASSAY_DB"] = "trouble.db"
    trouble("failed", ["plain", "flaky", "broken"], [0])
    views = (["show", "1"], ["compare", "variant=plain", "variant=flaky"], ["answers", "1"])
    for words in views:
        text = assay(*words, check=0).stdout
        equal(bool(re.search(r"^\d+ of \d+ runs failed, in 2 of 3 cells", text, re.M)), True, f"{words}: {text}")
        contains(text, "exit code 3): opening data: <b>no such file</b>")
        contains(text, "exit code 7): late")
        lacks(text, "was stopped")
    contains(assay("show", "1", check=0).stdout, "variant=broken")
    with sqlite3.connect("trouble.db") as db:
        db.execute("UPDATE experiment SET state = 'stopped'")
    db.close()
    for words in views:
        contains(assay(*words, check=0).stdout, "This experiment was stopped before its end, after ")
        for columns in (40, 80):
            for line in plain(on_terminal(columns, *words)).splitlines():
                equal(len(line) <= columns, True, f"{words} on {columns} columns: {line!r}")
    trouble("allfailed", ["broken"], [0, 1], rounds=2, baseline=False)
    contains(assay("show", "2", check=0).stdout, "All 4 runs failed: there are no values to compare.")


# ---- for programs ----

# How each verb that prints documents is called here; what cannot run everywhere is tested elsewhere.
CALLS = {"ab": ["ab", "-r", "5", "-w", "0", "true", "true 1"],
         "answers": ["answers", "1"],
         "compare": ["compare", "1", "2"],
         "diff": ["diff", "a.folded", "b.folded"],
         "doctor": ["doctor", "--no-noise"],
         "events": ["events", "fault"],
         "history": ["history", "delay"],
         "import": ["import", "--db", "other.db", "go.txt"],
         "list": ["list"],
         "report": ["report", "a.folded"],
         "show": ["show", "1"],
         "stat": ["stat", "-r", "3", "--", "true"]}
ELSEWHERE = {"annotate": "annotate.py: needs a recording", "bench": "bench.py: needs a compiler",
             "bisect": "bisect.py: needs a repository", "explain": "explain.py: profiles",
             "gate": "gate.py: needs a repository", "html": "names no document of its own",
             "locks": "bill.py: traces", "sched": "bill.py: traces", "top": "top.py: a stream",
             "trace": "trace.py: traces", "vm": "vm.py: boots machines"}


def inputs():
    store([1, 2])
    pathlib.Path("a.folded").write_text("main;parse;read 30\nmain;parse 10\nmain;write 60\n")
    pathlib.Path("b.folded").write_text("main;parse;read 30\nmain;parse 10\nmain;write 160\n")
    pathlib.Path("go.txt").write_text("BenchmarkParse 100 120 ns/op\nBenchmarkParse 100 121 ns/op\n")


def options_of(verb):
    return set(re.findall(r"--(json|csv)\[=FILE\]", assay(verb, "--help", check=0).stdout))


@test
def every_verb_with_a_document_is_in_the_list():
    lines = assay("--help", check=0).stdout.splitlines()
    verbs = {line.split()[0] for line in lines if line.startswith("  ")}
    told = {verb for verb in verbs if re.fullmatch(r"[a-z]+", verb) and options_of(verb)}
    equal(sorted(told - set(CALLS) - set(ELSEWHERE)), [], "verbs with --json or --csv that no test calls")


def check_json(text, what):
    document = json.loads(text)
    equal(isinstance(document, (dict, list)), True, what)
    return document


def check_csv(text, what):
    """As csv reads it without options: a head, then rows of as many fields, whose numbers are numbers."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    equal(len(rows) > 1, True, f"{what}: rows")
    equal({len(row) for row in rows}, {len(rows[0])}, f"{what}: fields in a row")
    equal(len(set(rows[0])), len(rows[0]), f"{what}: heads {rows[0]}")
    equal("" in rows[0], False, f"{what}: a head without a name")
    figures = [name for name in rows[0] if re.search(r"_ns$|^(value|median|mean|low|high|estimate|samples|wall)$", name)]
    for row in csv.DictReader(io.StringIO(text, newline="")):
        for name in figures:
            if row[name]:
                float(row[name])
    return rows


@test
def results_for_programs_go_where_they_are_told():
    inputs()
    for verb, words in CALLS.items():
        for form in sorted(options_of(verb)):
            check = check_json if form == "json" else check_csv
            what = f"{' '.join(words)} --{form}"
            option = words.index("--") if "--" in words else len(words)
            call = lambda text: assay(*words[:option], text, *words[option:], check=0)
            printed = call(f"--{form}")
            check(printed.stdout, what)
            lacks(printed.stderr, '{"' if form == "json" else ",median")
            written = call(f"--{form}=result")
            one, other = check(printed.stdout, what), check(pathlib.Path("result").read_text(), f"{what}=FILE")
            if form == "json":
                equal(type(one) is type(other) and (isinstance(one, list) or one.keys() == other.keys()), True, what)
            else:
                equal(other[0], one[0], f"{what}: heads")
            # With a file, the text for people is printed besides it.
            try:
                check(written.stdout, what)
            except (AssertionError, ValueError, csv.Error):
                pass
            else:
                raise AssertionError(f"{what}=FILE prints the document, too")
            equal(bool(written.stdout.strip() or written.stderr.strip()), True, f"{what}=FILE prints nothing")
            result = assay(*words[:option], f"--{form}=no/such/file", *words[option:])
            equal(result.returncode not in (0, 2), True, f"{what}=no/such/file: {result.returncode}")
            contains(result.stderr, "no/such/file")


@test
def csv_keeps_hostile_texts_together():
    pathlib.Path("odd.yaml").write_text(json.dumps({
        "name": "odd", "command": ["true", "{text}"], "rounds": 2, "warmup": 0,
        "factors": {"text": ['a,b "c"', "x' y", "=1+1", "ümläut"]}}))
    assay("run", "-q", "odd.yaml", check=0)
    for words in (["show", "--csv"], ["show", "--csv", "--wide"]):
        text = assay(*words, check=0).stdout
        rows = check_csv(text, words)
        place = rows[0].index("text")
        equal({row[place] for row in rows[1:]}, {'a,b "c"', "x' y", "=1+1", "ümläut"}, words)
    try:
        import pandas
    except ImportError:
        return
    equal(set(pandas.read_csv(io.StringIO(text))["text"]), {'a,b "c"', "x' y", "=1+1", "ümläut"})


main()
