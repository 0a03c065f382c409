# SPDX-License-Identifier: MIT
"""assay history on stores whose truth is known."""
import fcntl
import json
import os
import pathlib
import shlex
import shutil
import sqlite3
import subprocess

from harness import *

NOISY = os.path.abspath(target("noisy"))

SPEC = """name: demo
command: NOISY level-{size} COUNTER 0.01
factors: {size: [1, 2]}
metrics: {latency: {unit: ms, better: lower}}
rounds: 3
warmup: 0
"""


def git(*args):
    result = subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *args],
                            check=True, capture_output=True, text=True)
    return result.stdout.strip()


def place():
    """A file where git does not see it; on PostgreSQL the test's own schema."""
    return os.environ.get("ASSAY_DB", ".git/a.db")


def store(levels, spread=0.01):
    """One experiment for each level of size 1; size 2 stays where it is."""
    git("init", "-q", ".")
    pathlib.Path("e.yaml").write_text(SPEC.replace("NOISY", NOISY)
                                      .replace("COUNTER 0.01",
                                               os.path.abspath(".git/counter") + f" {spread}"))
    commits = []
    for number, level in enumerate(levels):
        pathlib.Path("level-1").write_text(f"{level}\n")
        pathlib.Path("level-2").write_text("50\n")
        pathlib.Path("number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
        commits.append(git("rev-parse", "HEAD"))
        assay("run", "e.yaml", "--seed", str(number + 1), "--fresh", "-q", "--db", place(),
              check=0)
    return commits


def history(*args, **kwargs):
    return assay("history", *args, "--db", place(), **kwargs)


@test
def a_shift_that_may_be_nothing_is_not_called_an_improvement():
    """Experiments that begin to vary: the distribution changes, and whether the level does is not
    known, since the interval has 0 in it."""
    quiet = [100.08, 99.48, 99.83, 99.87, 100.49, 100.21, 99.83, 100.34, 100.26, 99.81, 100, 99.83, 99.22, 100.27]
    restless = [103.75, 98.1, 96.2, 104.09, 102.78, 97.1, 100.83, 101.45, 98.9, 103.81, 101.49, 99.6, 95.95, 97.94]
    git("init", "-q", ".")
    for number, value in enumerate(3 * quiet + 3 * restless):
        pathlib.Path("result.txt").write_text(f"BenchmarkLevel 1 {value} ns/op\n")
        assay("import", "--db", place(), "--format", "go", "--name", "demo", "--commit", f"{number:040x}",
              "--branch", "main", "--machine", "one", "--date", f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z", "result.txt",
              check=0)
    changes = json.loads(history("time", "--json", check=0).stdout)["histories"][0]
    [change] = changes["changes"]
    equal(change["low"] < 1 < change["high"], True, change)
    equal(change["kind"], "possible change")
    text = history("time", check=0).stdout
    contains(text, "possible change at ")
    lacks(text, "improvement")
    lacks(text, "regression")


@test
def a_change_is_found_drawn_and_named():
    commits = store([100] * 8 + [110] * 6)
    report = json.loads(history("latency", "--json", check=0).stdout)
    equal(report["format"], "assay-history-1")
    first, second = report["histories"]
    equal((first["cell"], second["cell"]), ("size=1", "size=2"))
    equal([p["commit"] for p in first["points"]], commits)
    equal([p["runs"] for p in first["points"]], [3] * 14)
    equal(len(first["changes"]), 1)
    change = first["changes"][0]
    equal((change["index"], change["commit"], change["kind"]), (8, commits[8], "regression"))
    between(change["estimate"], 1.08, 1.12)
    equal(second["changes"], [])

    text = history("latency", "--cell", "size=1", check=0).stdout
    contains(text, "demo: size=1, latency, lower is better: 14 experiments")
    contains(text, " regression at ")
    contains(text, commits[8][:12])
    contains(text, "(number 8)")
    lines = text.splitlines()
    marks = [line for line in lines if line.strip() == "▲"]
    equal(len(marks), 1, text)
    dots = [line for line in lines if "•" in line]
    equal(sum(line.count("•") for line in dots), 14)
    # The mark stands below the ninth experiment.
    left = lines[1].index("┤") + 1
    equal(marks[0].index("▲") - left, 8)
    lacks(text, "size=2")
    spark = history("latency", "--spark", "--cell", "size=1", check=0).stdout
    equal(sum(spark.count(bar) for bar in "▁▂▃▄▅▆▇█"), 14)


@test
def options_with_nothing_in_them_are_refused():
    """As of a variable of a shell that is not set: nothing is accepted, no alarm counts as given."""
    for option, said in (("--accept", "takes a note"), ("--alarm", "takes a command")):
        for empty in ("", " \n"):
            contains(history("latency", option, empty, check=2).stderr, f"{option} {said}")
    contains(history("latency", "--backfill", "--run", "", check=2).stderr, "--run takes a command")


@test
def a_short_history_is_drawn_and_not_judged():
    store([100, 120, 140])
    text = history("latency", check=0).stdout
    contains(text, "At least 8 experiments are needed to detect a change")
    contains(text, "3 experiments")


@test
def commits_can_give_the_order():
    commits = store([100, 100, 100, 100, 110, 110, 110, 110])
    # As if the older half had been measured later.
    needs_file_store("the times are changed in the file")
    with sqlite3.connect(".git/a.db") as db:
        db.execute("UPDATE experiment SET started_at_ns = started_at_ns + 1000000000000 "
                   "WHERE id <= 4")
    by_time = json.loads(history("latency", "--cell", "size=1", "--json", check=0).stdout)
    equal([p["commit"] for p in by_time["histories"][0]["points"]], commits[4:] + commits[:4])
    by_commit = json.loads(history("latency", "--cell", "size=1", "--by-commit", "--json",
                                   check=0).stdout)
    equal([p["commit"] for p in by_commit["histories"][0]["points"]], commits)


@test
def trouble_is_told():
    store([100])
    contains(history("latancy", check=1).stderr, "did you mean latency?")
    contains(history("latency", "--name", "nosuch", check=1).stderr, "no runs of this selection have the metric 'latency'")
    history(check=2)
    history("latency", "--chance", "7", check=2)
    history("latency", "--rows", "1", check=2)
    contains(assay("history", "latency", "--db", "nosuch.db", check=1).stderr, "nosuch.db")
    contains(assay("history", "latency", "--by-commit", "--db",
                   place() if "://" in place() else os.path.abspath(place()), check=1, cwd="/").stderr, "--by-commit needs")


def series(levels, first_day=1, **keys):
    """One imported result for each level, a day each."""
    options = [word for name, value in keys.items() for word in (f"--{name}", value)]
    for day, level in enumerate(levels, first_day):
        pathlib.Path("go.txt").write_text("".join(f"BenchmarkParse 100 {level + k / 100} ns/op\n" for k in range(3)))
        assay("import", "--db", place(), "--name", "parse", "--commit", f"c{day:07}",
              "--date", f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00Z", *options, "go.txt", check=0)


def told(*args, check=0):
    """What --alarm told, a document for each change."""
    pathlib.Path("told").write_text("")
    history("time", "--alarm", "cat >> told; echo >> told; echo ---- >> told", *args, check=check)
    return [json.loads(part) for part in pathlib.Path("told").read_text().split("----\n") if part.strip()]


STEP = [100, 101, 99, 100.5, 100, 99.5, 101, 100, 100.2, 99.8] + [120, 121, 119, 120.5, 120, 119.5, 121, 120, 120.2, 119.8]


@test
def an_alarm_is_given_once_and_not_for_what_was_accepted():
    os.mkdir(".git")
    series(STEP)
    history("time", "--alarm", "exit 3", check=1)
    contains(history("time", "--alarm", "exit 3", check=1).stderr, "exit code 3")
    [alarm] = told()
    equal((alarm["kind"], alarm["commit"], alarm["last_before"]), ("regression", "c0000011", "c0000010"))
    equal(1.15 < alarm["low"] < 1.2 < alarm["high"] < 1.25, True, alarm)
    equal(told(), [], "told again")
    series([level + 40 for level in STEP[:10]], first_day=21)
    [alarm] = told()
    equal(alarm["commit"], "c0000021")
    history("time", "--accept", "wanted", check=0)
    contains(history("time", check=0).stdout, "accepted: wanted")
    series([200 + level / 10 for level in STEP[:10]], first_day=31)
    history("time", "--accept", "the new parser", "--at", "31", check=0)
    equal(told(), [], "told although it was accepted")
    contains(history("time", "--accept", "x", "--at", "2", check=1).stderr, "no change at experiment 2")


@test
def machines_and_branches_are_histories_of_their_own():
    os.mkdir(".git")
    series(STEP[:10], machine="small", branch="main")
    series(STEP[10:], first_day=11, machine="large", branch="main")
    text = history("time", check=0).stdout
    contains(text, "on small, branch main")
    contains(text, "on large, branch main")
    lacks(text, "regression")
    equal(told(), [])
    series([500] * 4, first_day=21, machine="small", branch="topic")
    equal(len(json.loads(history("time", "--json", "--branch", "topic", check=0).stdout)["histories"]), 1)
    equal(len(json.loads(history("time", "--json", check=0).stdout)["histories"]), 3)


@test
def results_without_a_machine_join_the_only_history():
    os.mkdir(".git")
    series(STEP[:10])
    series(STEP[10:], first_day=11, machine="box")
    [one] = json.loads(history("time", "--json", check=0).stdout)["histories"]
    equal(len(one["points"]), 20)
    equal([c["commit"] for c in one["changes"]], ["c0000011"])


def gap(change=True):
    """Results of commits 0 to 7 and 12 to 19; the level changes at commit 10, and 9 does not build."""
    git("init", "-q", ".")
    pathlib.Path("e.yaml").write_text(SPEC.replace("NOISY", NOISY).replace("{size: [1, 2]}", "{size: [1]}")
                                      .replace("COUNTER", os.path.abspath(".git/counter")))
    pathlib.Path("level-1").write_text("100\n")
    commits = []
    for number in range(20):
        pathlib.Path("ok").write_text(f"{int(number != 9)}\n")
        if number == 10 and change:
            pathlib.Path("level-1").write_text("110\n")
        pathlib.Path("number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
        commits.append(git("rev-parse", "HEAD"))
        if not 8 <= number < 12:
            assay("run", "e.yaml", "--seed", str(number + 1), "--fresh", "-q", "--db", place(), check=0)
    return commits


@test
def a_backfill_finds_the_commit_between_and_keeps_it():
    commits = gap()
    os.environ["GIT_CONFIG_GLOBAL"] = "/dev/null"
    fill = ["latency", "--backfill", "--build", "grep -q 1 ok"]
    report = json.loads(history(*fill, "--json", check=0).stdout)
    [change] = report["histories"][0]["changes"]
    equal((change["commit"], change["last_before"]), (commits[12], commits[7]))
    search = change["search"]
    equal((search["verdict"], search["commit"].split("..")[-1], search["subject"]), ("found", commits[10], "number 10"))
    equal(len(search["reasons"]) > 0, True, search)
    text = history("latency", check=0).stdout
    contains(text, "caused by")
    contains(text, "(number 10)")
    counted = pathlib.Path(".git/counter").stat().st_mtime_ns
    history(*fill, check=0)
    equal(pathlib.Path(".git/counter").stat().st_mtime_ns, counted, "searched again")
    equal(sorted(p.name for p in pathlib.Path(".git").glob("assay-backfill*")), ["assay-backfill.lock"])
    equal(git("worktree", "list").count("\n"), 0, "worktrees left behind")
    pathlib.Path(".git/told").write_text("")
    history("latency", "--alarm", "cat >> .git/told", check=0)
    equal(json.loads(pathlib.Path(".git/told").read_text())["search"]["commit"].split("..")[-1], commits[10])


@test
def a_backfill_says_what_it_cannot_search():
    os.mkdir(".git")
    series(STEP)
    contains(history("time", "--backfill", check=1).stderr, "--backfill needs the git repository")
    subprocess.run(["git", "init", "-q", "."], check=True)
    said = history("time", "--backfill", "--run", "true", check=1)
    contains(said.stderr, "commit c0000010 of experiment 10 is not in this repository")
    contains(said.stderr, "1 change was not searched")
    contains(said.stdout, "regression")
    with open(".git/assay-backfill.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        contains(history("time", "--backfill", check=1).stderr, "another 'assay history --backfill' is running")
    contains(history("time", "--run", "true", check=2).stderr, "go with --backfill")


@test
def the_units_for_systemd_are_right():
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed")
    for name in ("assay-history.service", "assay-history.timer"):
        text = (ROOT / "examples/systemd" / name).read_text()
        pathlib.Path(name).write_text(text.replace("/usr/bin/assay", os.path.realpath(ASSAY)))
    result = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", "./assay-history.service",
                             "./assay-history.timer"], capture_output=True, text=True,
                            env=dict(os.environ, XDG_RUNTIME_DIR=os.getcwd()))
    equal((result.returncode, result.stderr), (0, ""))
    # What it starts is a command that assay takes.
    command = next(line for line in pathlib.Path("assay-history.service").read_text().splitlines()
                   if line.startswith("ExecStart="))
    words = shlex.split(command.partition("=")[2])
    said = subprocess.run([*words, "--db", "none.db"], capture_output=True, text=True)
    equal((said.returncode, "none.db" in said.stderr), (1, True), said.stderr)


main()
