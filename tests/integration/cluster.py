# SPDX-License-Identifier: MIT
"""assay run --on slurm with a stand-in for Slurm (tests/lib/fake_slurm.py): what a real one shows too
rarely or too slowly.  tests/lab/slurm.py has the real one."""
import json
import os
import pathlib
import pty
import re
import select
import sqlite3
import subprocess
import time

from fake_slurm import FakeSlurm
from harness import *

WAIT_S = 120

# The figure follows from cell, round and node; `hold` and `hold.NODE` keep runs.
SPEC = """name: lab
command: sh -c 'echo "{v} {round} $SLURMD_NODENAME" >> log; while [ -e hold ] || [ -e hold.$SLURMD_NODENAME ]; do sleep 0.02; done; . ./figures; eval "echo assay.metric figure $figure B >&$ASSAY_METRICS_FD"'
factors:
  v: [1, 2]
metrics:
  figure: {better: lower, headline: true}
rounds: 6
warmup: 0
layout: fixed
baseline: {v: 1}
"""
FIGURES = "figure=$((1000 * {v} + {round}))\n"


def write(spec=SPEC, figures=FIGURES):
    # The holes are those of the spec, so that the file is the command's own.
    pathlib.Path("figures").write_text(figures.replace("{v}", "$v").replace("{round}", "$round"))
    pathlib.Path("lab.yaml").write_text(spec.replace(". ./figures", "v={v} round={round} . ./figures"))


def start(slurm, *words, **kwargs):
    environment = dict(os.environ, **slurm.environment)
    environment.pop("SLURM_CONF", None)
    return subprocess.Popen([ASSAY, "run", "lab.yaml", "--seed", "3", "--on", "slurm",
                             *map(str, words)], env=environment, stdin=subprocess.DEVNULL,
                            **(kwargs or dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                              text=True)))


def ended(process, code=0):
    try:
        out, said = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("it does not end") from None
    equal(process.returncode, code, said)
    lacks(out + said, "Sanitizer")
    lacks(said, "runtime error")
    return said


def on_cluster(slurm, *words, code=0):
    return ended(start(slurm, *words), code)


def until(condition, process):
    end = time.monotonic() + WAIT_S
    while not condition():
        if process.poll() is not None:
            raise AssertionError("ended early: " + process.stderr.read())
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def log():
    path = pathlib.Path("log")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def figures(experiment="last"):
    shown = json.loads(assay("show", experiment, "--json", check=0).stdout)
    return {c["label"]: [value for _, value in c["values"]["figure"]]
            for c in shown["cells"]}


EXPECTED = {f"v={v}": [1000 * v + r for r in range(6)] for v in (1, 2)}


@test
def without_a_cluster_it_says_what_to_do():
    write()
    with FakeSlurm() as slurm:
        slurm.broken["sinfo"] = ("slurm_load_partitions: Unable to contact slurm controller "
                                 "(connect failure)")
        said = on_cluster(slurm, code=1)
        contains(said, "Unable to contact slurm controller")
        contains(said, "'scontrol ping' must say UP")
        contains(said, "Nothing was begun")
        equal(pathlib.Path(store_place()).exists(), False, "a store")
        slurm.environment["SLURM_CONF"] = "/nonexistent/slurm.conf"
        process = subprocess.run([ASSAY, "run", "lab.yaml", "--on", "slurm"], text=True, check=False,
                                 env=dict(os.environ, **slurm.environment), capture_output=True)
        equal(process.returncode, 1)
        contains(process.stderr, "SLURM_CONF=/nonexistent/slurm.conf: it must name")
    said = assay("run", "lab.yaml", "--on", "slurm", env={"PATH": os.getcwd()}, check=1).stderr
    contains(said, "sinfo is not installed")


@test
def sbatch_says_what_is_wrong_with_an_account():
    write()
    with FakeSlurm() as slurm:
        slurm.broken["sbatch"] = "sbatch: error: Batch job submission failed: Invalid account or so"
        said = on_cluster(slurm, code=1)
        contains(said, "--slurm-args --account=NAME")


def a_node_dies_and_the_queue_forgets(slurm):
    """The owner learns of it only by asking about the past."""
    write()
    slurm.forgets = True
    pathlib.Path("hold.n2").touch()
    process = start(slurm)
    until(lambda: any(line[2] == "n2" for line in log()), process)
    slurm.kill("n2")
    pathlib.Path("hold.n2").unlink()
    said = ended(process)
    equal(figures(), EXPECTED)
    lost = re.search(r"node n2: task \d+_\d+ was lost \(NODE_FAIL\)", said)
    equal(bool(lost), True, said)
    v, number, _ = [line for line in log() if line[2] == "n2"][-1]
    equal({line[2] for line in log() if line[:2] == [v, number]} - {"n2"} != set(), True,
          f"v={v} of round {number} was measured again elsewhere")
    excluded = [w for words in slurm.called("sbatch")[1:] for w in words if "--exclude" in w]
    equal(excluded, ["--exclude=n2"])


@test
def accounting_tells_of_a_node_that_failed():
    with FakeSlurm() as slurm:
        a_node_dies_and_the_queue_forgets(slurm)
        job = slurm.called("sbatch") and slurm.tasks[0].job
        equal([w for w in slurm.called("sacct")[0] if w.startswith("--jobs")], [f"--jobs={job}"])
        equal(slurm.called("scontrol")[1:], [], "calls of scontrol besides its settings")


@test
def without_accounting_the_controller_is_asked():
    with FakeSlurm() as slurm:
        slurm.has_accounting = False
        a_node_dies_and_the_queue_forgets(slurm)
        equal(any(words[-3:-1] == ["show", "job"] for words in slurm.called("scontrol")), True)


# ---- progress ----

LINE = (r"run \d+ of 12; tasks: \d+ over, \d+ running, \d+ waiting(, some were lost)?"
        r", left about [\d.]+ ?\w+")


def read_terminal(leader, seen, seconds):
    if select.select([leader], [], [], seconds)[0]:
        try:
            seen.append(os.read(leader, 65536).decode(errors="replace"))
        except OSError:  # the other side is closed
            return False
    return True


@test
def progress_and_time_left_are_on_a_terminal():
    write()
    pathlib.Path("hold.n2").touch()  # the others go on
    leader, follower = pty.openpty()
    with FakeSlurm() as slurm:
        process = start(slurm, stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        seen, end = [], time.monotonic() + WAIT_S
        while not re.search(LINE, "".join(seen)):
            read_terminal(leader, seen, 0.1)
            assert time.monotonic() < end, "".join(seen)
        pathlib.Path("hold.n2").unlink()
        while process.poll() is None:
            read_terminal(leader, seen, 0.1)
            assert time.monotonic() < end, "".join(seen)
        while read_terminal(leader, seen, 0.1) and select.select([leader], [], [], 0)[0]:
            pass
    os.close(leader)
    equal(process.returncode, 0)
    contains("".join(seen), "\r\033[K")
    equal("".join(seen).rpartition("\r\033[K")[2].strip(), "", "the line is wiped at the end")


@test
def off_a_terminal_progress_is_plain_lines():
    write()
    pathlib.Path("hold.n2").touch()
    with FakeSlurm() as slurm, open("said", "w+", encoding="utf-8") as said:
        process = start(slurm, stdout=subprocess.DEVNULL, stderr=said)
        read = pathlib.Path("said").read_text
        end = time.monotonic() + WAIT_S
        while not re.search("^assay run: " + LINE + "$", read(), re.MULTILINE):
            assert process.poll() is None and time.monotonic() < end, read()
            time.sleep(0.02)
        pathlib.Path("hold.n2").unlink()
        equal(process.wait(WAIT_S), 0, read())
        lacks(read(), "\033")
        pathlib.Path("hold").touch()
        quiet = start(slurm, "--fresh", "-q")
        until(lambda: len(log()) > 12, quiet)
        time.sleep(2.5)  # longer than lines wait
        pathlib.Path("hold").unlink()
        equal(ended(quiet), "", "what -q says")


# ---- more rounds ----

@test
def extra_rounds_until_it_is_precise():
    """Noise that a fixed number of rounds cannot bring below 2 %, then none."""
    write(SPEC.replace("rounds: 6", "rounds: {min: 8, max: 60}\nprecision: 2%"),
          "case $(({round} % 4)) in 0) e=0;; 1) e=40;; 2) e=-40;; 3) e=10;; esac\n"
          "[ {v} = 1 ] && figure=1000 || figure=$((2000 + e))\n")
    with FakeSlurm() as slurm:
        on_cluster(slurm)
        values = figures()
        between(len(values["v=1"]), 9, 60, "rounds")
        equal(len(values["v=1"]), len(values["v=2"]), "both sides")
        assert len(slurm.called("sbatch")) >= 2, "more was submitted"
        nodes = {line[2] for line in log() if int(line[1]) >= 8}
        between(len(nodes), 2, 3, "nodes of extra rounds")


@test
def extra_rounds_use_up_the_budget():
    write(SPEC.replace("rounds: 6", "rounds: 2\nbudget: 3s"))
    with FakeSlurm() as slurm:
        on_cluster(slurm)
        equal(len(figures()["v=1"]) > 2, True, "more than two rounds")
        assay("run", "lab.yaml", "--on", "slurm", env=slurm.environment, check=0)


@test
def the_budget_ends_what_is_queued():
    write(SPEC.replace("rounds: 6", "rounds: 30\nbudget: 2s"),
          FIGURES + "[ {round} -lt 4 ] || sleep 300\n")
    with FakeSlurm(nodes=1) as slurm:
        said = on_cluster(slurm)
        contains(said, "the budget ended after ")
        between(len(figures()["v=1"]), 1, 4, "rounds")
        equal({task.state for task in slurm.tasks} <= {"COMPLETED", "CANCELLED", "FAILED"}, True)
        assert slurm.called("scancel")
    state = json.loads(assay("list", "--json", check=0).stdout)["experiments"][0]["state"]
    equal(state, "done")


main()
