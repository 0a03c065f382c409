# SPDX-License-Identifier: MIT
"""assay ab against real programs: what it finds, what it keeps, what it refuses, what it writes."""
import csv
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

from harness import *

QUIET = ["-e", "none"]


def ab(*args, code=0, **kwargs):
    """Runs assay ab and returns its JSON and its text."""
    result = assay("ab", "--json=ab.json", *args, check=code, **kwargs)
    with open("ab.json") as file:
        return json.load(file), result.stdout


def metric(document, name):
    found = [entry for entry in document["metrics"] if entry["name"] == name]
    if not found:
        raise AssertionError(f"no {name} in {[entry['name'] for entry in document['metrics']]}")
    return found[0]


def values(document, name, command=0):
    return metric(document, name)["commands"][command]["values"]


def comparison(document, name, command=1):
    return metric(document, name)["commands"][command]["comparison"]


def notes(document):
    return {note["id"]: note["text"] for note in document["notes"]}


def unwrapped(text):
    return " ".join(text.split())


def script(name, text):
    with open(name, "w") as file:
        file.write("#!/bin/sh\n" + text + "\n")
    os.chmod(name, 0o755)
    return "./" + name


def alive(marker):
    """Processes whose command line holds the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace")
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if marker in line.split("\0") and state != "Z" and int(pid) != os.getpid():
            found.append(line)
    return found


def gone(marker):
    """Whether no process holds the marker, after a moment to end."""
    for _ in range(100):
        if not alive(marker):
            return True
        time.sleep(0.02)
    return False


# What it finds.

@test
def a_planted_difference_is_found():
    document, text = ab("-r", 10, *QUIET, "sleep 0.002", "sleep 0.3")
    found = comparison(document, "wall")
    equal((found["verdict"], found["stands"], found["paired"]), ("worse", True, True))
    if not found["low"] > 1.5:
        raise AssertionError(f"thirty times slower, and the interval is {found}")
    contains(text, "× slower [")
    document, text = ab("-r", 10, *QUIET, "sleep 0.3", "sleep 0.002")
    equal(comparison(document, "wall")["verdict"], "better")
    contains(text, "× faster [")


@test
def a_program_is_no_faster_than_itself():
    # One in twenty may be called different by chance; four in a row are not chance.
    for _ in range(4):
        document, text = ab("-r", 10, target("spin") + " 1", target("spin") + " 1")
        if comparison(document, "wall")["verdict"] in ("same", "cannot tell"):
            if "cannot tell" not in text:
                contains(text, "no difference")
            return
    raise AssertionError("called different four times:\n" + text)


@test
def counters_tell_programs_apart():
    document, text = ab("-r", 10, "-e", "page-faults:u", target("pages") + " 100",
                        target("pages") + " 1100")
    low, high = values(document, "page-faults:u", 0), values(document, "page-faults:u", 1)
    for first, second in zip(low, high):
        between(second - first, 950, 1050, "pages more")
    equal(comparison(document, "page-faults:u")["verdict"], "worse")
    contains(text, "page-faults:u")


@test
def metrics_that_do_not_differ_are_folded():
    # Once in a while sys differs by chance; not four times in a row.
    for _ in range(4):
        _, text = ab("-r", 10, "sleep 0.001", "sleep 0.3")
        equal(len(re.findall(r"^ wall ", text, re.MULTILINE)), 1, "tables of wall")
        if not re.search(r"^ sys +median", text, re.MULTILINE):
            break
    else:
        raise AssertionError("sys has a table of its own:\n" + text)
    contains(text, " sys")
    document, text = ab("-r", 10, "--all", "sleep 0.001", "sleep 0.002")
    between(len(document["metrics"]), 5, 20, "metrics")
    for entry in document["metrics"]:
        if not re.search(rf"^ {entry['name']} +median", text, re.MULTILINE):
            raise AssertionError(f"{entry['name']} has no table:\n{text}")


@test
def what_this_machine_cannot_count_is_said_once():
    document, text = ab("-r", 8, "--verbose", "true", "true")
    missing = [event for event in document["events"] if not event["supported"]]
    if not missing:
        skip("this machine counts all default events")
    text = unwrapped(text)
    for event in missing:
        contains(event["why"], " ")
        equal(len(re.findall(rf"\b{event['name']}\b[,:]", text)), 1, f"times {event['name']} named")
    # One that was asked for is news.
    name = missing[0]["name"]
    contains(ab("-r", 2, "-e", name, "true")[1], name)


@test
def one_command_alone_is_described():
    document, text = ab("-r", 12, target("pages") + " 50")
    cell = metric(document, "wall")["commands"][0]
    equal(cell["n"], 12)
    between(cell["median"], cell["median_low"], cell["median_high"], "median")
    lacks(json.dumps(document["metrics"]), "comparison")
    contains(text, "95 % interval of the median")


@test
def few_rounds_say_what_they_assume():
    document, text = ab("-r", 4, *QUIET, "sleep 0.2", "sleep 1")
    found = comparison(document, "wall")
    equal((found["too_few"], found["verdict"], found["stands"]), (True, "worse", True))
    contains(text, "assuming log-normal noise")
    document, text = ab("-r", 1, *QUIET, "sleep 0.001", "sleep 0.05")
    found = comparison(document, "wall")
    equal((found["too_few"], found["verdict"], found["stands"]), (True, "cannot tell", False))
    contains(text, "1 round is too few")


@test
def more_than_two_commands_and_another_reference():
    document, text = ab("-r", 10, *QUIET, "-n", "quick", "-n", "slow", "-n", "middle", "--reference",
                        "slow", "sleep 0.001", "sleep 0.4", "sleep 0.1")
    equal([command["is_reference"] for command in document["commands"]], [False, True, False])
    for index in (0, 2):
        equal(comparison(document, "wall", index)["verdict"], "better", f"command {index}")
        equal(comparison(document, "wall", index)["reference"], 1)
    contains(text, "the reference")
    by_number, _ = ab("-r", 1, *QUIET, "--reference", 2, "true", "true x")
    equal([command["is_reference"] for command in by_number["commands"]], [False, True])


@test
def program_metrics_are_compared():
    low = script("low", "echo assay.metric ops $1 op/s >&$ASSAY_METRICS_FD; "
                        "echo assay.metric delay 3 ms >&$ASSAY_METRICS_FD")
    document, text = ab("-r", 8, *QUIET, low + " 1000", low + " 3000")
    equal(set(values(document, "ops", 1)), {3000})
    equal(set(values(document, "delay", 0)), {3e6}, "milliseconds in nanoseconds")
    found = comparison(document, "ops")
    equal((found["verdict"], round(found["estimate"], 9)), ("better", 3))
    contains(text, "3.00× faster")
    contains(text, "3,000 op/s")
    equal(comparison(document, "delay")["verdict"], "same")
    equal(document["runs"][0]["metrics"][0]["name"], "ops")


@test
def hostile_metrics_do_no_harm():
    hostile = script("hostile", """
printf 'assay.metric good 1\\nassay.metric \\033[31mred 1\\nassay.metric a nan\\n\\0\\0\\377\\n' >&$ASSAY_METRICS_FD
printf 'assay.metric wall 5 s\\n' >&$ASSAY_METRICS_FD
head -c 3000000 /dev/zero >&$ASSAY_METRICS_FD""")
    document, text = ab("-r", 4, *QUIET, hostile)
    equal(set(values(document, "good")), {1})
    equal(set(values(document, "program:wall")), {5e9}, "a metric called as one of assay's")
    lacks(text, "\033")
    equal(document["losses"]["runs_with_metrics_lost"], 4)
    if document["losses"]["metric_lines_refused"] < 8:
        raise AssertionError(document["losses"])
    contains(notes(document)["metric-lines"], "\\x1b[31mred")


@test
def a_closed_or_seeked_metrics_descriptor_is_no_trouble():
    strange = script("strange", "eval \"exec $ASSAY_METRICS_FD>&-\"")
    document, _ = ab("-r", 2, *QUIET, strange, "true")
    equal(len(document["runs"]), 4)


# How it runs.

@test
def each_round_runs_every_command_once_in_shuffled_order():
    document, _ = ab("-r", 40, "--seed", 7, *QUIET, "true 1", "true 2", "true 3")
    equal(document["settings"]["seed"], 7)
    orders = {}
    for run in document["runs"]:
        orders.setdefault(run["round"], {})[run["position"]] = run["command"]
    equal({tuple(sorted(order.values())) for order in orders.values()}, {(0, 1, 2)})
    sequence = [tuple(order[i] for i in range(3)) for _, order in sorted(orders.items())]
    between(len(set(sequence)), 4, 6, "different orders in 40 rounds")
    starts = {(run["round"], run["position"]): run["start_ns"] for run in document["runs"]}
    equal([starts[key] for key in sorted(starts)], sorted(starts.values()), "start times")
    again, _ = ab("-r", 40, "--seed", 7, *QUIET, "true 1", "true 2", "true 3")
    equal([(run["command"], run["position"], run["padding_bytes"]) for run in again["runs"]],
          [(run["command"], run["position"], run["padding_bytes"]) for run in document["runs"]])


@test
def the_environment_varies_between_rounds_only():
    program = script("pad", "echo assay.metric pad ${#ASSAY_PADDING} >&$ASSAY_METRICS_FD")
    document, _ = ab("-r", 20, *QUIET, program, program + " x")
    equal(values(document, "pad", 0), values(document, "pad", 1), "padding within rounds")
    if len(set(values(document, "pad"))) < 10:
        raise AssertionError(values(document, "pad"))
    document, _ = ab("-r", 3, *QUIET, "--no-padding", program)
    equal(set(values(document, "pad")), {0})


@test
def words_and_quotes_reach_the_program():
    program = script("words", 'for w in "$@"; do printf "<%s>" "$w"; done')
    assay("ab", "-N", "-r", 1, *QUIET, "--output", "direct.txt",
          program + """ 'a b' "c \\"d\\" e" f\\ g '' '$HOME' x"y"z""", check=0)
    expected = """<a b><c "d" e><f g><><$HOME><xyz>"""
    equal(open("direct.txt").read(), expected)
    assay("ab", "-S", "default", "-r", 1, *QUIET, "--output", "shell.txt",
          program + """ 'a b' "c \\"d\\" e" f\\ g '' '$HOME' x"y"z""", check=0)
    equal(open("shell.txt").read(), expected)


@test
def a_shell_is_used_where_it_is_needed_and_for_all():
    document, text = ab("-r", 2, *QUIET, "true", "true | true")
    for command in document["commands"]:
        equal(command["argv"][:2], ["sh", "-c"])
    contains(unwrapped(text), "ran in sh -c")
    if not document["settings"]["shell_startup_ns"] > 0:
        raise AssertionError(document["settings"])
    document, text = ab("-r", 2, *QUIET, "true a", "true 'b c'")
    equal([command["argv"] for command in document["commands"]], [["true", "a"], ["true", "b c"]])
    lacks(text, "shell")
    contains(assay("ab", "-N", "true | true", check=2).stderr, "needs a shell")
    if shutil.which("bash"):
        document, _ = ab("-r", 1, *QUIET, "-S", "bash --norc", "true ${BASH_VERSION}")
        equal(document["commands"][0]["argv"][:3], ["bash", "--norc", "-c"])


@test
def input_output_directory():
    with open("in.txt", "w") as file:
        file.write("three\nlines\nhere\n")
    os.mkdir("there")
    program = script("count", "n=$(wc -l); echo assay.metric lines $n >&$ASSAY_METRICS_FD; pwd")
    path = os.path.abspath("count")
    document, _ = ab("-r", 3, *QUIET, "--input", os.path.abspath("in.txt"), "--directory", "there",
                     "--output", "pwd.txt", path)
    equal(values(document, "lines"), [3, 3, 3])
    contains(open("pwd.txt").read(), "/there")
    document, _ = ab("-r", 2, *QUIET, program)
    equal(values(document, "lines"), [0, 0], "lines of no input")
    kind = script("kind", "test -p /dev/fd/1 && p=1 || p=0; "
                          "echo assay.metric pipe $p >&$ASSAY_METRICS_FD; seq 100000")
    document, _ = ab("-r", 2, *QUIET, "--output", "pipe", kind)
    equal(values(document, "pipe"), [1, 1])
    document, _ = ab("-r", 2, *QUIET, kind)
    equal(values(document, "pipe"), [0, 0])
    contains(assay("ab", "-r", 1, *QUIET, "--show-output", "echo visible", check=0).stdout,
             "visible\n")
    lacks(assay("ab", "-r", 1, *QUIET, "-n", "x", "echo visible", check=0).stdout, "visible")
    assay("ab", "--directory", "nowhere", "true", check=2)
    contains(assay("ab", "--input", "nowhere", "true", check=2).stderr, "nowhere")


OUTPUT_KIND = ("import os; n = os.stat('/dev/null'); o = os.fstat(1); "
               "k = 0 if (o.st_dev, o.st_ino) == (n.st_dev, n.st_ino) else 2 if o.st_mode & 0o170000 "
               "== 0o010000 else 1; print('work'); "
               "os.write(int(os.environ['ASSAY_METRICS_FD']), f'assay.metric kind {k}\\n'.encode())")


@test
def commands_do_their_work_by_default():
    # GNU grep and others stop at the first match where standard output is /dev/null.
    with open("kind.py", "w") as file:
        file.write(OUTPUT_KIND + "\n")
    kind = "python3 kind.py"
    for option, expected in ((), 1), (("--output", "memory"), 1), (("--output", "null"), 0), (
            ("--output", "pipe"), 2):
        document, _ = ab("-r", 2, *QUIET, *option, kind)
        equal(values(document, "kind"), [expected] * 2, option)
    with open("kind.yaml", "w") as file:
        file.write("name: kind\ncommand: [python3, kind.py]\nrounds: 2\n")
    for option, expected in ((), 1), (("--output", "null"), 0):
        assay("run", "--fresh", "-q", "--db", "kind.db", *option, "kind.yaml", check=0)
        shown = assay("show", "--db", "kind.db", "--csv", "--wide", check=0).stdout
        rows = list(csv.DictReader(io.StringIO(shown)))
        equal([float(row["kind"]) for row in rows], [expected] * 2, option)
    with open("read.yaml", "w") as file:
        file.write("name: read\ncommand: [echo, 'n 3']\nrounds: 2\n"
                   "metrics:\n  n: {regex: 'n ([0-9]+)'}\n")
    contains(assay("run", "--db", "kind.db", "--output", "null", "read.yaml", check=None).stderr,
             "reads the metric 'n' from standard output")


@test
def a_pipe_is_emptied_and_not_waited_for():
    # 3 MB is more than any pipe holds; what stays behind holds the pipe open and is not awaited.
    document, _ = ab("-r", 2, *QUIET, "--output", "pipe", "head -c 3000000 /dev/zero",
                     "sh -c 'sleep 4719 & head -c 3000000 /dev/zero'")
    equal(document["rounds"], 2)
    equal(len({run["exit_code"] for run in document["runs"]}), 1)
    if not gone("4719"):
        raise AssertionError(alive("4719"))


@test
def cpus_are_kept_to():
    cpu = min(os.sched_getaffinity(0))
    program = script("where", "grep Cpus_allowed_list /proc/self/status")
    assay("ab", "-r", 1, *QUIET, "--cpus", cpu, "--output", "cpus.txt", program, check=0)
    contains(open("cpus.txt").read(), f":\t{cpu}\n")
    contains(assay("ab", "--cpus", "x", "true", check=2).stderr, "not a list of CPUs")


@test
def a_duet_runs_both_at_the_same_time_with_sides_swapped():
    if len(os.sched_getaffinity(0)) < 2:
        contains(assay("ab", "--duet", "true", "true", check=125).stderr, "two CPUs")
        skip("a duet needs two CPUs")
    document, text = ab("--duet", "-r", 10, "-e", "page-faults:u", target("pages") + " 100",
                        target("pages") + " 1100")
    contains(text, "swapped after each round")
    cpus = document["settings"]["cpus"]
    equal(len(set(cpus)), 2, "CPUs")
    for number in range(10):
        sides = {run["command"]: run["side"] for run in document["runs"] if run["round"] == number}
        equal(sides, {0: number % 2, 1: 1 - number % 2}, f"sides of round {number}")
    # Each side's counters follow its own command.
    for first, second in zip(values(document, "page-faults:u", 0),
                             values(document, "page-faults:u", 1)):
        between(second - first, 950, 1050, "pages more")
    both = [sorted((run["start_ns"], run["start_ns"] + run["wall_ns"])
                   for run in ab("--duet", "-r", 2, *QUIET, "sleep 0.2", "sleep 0.2 0")[0]["runs"]
                   if run["round"] == number) for number in range(2)]
    for (_, first_end), (second_start, _) in both:
        if second_start >= first_end:
            raise AssertionError(f"one after the other: {both}")
    contains(assay("ab", "--duet", "true", check=2).stderr, "two commands")


@test
def hooks_run_when_they_should():
    log = "echo {} >>log"
    assay("ab", "-r", 2, "-w", 1, *QUIET, "-L", "n", "1,2", "--setup", log.format("setup{n}"),
          "--prepare", log.format("prepare{n}"), "--cleanup", log.format("cleanup"),
          script("run", "echo run$1 >>log") + " {n}", check=0)
    lines = open("log").read().split()
    equal(lines[:2], ["setup1", "setup2"])
    equal(lines[-1:], ["cleanup"])
    equal(lines.count("cleanup"), 1, "cleanups of the same text")
    middle = lines[2:-1]
    equal(len(middle), 2 * 2 * 3, "prepares and runs of three rounds")
    for prepare, run in zip(middle[::2], middle[1::2]):
        equal(prepare.replace("prepare", "run"), run)


@test
def hooks_may_differ_for_each_command():
    assay("ab", "-r", 1, "-w", 0, *QUIET, "--prepare", "echo a >>log", "--prepare", "echo b >>log",
          "true 1", "true 2", check=0)
    equal(sorted(open("log").read().split()), ["a", "b"])
    assay("ab", "--prepare", "x", "--prepare", "y", "true", check=2)


@test
def a_server_that_setup_starts_lives_and_is_not_counted():
    program = script("busy", "while :; do :; done")
    document, _ = ab("-r", 5, "-e", "task-clock", "--setup", f"{program} 4711server & echo $! >pid",
                     "--cleanup", "kill $(cat pid)", "sleep 0.1")
    if not gone("4711server"):
        raise AssertionError("the cleanup did not end the server")
    for value in values(document, "task-clock"):
        between(value, 0, 60e6, "task-clock of sleep beside a busy server")


@test
def hooks_that_fail_stop_all_with_their_output():
    result = assay("ab", "-r", 2, "--setup", "echo words; exit 5", "--cleanup", "touch cleaned",
                   "true", check=5)
    contains(result.stderr, "the setup command failed (exit code 5)")
    contains(result.stderr, "words")
    equal(os.path.exists("cleaned"), True, "cleanup after a failed setup")
    contains(assay("ab", "-r", 2, "--prepare", "exit 6", "true", check=6).stderr, "prepare")
    contains(assay("ab", "-r", 2, "--cleanup", "exit 7", "true", check=7).stderr, "cleanup")


@test
def parameters_make_groups():
    document, _ = ab("-r", 8, *QUIET, "-L", "d", "001,002", "-P", "k", "0.5", "1.5", "-D", "0.5",
                     "-n", "A{d}{k}", "-n", "B{d}{k}", "sleep 0.{d}", "true {k}")
    commands = document["commands"]
    equal(len(commands), 12)
    equal([command["name"] for command in commands[:4]], ["A0010.5", "B0010.5", "A0011.0", "B0011.0"])
    equal(commands[3]["parameters"], "d=001, k=1.0")
    equal([command["group"] for command in commands], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    equal(comparison(document, "wall", 3)["reference"], 2)
    # One command: its combinations are compared with the first.
    document, _ = ab("-r", 8, *QUIET, "-L", "s", "0.001,0.05", "sleep {s}")
    equal(comparison(document, "wall")["verdict"], "worse")
    contains(assay("ab", "-L", "size", "1,2", "true", check=2).stderr, "{size}")


@test
def it_stops_as_it_was_told():
    equal(ab("-r", 3, *QUIET, "true")[0]["rounds"], 3)
    document, _ = ab("-t", "0.3", *QUIET, "true")
    equal(document["end"], "time")
    between(document["rounds"], 2, 10000, "rounds")
    document, _ = ab("-t", "0.001", *QUIET, "sleep 0.01")
    equal(document["rounds"], 1)
    document, _ = ab("--precision", "90%", "-t", 20, *QUIET, "sleep 0.05")
    equal((document["end"], document["adaptive"]), ("precise", True))
    between(document["rounds"], 20, 100, "rounds")
    document, _ = ab("--precision", "0.0001%", "-M", 12, *QUIET, "true", "true x")
    equal((document["end"], document["rounds"]), ("done", 12))
    document, _ = ab("-m", 4, "-M", 4, "-w", 0, *QUIET, "true")
    equal((document["rounds"], document["adaptive"]), (4, False))


@test
def wrong_command_lines_are_explained():
    cases = [([], "no commands to run"), (["-r", "x", "true"], "--rounds"), (["--zzz", "true"], "--zzz"),
             (["-r", "5", "-m", "3", "true"], "cannot be used with"), (["--precision", "0", "true"], "1%"),
             (["--precision", "200%", "true"], "1%"), (["--precision", "x", "true"], "1%"),
             (["--json", "--csv", "true"], "standard output"), (["echo 'x"], "unclosed"),
             ([""], "empty"), (["--reference", "9", "true", "true"], "--reference 9"),
             (["-n", "a", "-n", "b", "true"], "more names"), (["-D", "2", "true"], "-P"),
             (["-P", "x", "3", "1", "true {x}"], "range"), (["-L", "a", "1", "true"], "{a}"),
             (["--duet", "--cpus", "0", "true", "true"], "two CPUs"),
             (["--show-output", "--json", "true"], "--json=FILE")]
    for args, words in cases:
        contains(assay("ab", *args, check=2).stderr, words)
    contains(assay("ab", "-e", "no-such-event", "true").stderr, "no-such-event")
    contains(assay("ab", "--json", "x.json", "true", check=127).stderr, "--json=FILE")
    contains(assay("ab", "--metric", "nothing", "--precision", "1%", "true", check=2).stderr,
             "nothing")
    contains(assay("ab", "--metric", "user-time", "-r", 2, "true", check=2).stderr, "no such metric")
    # A command that fails hides no wrong name.
    told = assay("ab", "--metric", "wal", "-r", 3, "true", "false", check=2).stderr
    contains(told, "did you mean wall?")
    contains(told, "the command failed (exit code 1): false")
    contains(assay("ab", "--metric", "wal", "-r", 2, "true", check=2).stderr, "did you mean wall?")
    contains(assay("ab", "--metric", "latancy", "-r", 2, *QUIET,
                   "sh -c 'echo assay.metric latency 3 >&$ASSAY_METRICS_FD'", check=2).stderr,
             "did you mean latency?")


@test
def every_value_of_a_parameter_is_compared_in_the_store():
    """Commands are the same factor's levels at every value, and one sentence sums them up."""
    each = "sh -c 'echo assay.metric v {0} >&$ASSAY_METRICS_FD'"
    document, result = ab("-r", 8, *QUIET, "--metric", "v", "-n", "old", "-n", "new", "-L", "n", "1,2,4", "--db", "a.db",
                          each.format("{n}0"), each.format("{n}5"))
    equal([c["name"] for c in document["commands"]][:3], ["old, n=1", "new, n=1", "old, n=2"])
    equal([c["variant"] for c in document["commands"]][:3], ["old", "new", "old"])
    contains(document["suites"], "all 3 of command=new, v: ")
    shown = json.loads(assay("show", "--db", "a.db", "last", "--json", check=0).stdout)
    equal(shown["experiment"]["baseline"] if "experiment" in shown else shown["baseline"], "command=old")
    contains(assay("show", "--db", "a.db", "last", check=0).stdout, document["suites"].strip())
    pathlib.Path("a.json").write_text(json.dumps(document))
    for source in (["--db", "a.db", "last"], ["a.json"]):
        assay("html", *source, "-o", "a.html", check=0)
    # One command: the others are compared with its first value.
    ab("-r", 8, *QUIET, "--metric", "v", "-L", "n", "1,2", "-L", "k", "3,4", "--db", "b.db", each.format("{n}{k}"))
    text = assay("show", "--db", "b.db", "last", check=0).stdout
    contains(text, "n=1 k=3")
    equal(text.count(" different") + text.count("× more") + text.count("× less") >= 3, True, text)


@test
def figures_in_the_output_are_metrics():
    document, _ = ab("-r", 8, *QUIET, "--metric-regex", "last=^([0-9]+)$", "--metric", "last",
                     "seq 100", "seq 120")
    equal(values(document, "last"), [100] * 8)
    equal(values(document, "last", 1), [120] * 8)
    equal(metric(document, "last")["is_headline"], True)
    document, _ = ab("-r", 2, *QUIET, "--metric-regex", "x=x([0-9])", "echo x1", "echo y1")
    contains(notes(document)["metric-regex"], "nothing matched in 3 of 6 runs")
    contains(assay("ab", "-r", 2, *QUIET, "--metric", "x", "--metric-regex", "x=x([0-9])", "echo 1", check=2).stderr,
             "--metric x: its --metric-regex matched nothing")
    for expression in "x", "=x", "x=[", "x=1", "a b=(1)", "x=(\\d)":
        contains(assay("ab", "--metric-regex", expression, "true", check=2).stderr, "--metric-regex")
    contains(assay("ab", "--metric-regex", "x=(1)", "--output", "null", "true", check=2).stderr,
             "--output")


if shutil.which("valgrind"):
    @test
    def instructions_are_compared_exactly():
        program = target("empty-static")
        for option in ["--sim"], ["-e", "sim:instructions"]:
            document, text = ab("-r", 8, *option, program, program, "seq 2000")
            counted = metric(document, "sim:instructions")
            equal((counted["source"], counted["better"]), ("simulated", "lower"))
            equal(counted["commands"][0]["values"], counted["commands"][1]["values"])
            equal(comparison(document, "sim:instructions", 1)["verdict"], "same")
            equal(comparison(document, "sim:instructions", 2)["verdict"], "worse")
            equal(len(values(document, "wall")), 8)
        ab("-r", 3, *QUIET, "--sim", "--metric", "sim:instructions", program)


# At home for hyperfine's users.

@test
def three_commands_end_with_a_ranking_and_a_sentence():
    levels = {name: script(name, f"echo assay.metric level {level} ns >&$ASSAY_METRICS_FD")
              for name, level in (("slow", 300), ("quick", 100), ("same", 100))}
    document, text = ab("-r", 9, *QUIET, "--metric", "level", levels["slow"], levels["quick"],
                        levels["same"])
    equal(document["ranking"][2], 0)
    contains(document["summary"], "./quick and ./same are fastest and cannot be told apart: ./quick "
                                  "is 3.00× [3.00, 3.00] faster than ./slow.")
    contains(unwrapped(text), "ranking by level 1. ./quick 2. ./same no difference 3. ./slow 3.00×")
    contains(unwrapped(text), unwrapped(document["summary"]))
    document, text = ab("-r", 9, *QUIET, "--metric", "level", levels["slow"], levels["quick"])
    lacks(text, "ranking")
    for name, level in ("low", 10), ("high", 40), ("middle", 20):
        levels[name] = script(name, f"echo assay.metric rate {level} ops/s >&$ASSAY_METRICS_FD")
    document, text = ab("-r", 9, *QUIET, "--metric", "rate", levels["low"], levels["high"],
                        levels["middle"])
    equal(document["ranking"], [1, 2, 0])
    contains(document["summary"], "./high is ")
    contains(document["summary"], "2.00× [2.00, 2.00]")
    contains(document["summary"], "4.00× [4.00, 4.00]")


@test
def hyperfines_options_work():
    document, text = ab("--runs", 3, *QUIET, "--command-name", "one", "--command-name", "two",
                        "--reference", "sleep 0.03", "--conclude", "echo x >>concluded",
                        "--export-json", "h.json", "--export-csv", "h.csv", "--export-markdown",
                        "h.md", "--export-asciidoc", "h.adoc", "--export-orgmode", "h.org",
                        "--sort", "mean-time", "--time-unit", "second", "--style", "basic",
                        "sleep 0.06", "true")
    equal(document["rounds"], 3)
    equal([command["name"] for command in document["commands"]], ["one", "two", "sleep 0.03"])
    equal([command["is_reference"] for command in document["commands"]], [False, False, True])
    equal(lines_in("concluded"), 12)
    equal(len(json.load(open("h.json"))["results"]), 3)
    rows = list(csv.DictReader(open("h.csv")))
    equal([row["command"] for row in rows], ["two", "sleep 0.03", "one"])
    equal(set(rows[0]), {"command", "mean", "stddev", "median", "user", "system", "min", "max"})
    contains(open("h.md").read(), "| `two` |")
    contains(open("h.adoc").read(), "|===\n| Command | Mean")
    contains(open("h.org").read(), "| Command | Mean | Median | Min | Max | Compared |\n|------")
    if not re.search(r"(?s)two +0\.\d+ s .*\n +sleep 0\.03 +0\.\d+ s .*\n +one +0\.\d+ s ", text):
        raise AssertionError(text)
    equal(ab("--min-runs", 2, "--max-runs", 2, *QUIET, "true")[0]["rounds"], 2)
    equal(assay("ab", "--runs", 1, "--style", "none", "true", check=0).stdout, "")
    for wrong in ["--sort", "x"], ["--style", "x"], ["--time-unit", "x"]:
        contains(assay("ab", *wrong, "true", check=2).stderr, "must be one of")
    contains(assay("ab", "--reference", "frist", "-n", "first", "-n", "second", "true", "ls",
                   check=2).stderr, "did you mean first?")
    failed = assay("ab", "-r", 2, *QUIET, "--conclude", "exit 6", "true", check=6)
    contains(failed.stderr, "the conclude command failed")


@test
def copies_run_at_once():
    # Each waits until all three are there.
    meeting = script("meeting", "echo x >>copies; n=0; until [ $(wc -l <copies) -ge 3 ]; do "
                                "sleep 0.02; n=$((n+1)); [ $n -lt 1000 ] || exit 1; done")
    ab("-r", 1, "-w", 0, *QUIET, "--copies", 3, meeting)
    equal(lines_in("copies"), 3)
    contains(assay("ab", "--copies", 3, "-r", 2, "exit 4", check=4).stderr, "exit 4")
    contains(assay("ab", "--copies", 3, "-N", "true", check=2).stderr, "--copies")
    contains(assay("ab", "--copies", 0, "true", check=2).stderr, "from 1 to")


@test
def peak_memory_is_that_of_the_program():
    if SANITIZED:
        skip("the memory of sanitizers cannot be unmapped")
    # Small programs: assay itself has more.
    document, _ = ab("-r", 3, *QUIET, "true", "sleep 0.001")
    for command in 0, 1:
        for value in values(document, "peak-rss", command):
            if not 100e3 < value < 3e6:
                raise AssertionError(f"{value} bytes for a small program")
    equal([run["rss_is_bound"] for run in document["runs"]], [False] * 6)
    # It holds where CPUs are given, in a duet, and for programs that leave others behind.
    leaver = script("leaver", "sleep 4722 >/dev/null 2>&1 &")
    for options in ["--cpus", min(os.sched_getaffinity(0)), "true"], [leaver]:
        document, _ = ab("-r", 3, *QUIET, *options)
        equal([run["rss_is_bound"] for run in document["runs"]], [False] * 3, options)
    if len(os.sched_getaffinity(0)) > 1:
        document, _ = ab("-r", 3, *QUIET, "--duet", "true", "true")
        equal([run["rss_is_bound"] for run in document["runs"]], [False] * 6)
    if not gone("4722"):
        raise AssertionError(alive("4722"))


@test
def notes_that_are_always_the_same_need_verbose():
    small = target("empty-static")
    document, text = ab("-r", 2, small)
    if "rss-bound" in notes(document):
        lacks(text, "peak-rss: a program")
        contains(text, "about this machine")
    # So small a program is a bound in one sitting and above it in the next.
    document, text = ab("-r", 2, "--verbose", small)
    if "rss-bound" in notes(document):
        contains(text, "peak-rss: a program")
    lacks(text, "about this machine")


@test
def results_are_saved_and_compared_with_another_day():
    program = script("level", "echo assay.metric level $(cat level.txt) ns >&$ASSAY_METRICS_FD")
    def measure(level, *args, **kwargs):
        with open("level.txt", "w") as file:
            file.write(level)
        return ab("-r", 8, *QUIET, "--db", "ab.db", "--metric", "level", "-n", "a", "-n", "b",
                  *args, program, "true", **kwargs)
    document, _ = measure("100", "--save", "monday")
    shown = json.loads(assay("show", "--db", "ab.db", "monday", "--json", check=0).stdout)
    equal(shown["name"], "monday")
    equal([cell["label"] for cell in shown["cells"]], ["a", "b"])
    rows = list(csv.DictReader(io.StringIO(
        assay("show", "--db", "ab.db", "monday", "--csv", "--wide", check=0).stdout)))
    equal([float(row["wall (ns)"]) for row in rows if row["command"] == "a"], values(document, "wall"))
    _, text = measure("150", "--against", "monday", "--save", "tuesday")
    contains(text, "base: 1 (monday)")
    contains(text, "1.50×")
    contains(text, "'monday' was measured on ")
    contains(assay("compare", "--db", "ab.db", "monday", "tuesday", check=0).stdout, "1.50×")
    contains(assay("history", "--db", "ab.db", "level", check=0).stdout, "level")
    assay("html", "--db", "ab.db", "-o", "page.html", "monday", check=0)
    contains(assay("ab", "--db", "ab.db", "--against", "sunday", "true", check=125).stderr, "sunday")
    refused = assay("ab", "--db", "ab.db", "--against", "monday", "-n", "x", "-n", "y", "true",
                    "touch measured", check=125).stderr
    contains(refused, "there are 'a', 'b'")
    equal(os.path.exists("measured"), False, "refused after the measurement")


@test
def one_command_is_compared_with_one_of_another_name():
    old = script("old", "echo assay.metric level 100 ns >&$ASSAY_METRICS_FD")
    new = script("new", "echo assay.metric level 150 ns >&$ASSAY_METRICS_FD")
    ab("-r", 8, *QUIET, "--db", "ab.db", "--metric", "level", "--save", "monday", old)
    _, text = ab("-r", 8, *QUIET, "--db", "ab.db", "--metric", "level", "--against", "monday", new)
    contains(text, "1.50×")
    contains(text, "./old, now ./new")


# When things go wrong.

@test
def a_failing_command_does_not_end_the_others():
    bad = script("bad", "echo on stdout; echo on stderr >&2; exit 3")
    document, text = ab("-r", 5, *QUIET, "true", bad, "sleep 0.001", code=3)
    equal(document["rounds"], 5)
    equal([len(values(document, "wall", i)) for i in range(3)], [5, 0, 5])
    comparison(document, "wall", 2)
    failure = document["commands"][1]["failure"]
    equal((failure["exit_code"], failure["last_words"], failure["given_up"]), (3, "on stderr", True))
    contains(unwrapped(text), "– failed: exit code 3: on stderr")
    contains(notes(document)["failed"], "'./bad' failed in every run")
    result = assay("ab", "-r", 5, "true", bad, check=3)
    contains(result.stderr, "exit code 3")
    contains(result.stderr, "on stdout")
    contains(result.stderr, "on stderr")
    contains(result.stderr, "--ignore-failure")
    contains(assay("ab", "-r", 5, "sh -c 'kill -SEGV $$'", check=139).stderr, "signal 11")
    document, text = ab("-r", 4, "-i", *QUIET, "true", bad)
    equal([run["exit_code"] for run in document["runs"] if run["command"] == 1], [3] * 4)
    contains(unwrapped(text), "4 of 8 runs failed but are counted (--ignore-failure): ./bad (4 of 4)")
    ab("-r", 4, "--ignore-failure=2,3", *QUIET, bad)
    assay("ab", "-r", 4, "--ignore-failure=2", *QUIET, bad, check=3)
    contains(assay("ab", "--ignore-failure=x", bad, check=2).stderr, "exit codes")


@test
def a_place_that_cannot_be_written_is_told_before_anything_runs():
    os.mkdir("closed")
    words = ("ab", "-r", 2, *QUIET, "--save", "monday", "touch ran")
    missing = assay(*words[:-1], "--db", "nosuch/assay.db", words[-1], check=125)
    contains(missing.stderr, "nosuch/assay.db: cannot be created: No such file or directory")
    equal(os.path.exists("ran"), False)
    if os.geteuid() == 0:
        skip("root may write everywhere")
    os.chmod("closed", 0o500)
    denied = assay(*words[:-1], "--db", "closed/assay.db", words[-1], check=125)
    contains(denied.stderr, "closed/assay.db: cannot be created: Permission denied")
    equal(os.path.exists("ran"), False)


@test
def a_duet_goes_on_without_a_command_that_fails():
    if len(os.sched_getaffinity(0)) < 2:
        skip("a duet needs two CPUs")
    bad = script("bad", "echo on stderr >&2; exit 3")
    result = assay("ab", "--duet", "-r", 4, *QUIET, "--json=ab.json", "true", bad, check=3)
    with open("ab.json") as file:
        failure = json.load(file)["commands"][1]["failure"]
    equal((failure["exit_code"], failure["last_words"]), (3, "on stderr"))
    contains(unwrapped(result.stdout), "failed: exit code 3: on stderr")


@test
def a_reference_that_fails_is_replaced():
    bad = script("bad", "exit 3")
    document, _ = ab("-r", 8, *QUIET, bad, "true", "sleep 0.002", code=3)
    equal([command["is_reference"] for command in document["commands"]], [False, True, False])
    equal(comparison(document, "wall", 2)["reference"], 1)
    contains(notes(document)["failed"], "Another command takes its place")


@test
def a_command_that_fails_sometimes_is_compared_with_a_caveat():
    flaky = script("flaky", "echo x >>runs; n=$(wc -l <runs); [ $((n % 4)) -ne 0 ] || "
                            "{ echo no luck >&2; exit 7; }; sleep 0.01")
    document, text = ab("-r", 15, *QUIET, "true", flaky, code=7)
    equal(document["rounds"], 15)
    equal(len([run for run in document["runs"] if not run["is_counted"]]), 4)
    equal(metric(document, "wall")["commands"][1]["n"], 11)
    equal(comparison(document, "wall")["verdict"], "worse")
    contains(notes(document)["failed-sometimes"], "'./flaky' failed in 4 of 16 runs (25 %): exit "
                                                  "code 7: no luck")


@test
def a_first_round_that_is_stopped_shows_what_it_has():
    code, written = interrupted(["-w", 0, *QUIET, "--seed", 1, "true", "sleep 4720"],
                                lambda: alive("4720"), lambda pid, _: os.kill(pid, signal.SIGTERM))
    equal(code, 128 + signal.SIGTERM)
    contains(written, "in the first round; what had finished is shown")
    contains(written, "the run of 'sleep 4720' was stopped after")
    if not gone("4720"):
        raise AssertionError(alive("4720"))


@test
def a_long_output_shows_its_end_and_no_controls():
    bad = script("bad", "seq 100000; printf '\\033[31mred\\n'; exit 1")
    result = assay("ab", bad, check=1)
    contains(result.stderr, "100000")
    contains(result.stderr, "\\x1b[31mred")
    lacks(result.stderr, "\033")
    lacks(result.stderr, "\n99000\n")


@test
def a_late_failure_keeps_the_finished_rounds():
    flaky = script("flaky", "echo x >>runs; test $(wc -l <runs) -lt 6")
    document, text = ab("-r", 20, *QUIET, flaky, code=1)
    equal((document["rounds"], document["end"]), (4, "failure"))
    contains(text, "4 rounds")


@test
def what_cannot_be_started_is_said():
    contains(assay("ab", "no-such-command-here", check=127).stderr, "no such command")
    contains(assay("ab", "./missing", check=127).stderr, "./missing")
    with open("plain", "w") as file:
        file.write("x")
    contains(assay("ab", "./plain", check=126).stderr, "not executable")


@test
def a_time_limit_ends_a_run_and_what_it_started():
    slow = script("slow", "sleep 4712 & sleep 4712")
    result = assay("ab", "--timeout", "0.1", slow, check=124)
    contains(result.stderr, "time limit")
    if not gone("4712"):
        raise AssertionError(alive("4712"))


@test
def what_commands_leave_behind_is_ended_and_told():
    leaver = script("leaver", "sleep 4713 >/dev/null 2>&1 &")
    document, text = ab("-r", 3, *QUIET, leaver)
    equal([run["left_behind"] for run in document["runs"]], [True] * 3)
    contains(unwrapped(text), "3 of 3 runs left processes behind")
    if not gone("4713"):
        raise AssertionError(alive("4713"))


def interrupted(args, ready, how, env=()):
    """Runs assay ab on a terminal, calls how(pid, terminal) when ready() is true, and returns its
    exit code and what it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.environ.update(env)
        os.execv(ASSAY, [ASSAY, "ab", *map(str, args)])
    deadline = time.monotonic() + 240
    while not ready():
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError("it never got ready")
        time.sleep(0.02)
    how(pid, terminal)
    written = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), written.decode(errors="replace")


def lines_in(path):
    return open(path).read().count("\n") if os.path.exists(path) else 0


@test
def control_c_keeps_the_finished_rounds_and_leaves_nothing():
    # The seventh run (the first is the warm-up) never ends by itself.
    program = script("runs", "echo x >>count; test $(wc -l <count) -lt 7 || sleep 4714 & wait")
    code, text = interrupted([*QUIET, "--json=ab.json", "--cleanup", "touch cleaned", program],
                             lambda: lines_in("count") >= 7,
                             lambda pid, terminal: os.write(terminal, b"\x03"))
    equal(code, 130)
    contains(text, "5 rounds")
    contains(unwrapped(text), "interrupted by signal 2")
    with open("ab.json") as file:
        document = json.load(file)
    equal((document["rounds"], document["end"], len(values(document, "wall"))), (5, "signal", 5))
    equal(os.path.exists("cleaned"), True, "cleanup")
    if not gone("4714"):
        raise AssertionError(alive("4714"))


@test
def a_signal_to_assay_alone_reaches_stubborn_commands():
    stubborn = script("stubborn", "trap '' TERM; echo x >>count; sleep 4715 & wait; sleep 4715")
    code, _ = interrupted([*QUIET, stubborn], lambda: lines_in("count") >= 1,
                          lambda pid, terminal: os.kill(pid, signal.SIGTERM))
    equal(code, 143)
    if not gone("4715"):
        raise AssertionError(alive("4715"))


@test
def an_interrupted_duet_leaves_nothing():
    if len(os.sched_getaffinity(0)) < 2:
        skip("a duet needs two CPUs")
    program = script("both", "echo x >>count; sleep 4716")
    code, _ = interrupted([*QUIET, "--duet", program, program + " x"],
                          lambda: lines_in("count") >= 2,
                          lambda pid, terminal: os.write(terminal, b"\x03"))
    equal(code, 130)
    if not gone("4716"):
        raise AssertionError(alive("4716"))


@test
def a_place_that_cannot_be_written_is_said_before_measuring():
    result = assay("ab", "--json=/nonexistent/x.json", script("run", "touch ran"))
    equal(result.returncode, 125)
    contains(result.stderr, "/nonexistent")
    equal(os.path.exists("ran"), False, "a run")


# What it writes.

@test
def json_holds_every_value_and_where_it_comes_from():
    document, _ = ab("-r", 9, "-n", "a", "-n", "b", target("pages") + " 10", "true")
    equal(document["format"], "assay-ab-1")
    equal(document["rounds"], 9)
    equal(len(document["runs"]), 18)
    for key in ["wall_ns", "user_ns", "sys_ns", "rss_bytes_max", "minor_faults", "exit_code",
                "counts", "metrics", "disturbance", "position", "start_ns", "padding_bytes"]:
        if key not in document["runs"][0]:
            raise AssertionError(f"runs lack {key}")
    for index in (0, 1):
        runs = [run for run in document["runs"] if run["command"] == index]
        equal([run["wall_ns"] for run in runs], values(document, "wall", index))
    for entry in document["metrics"]:
        equal(len(entry["commands"]), 2)
        for cell in entry["commands"]:
            equal(len(cell["values"]), 9)
    found = comparison(document, "wall")
    for key in ["estimate", "low", "high", "level", "p", "p_adjusted", "verdict", "text", "stands",
                "scale", "method", "paired"]:
        if key not in found:
            raise AssertionError(f"comparison lacks {key}")
    contains(document["machine"]["arch"], "")
    equal(document["losses"]["runs_failed"], 0)
    equal(len([entry for entry in document["metrics"] if entry["is_headline"]]), 1)


@test
def json_alone_goes_to_stdout():
    result = assay("ab", "-r", 2, *QUIET, "--json", "true", check=0)
    equal(json.loads(result.stdout)["rounds"], 2)
    equal(result.stderr, "")


@test
def strange_names_stay_in_their_place():
    name = "a,\"b\"|`c`\n\033[31m\\"
    assay("ab", "-r", 2, *QUIET, "-n", name, "--json=x.json", "--csv=x.csv", "--markdown=x.md",
          "true", check=0)
    equal(json.load(open("x.json"))["commands"][0]["name"], name)
    rows = list(csv.reader(open("x.csv", newline="")))
    equal(rows[0][:4], ["round", "command", "name", "metric"])
    equal({row[2] for row in rows[1:] if row[0]}, {name})
    text = open("x.md").read()
    lacks(text, "\033")
    for line in text.splitlines():
        if line.startswith("| wall |"):
            equal(len(re.findall(r"(?<!\\)\|", line)), 7, "cells of " + line)


@test
def csv_holds_every_value():
    document, _ = ab("-r", 5, *QUIET, "--csv=x.csv", "true 1", "true 2")
    rows = list(csv.DictReader(open("x.csv")))
    equal({None in row for row in rows}, {False}, "columns beyond the header")
    wall = [float(row["value"]) for row in rows if row["metric"] == "wall" and row["command"] == "2"]
    equal(wall, [float(value) for value in values(document, "wall", 1)])


def keys_like_hyperfine(path):
    """What hyperfine's own scripts rely on."""
    document = json.load(open(path))
    for result in document["results"]:
        for key in ["mean", "median", "min", "max", "user", "system", "stddev"]:
            if not isinstance(result[key], (int, float)):
                raise AssertionError(f"{key} is {result[key]!r}")
        equal(len(result["times"]), len(result["exit_codes"]))
        between(result["mean"] - sum(result["times"]) / len(result["times"]), -1e-9, 1e-9)
    return document


@test
def hyperfines_files_are_read():
    if not shutil.which("hyperfine"):
        skip("hyperfine is not installed")
    command = ["hyperfine", "-N", "-w", "0", "-r", "8", "--style", "none", "-L", "t", "0.001,0.4",
               "sleep {t}", "--export-json", "h.json"]
    result = subprocess.run(command, text=True, capture_output=True)
    equal(result.returncode, 0, result.stderr)
    theirs = keys_like_hyperfine("h.json")
    result = assay("ab", "--import-hyperfine", "h.json", "--json=x.json", check=0)
    document = json.load(open("x.json"))
    equal(document["paired"], False)
    equal(document["commands"][1]["parameters"], "t=0.4")
    between(values(document, "wall")[0] / 1e9 - theirs["results"][0]["times"][0], -1e-9, 1e-9)
    equal(comparison(document, "wall")["verdict"], "worse")
    contains(result.stdout, "unpaired")
    # Results of several files.
    result = assay("ab", "--import-hyperfine", "h.json", "h.json", "-n", "before", check=0)
    contains(result.stdout, "before")
    contains(result.stdout, "sleep 0.4 #2")


@test
def hyperfine_exports_are_like_hyperfines():
    document, _ = ab("-r", 9, *QUIET, "-L", "t", "1,2", "--export-hyperfine", "x.json", "true {t}",
                     "sleep 0.0{t}")
    exported = keys_like_hyperfine("x.json")
    equal(len(exported["results"]), 4)
    equal(exported["results"][3]["parameters"], {"t": "2"})
    equal([time * 1e9 for time in exported["results"][1]["times"]] and len(
        exported["results"][1]["times"]), 9)
    if shutil.which("hyperfine"):
        subprocess.run(["hyperfine", "-N", "-r", "2", "--style", "none", "true", "--export-json",
                        "h.json"], capture_output=True, check=True)
        theirs = set(json.load(open("h.json"))["results"][0])
        equal(theirs - set(exported["results"][0]), set(), "keys that hyperfine has besides")
    # Read back, the rounds are paired again and say the same; how disturbed they were is not in it.
    assay("ab", "--import-hyperfine", "x.json", "--json=y.json", check=0)
    again = json.load(open("y.json"))
    equal(again["paired"], True)
    theirs, ours = comparison(again, "wall", 1), comparison(document, "wall", 1)
    between(theirs["estimate"] / ours["estimate"], 0.9999, 1.0001, "the ratio read back")
    if {theirs["verdict"], ours["verdict"]} == {"better", "worse"}:
        raise AssertionError(f"{theirs} contradicts {ours}")


@test
def wrong_files_are_refused_by_name():
    with open("bad.json", "w") as file:
        file.write('{"results": [{"command": "x", "times": [-1]}]}')
    contains(assay("ab", "--import-hyperfine", "bad.json", check=1).stderr, "bad.json: results[0]")
    contains(assay("ab", "--import-hyperfine", "none.json", check=1).stderr, "none.json")


@test
def google_benchmarks_format():
    assay("ab", "-r", 3, "--export-google-benchmark", "x.json", "true 1", "true 2", check=0)
    document = json.load(open("x.json"))
    contains(document["context"]["executable"], "assay")
    equal(len(document["benchmarks"]), 6)
    for index, entry in enumerate(document["benchmarks"]):
        equal((entry["run_type"], entry["repetitions"], entry["repetition_index"],
               entry["time_unit"]), ("iteration", 3, index % 3, "ns"))
        between(entry["real_time"], 1, 1e12, "real_time")
        between(entry["cpu_time"], 0, 1e12, "cpu_time")


COUNTED = """n=$(cat $1.n 2>/dev/null || echo 0); echo $((n + 1)) > $1.n
set -- $1 $(awk -v n=$n -v kind=$1 '
    function any() { x = (x * 16807) % 2147483647; return x / 2147483647 } # every awk has another rand
    BEGIN { x = n * 2654435 + (kind == "flat") * 97531 + 12345; any(); any()
    v = 100000 + any() * 3000
    if (kind == "drift") v += 2000 + n * 600
    if (kind == "slow" && n % 10 == 9) v *= 10
    if (kind == "wild") v = exp(log(v) + 6 * (any() - 0.5))
    print int(v) }')
echo assay.metric t $2 us >&$ASSAY_METRICS_FD"""


@test
def a_ratio_that_moves_gets_the_verdict_of_all_rounds():
    counted = script("counted", COUNTED)
    document, text = ab("-r", 40, "-w", 0, *QUIET, "--metric", "t", "-n", "flat", "-n", "drift",
                        f"{counted} flat", f"{counted} drift")
    row = comparison(document, "t")
    contains(row["text"], "× slower [")
    contains(row["text"], "in all 40 rounds: 1.0")
    if not row["low"] > 1:
        raise AssertionError(row)
    contains(text, row["text"])


@test
def noise_is_told_as_noise():
    counted = script("counted", COUNTED)
    document, text = ab("-r", 12, "-w", 0, *QUIET, "--metric", "t", "-n", "wild", "-n", "flat",
                        f"{counted} wild", f"{counted} flat")
    row = comparison(document, "t")
    contains(row["text"], "too noisy to tell: runs of the same command differ by up to ")
    lacks(text, "invisible")
    contains(notes(document)["noisy"], "--metric cpu")


@test
def how_the_runs_lie_is_shown():
    counted = script("counted", COUNTED)
    document, text = ab("-r", 40, "-w", 0, *QUIET, "--metric", "t", "--markdown=x.md",
                        "--html=x.html", "-n", "flat", "-n", "slow", f"{counted} flat",
                        f"{counted} slow")
    for place in (text, open("x.md").read()):
        contains(place, "t, all runs")
        contains(place, "min … max")
        contains(place, "4 of 40 runs take about ")  # 9.9 or 10 times as long
    page = open("x.html").read()
    contains(page, "All runs: mean, extremes, quartiles")
    contains(page, "4 of 40 runs take about ")
    lacks(text, "▇")  # no terminal
    code, drawn = interrupted(["-r", 8, *QUIET, "true"], lambda: True, lambda pid, terminal: None,
                              env={"LC_ALL": "C.UTF-8"})
    equal(code, 0)
    contains(drawn, "▕")


@test
def markdown_is_a_table():
    result = assay("ab", "-r", 8, *QUIET, "--markdown", "sleep 0.001", "sleep 0.3", check=0)
    lines = result.stdout.splitlines()
    contains(lines[0], "| metric | command | median |")
    contains(result.stdout, "× slower")


@test
def progress_appears_on_a_terminal_only():
    code, text = interrupted(["-r", 6, *QUIET, "sleep 0.3", "sleep 0.3 0"], lambda: True,
                             lambda pid, terminal: None, env={"TERM": "xterm"})
    equal(code, 0)
    contains(text, "round ")
    contains(text, " left")
    equal(assay("ab", "-r", 6, *QUIET, "sleep 0.4", check=0).stderr, "")


main()
