# SPDX-License-Identifier: MIT
"""assay run --on slurm with a stand-in for Slurm (tests/lib/fake_slurm.py): what a real one shows too
rarely or too slowly.  tests/lab/slurm.py has the real one."""
import itertools
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

WAIT_S = 480

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
        contains(said, "'scontrol ping' must report UP")
        contains(said, "Nothing was started")
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


# ---- what the scheduler ends, and why ----

def running(slurm):
    return [task for task in slurm.tasks if task.state == "RUNNING"]


@test
def a_cancelled_task_stops_the_experiment():
    write()
    with FakeSlurm() as slurm:
        pathlib.Path("hold").touch()
        process = start(slurm)
        until(lambda: len(log()) >= 3, process)
        task = running(slurm)[0]
        slurm.stop(task, "CANCELLED")  # by hand: scancel JOB_TASK
        said = ended(process, 143)
        contains(said, f"task {task.job}_{task.index} was cancelled (scancel); stopping the experiment")
        contains(said, "run the same command again to resume")
        equal(len(slurm.called("sbatch")), 1)
        equal(running(slurm), [])
        pathlib.Path("hold").unlink()
        contains(on_cluster(slurm), "resuming")
        equal(figures(), EXPECTED)


@test
def tasks_cancelled_while_they_wait_stop_it_too():
    write()
    with FakeSlurm(nodes=1) as slurm:
        pathlib.Path("hold").touch()
        process = start(slurm)
        until(lambda: log() and [t for t in slurm.tasks if t.state == "PENDING"], process)
        with slurm.lock:
            for task in slurm.tasks:
                if task.state == "PENDING":
                    task.state = "CANCELLED"
        contains(ended(process, 143), "was cancelled (scancel)")


@test
def a_time_limit_is_named():
    write()
    with FakeSlurm() as slurm:
        slurm.limit = "1:00"
        pathlib.Path("hold").touch()
        process = start(slurm, "--tries", 1)
        until(lambda: len(log()) >= 3, process)
        slurm.stop(running(slurm)[0], "TIMEOUT")
        said = ended(process, 1)
        contains(said, "Slurm ended the task at its time limit of 1:00; allow more with "
                       "--slurm-args=--time=HH:MM:SS")


@test
def drained_nodes_show_the_reason():
    write()
    with FakeSlurm(nodes=2) as slurm:
        slurm.nodes.update(n1="drained", n2="down*")
        slurm.reasons.update(n1="disk fails", n2="Not responding")
        process = start(slurm)
        said = "".join(itertools.takewhile(lambda line: "node n2" not in line, process.stderr))
        slurm.nodes["n1"] = "idle"  # only now, when it has been said
        said += "node n2: down*: Not responding" + ended(process)
        contains(said, "no node can run anything now; tasks wait until one can:")
        contains(said, "node n1: drained: disk fails")
        contains(said, "node n2: down*: Not responding")
        equal(figures(), EXPECTED)


# ---- progress ----

LINE = (r"run \d+ of 12; tasks: \d+ finished, \d+ running, \d+ waiting(, some were lost)?"
        r", about [\d.]+ ?\w+ left")


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
    os.environ["TERM"] = "xterm"  # none is a dumb one
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
          "case $(({round} % 4)) in 0) e=0;; 1) e=80;; 2) e=-80;; 3) e=20;; esac\n"
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
    write(SPEC.replace("rounds: 6", "rounds: 2\nbudget: 10s"))
    with FakeSlurm() as slurm:
        on_cluster(slurm)
    equal(len(figures()["v=1"]) > 2, True, "more than two rounds")


@test
def the_budget_ends_what_is_queued():
    write(SPEC.replace("rounds: 6", "rounds: 30\nbudget: 8s"),
          FIGURES + "[ {round} -lt 4 ] || sleep 300\n")
    with FakeSlurm(nodes=1) as slurm:
        said = on_cluster(slurm)
        contains(said, "the budget ended after ")
        between(len(figures()["v=1"]), 1, 4, "rounds")
        equal({task.state for task in slurm.tasks} <= {"COMPLETED", "CANCELLED", "FAILED"}, True)
        assert slurm.called("scancel")
    state = json.loads(assay("list", "--json", check=0).stdout)["experiments"][0]["state"]
    equal(state, "done")


# ---- what nodes cannot measure ----

def counted(event, place="lab.db"):
    """How many of each node's runs have the event."""
    with sqlite3.connect(place) as store:
        return dict(store.execute(
            "SELECT r.layout, count(v.value) FROM run r LEFT JOIN value v ON v.run = r.id AND v.metric"
            " IN (SELECT id FROM metric WHERE name = ?) GROUP BY r.layout", (event,)))


def counted_here(event):
    result = assay("stat", "-e", event, "--json", "--", "true")
    return result.returncode == 0 and all(e["supported"] for e in json.loads(
        result.stdout)["events"])


def needs_page_faults():
    needs_file_store("it looks into the file")
    if not counted_here("page-faults"):
        skip("page faults cannot be counted here")


@test
def a_node_without_an_event_is_not_used_for_it():
    needs_page_faults()
    real = counted_here("cycles:u")
    spec = SPEC.replace("rounds: 6", "rounds: 6\ncounters: page-faults" + ",cycles:u" * real)
    write(spec)
    with FakeSlurm() as slurm:
        slurm.lacks = {"n1": "page-faults", "n3": "pmu" if real else "io-uring page-faults"}
        said = on_cluster(slurm, "--db", "lab.db")
        contains(said, "node n1 cannot be used for this: page-faults: ASSAY_LACKS says so")
        equal(counted("page-faults"), {"node=n2": 12})


@test
def where_no_node_has_an_event_it_is_left_out():
    needs_page_faults()
    write(SPEC.replace("rounds: 6", "rounds: 6\ncounters: page-faults,context-switches"))
    with FakeSlurm() as slurm:
        slurm.lacks = {name: "page-faults" for name in slurm.nodes}
        said = on_cluster(slurm, "--db", "lab.db")
        contains(said, "no node has all of the spec's counters; running without them")
    equal(sum(counted("page-faults").values()), 0)
    equal(sum(counted("context-switches").values()), 12)


@test
def with_the_default_events_each_node_counts_what_it_has():
    needs_page_faults()
    write(SPEC.replace("rounds: 6", "rounds: 6\ncounters: default"))
    with FakeSlurm() as slurm:
        slurm.lacks = {"n2": "page-faults"}
        on_cluster(slurm, "--db", "lab.db")
    equal(counted("page-faults"), {"node=n1": 4, "node=n2": 0, "node=n3": 4})


@test
def cells_that_need_something_and_events_do_not_get_mixed_up():
    needs_page_faults()
    findings = json.loads(assay("doctor", "--no-noise", "--json").stdout)["machine"]["findings"]
    finding = next(f["id"] for f in findings
                   if f["state"] == "yes")
    spec = SPEC.replace("v: [1, 2]", f"v: [1, {{name: 2, needs: {finding}}}]")
    write(spec.replace("rounds: 6", "rounds: 6\ncounters: page-faults"))
    with FakeSlurm() as slurm:
        slurm.lacks = {"n1": finding, "n2": "page-faults"}
        on_cluster(slurm, "--db", "lab.db")
        equal(counted("page-faults"), {"node=n3": 12})
        slurm.lacks = {name: "page-faults" for name in slurm.nodes}
        said = on_cluster(slurm, "--db", "other.db")
        contains(said, "running without them")
        equal(sum(counted("page-faults", "other.db").values()), 0)


@test
def cells_that_no_node_can_measure_are_told_and_the_others_kept():
    needs_file_store("it looks into the file")
    spec = SPEC.replace("v: [1, 2]", "v: [1, 2]\n  u: [{name: plain}, {name: uring, needs: io-uring}]")
    write(spec)
    with FakeSlurm() as slurm:
        slurm.lacks = {name: "ebpf io-uring" for name in slurm.nodes}
        said = on_cluster(slurm, "--db", "lab.db", code=1)
    contains(said, "no node has what some cells need (io-uring)")
    with sqlite3.connect("lab.db") as store:
        counts = dict(store.execute("SELECT c.label, count(*) FROM run r JOIN cell c ON c.id = r.cell"
                                    " GROUP BY c.label"))
    equal(counts, {"v=1 u=plain": 6, "v=2 u=plain": 6})


# ---- profiles ----

PROFILED = """name: why
command: PLANTED {cause} 20000
factors: {cause: [base, copy], part: [1, 2]}
exclude: [{cause: copy, part: 2}]
baseline: {cause: base}
rounds: 2
warmup: 0
profile: all
work: ops
"""


def with_profiles(slurm):
    said = on_cluster(slurm)
    if "no profile of" in said:
        skip("assay record cannot sample here: " + said)
    return said


@test
def profiles_are_recorded_on_the_nodes():
    pathlib.Path("lab.yaml").write_text(PROFILED.replace("PLANTED", target("planted")))
    with FakeSlurm() as slurm:
        said = with_profiles(slurm)
        contains(said, "profiles of cause=base part=1: .assay/profiles/experiment-1-cell-1-*")
        tasks = [t for t in slurm.tasks if t.job == slurm.tasks[-1].job]
        equal([t.state for t in tasks], ["COMPLETED"] * 2, "a task for each block")
    equal(sorted(p.name for p in pathlib.Path(".assay/profiles").iterdir()),
          sorted(f"experiment-1-cell-{c}-run-{r}.data" for c in (1, 2, 3) for r in range(1, 6)))
    equal(list(pathlib.Path(".assay/cluster").glob("*-*-*")), [], "folders that are left")
    found = json.loads(assay("diff", "cause=base", "cause=copy", "--json", check=0).stdout)
    rows = found["diffs"][0]["rows"]
    equal(rows[0]["function"], "memcpy")
    equal(found["diffs"][0]["side_a"]["profiled_runs"], 5)


BUILT = """name: built
build: {command: "cp PLANTED {build}/prog"}
command: '{build}/prog {cause} 20000'
factors: {cause: [base, copy]}
baseline: {cause: base}
rounds: 2
warmup: 0
profile: all
"""


@test
def programs_that_were_profiled_are_kept():
    pathlib.Path("lab.yaml").write_text(BUILT.replace("PLANTED", target("planted")))
    with FakeSlurm() as slurm:
        with_profiles(slurm)
    found = json.loads(assay("diff", "cause=base", "cause=copy", "--json", check=0).stdout)
    equal(found["diffs"][0]["rows"][0]["function"], "memcpy")
    left = [p.name for p in pathlib.Path(".assay/cluster").glob("*-*-*/*")]
    equal(left, ["builds"])


@test
def profiles_that_are_lost_are_a_note():
    pathlib.Path("lab.yaml").write_text(
        PROFILED.replace("work: ops\n", "").replace(  # after the six that are measured it hangs
            "PLANTED", "sh -c 'echo >> log; [ $(wc -l < log) -le 6 ] || sleep 300' x"))
    with FakeSlurm() as slurm:
        process = start(slurm)
        until(lambda: len(slurm.called("sbatch")) == 2 and
              all(t.state != "PENDING" for t in slurm.tasks), process)
        for task in [t for t in slurm.tasks if t.state == "RUNNING"]:
            slurm.kill(task.node)
        said = ended(process)
        contains(said, "its profiles are missing")
    state = json.loads(assay("list", "--json", check=0).stdout)["experiments"][0]["state"]
    equal(state, "done")


# ---- nodes in reports ----

# n2 shows half as much again; the second experiment shows a tenth less everywhere but on n3.
UNEQUAL = """case $SLURMD_NODENAME in n2) figure=$((1500 * {v}));; *) figure=$((1000 * {v}));; esac
[ ! -e second ] || [ $SLURMD_NODENAME = n3 ] || figure=$((figure * 9 / 10))
figure=$((figure * 1000 + {round} * 7 % 11))
"""


def two_experiments():
    write(SPEC.replace("rounds: 6", "rounds: 32"), UNEQUAL)
    with FakeSlurm(nodes=4) as slurm:
        on_cluster(slurm, "-q")
        pathlib.Path("second").touch()
        on_cluster(slurm, "-q", "--fresh")


@test
def two_experiments_are_compared_node_by_node():
    two_experiments()
    text = assay("compare", "1", "2", check=0).stdout
    contains(text, "new / base on each node, the runs of both in their order:")
    line = re.search(r"figure, v=1: (.*)", text)[1]  # the nodes in the order of their first runs
    equal(sorted(line.split(", ")), ["n1 0.900× (n=8)", "n2 0.900× (n=8)", "n3 1.000× (n=8)",
                                     "n4 0.900× (n=8)"])
    contains(text, "node n3 is an outlier: new / base is 1.000× there")
    contains(text, "node n2 is an outlier: its figure is 1.5")
    found = json.loads(assay("compare", "1", "2", "--json", check=0).stdout)
    rows = [row for row in found["rows"] if row["metric"] == "figure"]
    for row in rows:  # as two samples, n2 would spread each side by half
        equal((row["paired"], row["changed"]), (True, True))
        between(row["estimate"], 0.89, 0.91)
    shares = {share["node"]: share for share in found["nodes"][0]["shares"]}
    equal([shares[n]["is_outlier"] for n in ("n1", "n2", "n3", "n4")], [False, False, True, False])
    between(shares["n2"]["new_to_base"], 0.899, 0.901)


@test
def nodes_that_only_one_of_two_experiments_had():
    write(SPEC.replace("rounds: 6", "rounds: 12"), UNEQUAL)
    with FakeSlurm(nodes=2) as slurm:
        on_cluster(slurm, "-q")
    with FakeSlurm(nodes=3) as slurm:
        slurm.nodes["n1"] = "down"
        on_cluster(slurm, "-q", "--fresh")
    text = assay("compare", "1", "2", check=0).stdout
    contains(text, "nodes that are not compared: n1 (only in base)")
    contains(text, "nodes that are not compared: n3 (only in new)")
    contains(text, "fewer than 8 runs of both on the same nodes")


@test
def the_page_shows_the_nodes():
    two_experiments()
    assay("html", "1", "-o", "one.html", check=0)
    page = pathlib.Path("one.html").read_text()
    nodes = re.search(r'<section id="nodes".*?</section>', page, re.DOTALL)[0]
    contains(page, '<a href="#nodes">Nodes</a>')
    for name in ("n1", "n2", "n3", "n4"):
        contains(nodes, f'<th scope="row">{name}</th><td>16</td>')
    contains(nodes, "node n2 is an outlier: its figure is 1.5")
    contains(nodes, "<strong>outlier</strong>")
    kernel = os.uname().release
    contains(nodes, f"<td>{kernel}</td>")
    assay("html", "1", "2", "-o", "both.html", check=0)
    both = pathlib.Path("both.html").read_text()
    contains(both, "New / base on each node")
    contains(both, "0.900× (n=8)")
    contains(both, "1.000× (n=8) <strong>outlier</strong>")
    # What the page holds gives what the store gives.
    assay("html", "2", "-o", "two.html", check=0)
    if "jansson" in assay("html", "one.html", "-o", "again.html").stderr:
        skip("built without jansson")
    again = pathlib.Path("again.html").read_text()
    equal(re.search(r'<section id="nodes".*?</section>', again, re.DOTALL)[0], nodes)
    stores = json.loads(assay("compare", "1", "2", "--json", check=0).stdout)
    pages = json.loads(assay("compare", "one.html", "two.html", "--json", check=0).stdout)
    equal(pages["nodes"], stores["nodes"])
    equal([row["estimate"] for row in pages["rows"]], [row["estimate"] for row in stores["rows"]])
    here = pathlib.Path("lab.yaml").read_text().replace("rounds: 32", "rounds: 2")
    pathlib.Path("lab.yaml").write_text(here)
    assay("run", "-q", "lab.yaml", env={"SLURMD_NODENAME": ""}, check=0)
    assay("html", "last", "-o", "here.html", check=0)
    lacks(pathlib.Path("here.html").read_text(), 'id="nodes"')


main()
