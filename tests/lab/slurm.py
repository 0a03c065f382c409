# SPDX-License-Identifier: MIT
"""assay run --on slurm on a real cluster of several nodes on this host: the result is the one of a
single machine, also when a node dies, the store goes away or the owner is stopped."""
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import cluster as slurm
from harness import *
from server import Server
from server import why_not as why_no_server

WAIT_S = 720

# Each run says where it was; its figure follows from cell and round alone.  `hold` keeps runs.
SPEC = """name: lab
command: sh -c 'echo "{n} {size} {round} $SLURMD_NODENAME" >> log; while [ -e hold ] || [ -e hold.$SLURMD_NODENAME ]; do sleep 0.02; done; eval "echo assay.metric figure $((1000 * {size} + 100 * {n} + {round})) B >&$ASSAY_METRICS_FD"'
factors:
  size: [1, 2]
  n: [1, 2, 3]
metrics:
  figure: {better: lower, headline: true}
rounds: 4
warmup: 0
layout: fixed
baseline: {n: 1}
"""
RUNS = 2 * 3 * 4

nodes = server = None


def use_cluster(spec=SPEC):
    global nodes
    if slurm.why_not():
        skip(slurm.why_not())
    if not nodes:
        nodes = slurm.Cluster(nodes=4)
    for name in nodes.nodes:
        nodes.lacks(name, "")
        if nodes.states()[name] != "idle":
            revive(name)
    pathlib.Path("lab.yaml").write_text(spec)


def revive(name):
    """A node that was killed, or is still busy with an ended job."""
    end = time.monotonic() + WAIT_S
    while nodes.states()[name] not in ("idle", "down", "down*"):
        assert time.monotonic() < end, nodes.states()
        time.sleep(0.2)
    if nodes.states()[name] != "idle":
        nodes.start(name)


def start(*words, spec="lab.yaml"):
    return subprocess.Popen([ASSAY, "run", spec, "--seed", "3", "--on", "slurm", *map(str, words)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, **nodes.environment,
                                     ASSAY_SPOOL=str(pathlib.Path("spool").absolute())))


def ended(process, code=0):
    try:
        out, said = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("it does not end: " + nodes.run("squeue") + str(nodes.states()))
    equal(process.returncode, code, said)
    lacks(out + said, "Sanitizer")
    return said


def until(condition, process):
    end = time.monotonic() + WAIT_S
    while not condition():
        if process.poll() is not None:
            raise AssertionError("ended early: " + process.stderr.read())
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + nodes.run("squeue"))
        time.sleep(0.02)


def log():
    path = pathlib.Path("log")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def figures(place):
    """What does not depend on time: each cell's figures by round, and the counts."""
    shown = json.loads(assay("show", "last", "--json", "--db", place, check=0).stdout)
    return ([(c["label"], c["values"]["figure"]) for c in shown["cells"]], shown["state"],
            json.loads(assay("list", "--json", "--db", place, check=0).stdout)
            ["experiments"][0]["runs_count"])


def of_one_machine():
    pathlib.Path("log").unlink(missing_ok=True)
    assay("run", "-q", "lab.yaml", "--seed", 3, "--db", "alone.db", check=0)
    return figures("alone.db")


def places(db):
    """The node of each run, by block and round."""
    with sqlite3.connect(db) as store:
        rows = store.execute("SELECT c.label, r.round, r.layout FROM run r JOIN cell c ON c.id ="
                             " r.cell").fetchall()
    found = {}
    for label, number, layout in rows:
        found.setdefault((label.split()[0], number), set()).add(layout)
    return found


def leftovers():
    """Folders of experiments that are not finished."""
    return [p for p in pathlib.Path(".assay/cluster").glob("*-*-*") if p.is_dir()]


@test
def a_cluster_gives_what_one_machine_gives():
    use_cluster()
    ended(start("--db", "lab.db"))
    where = places("lab.db")
    equal(len(where), 2 * 4, "blocks and rounds")
    equal({len(names) for names in where.values()}, {1}, "a block in a round is on one node")
    between(len({name for names in where.values() for name in names}), 2, 4, "nodes")
    with sqlite3.connect("lab.db") as store:
        kinds = {kind for (kind,) in store.execute("SELECT kind FROM attachment")}
        text = store.execute("SELECT text FROM attachment a JOIN document d ON d.hash = a.hash"
                             " WHERE kind LIKE 'node:%'").fetchone()[0]
    equal({"node:" + name.partition("=")[2] for names in where.values() for name in names} <= kinds,
          True, str(kinds))
    node = json.loads(text)
    for key in ("node", "type", "cpu", "cpus", "kernel", "pmu", "machine"):
        equal(key in node, True, key)
    equal(leftovers(), [], "folders")
    equal(figures("lab.db"), of_one_machine())


@test
def a_node_that_dies_half_way():
    use_cluster()
    pathlib.Path("hold.n2").touch()
    process = start("--db", "lab.db")
    until(lambda: any(line[3] == "n2" for line in log()), process)
    nodes.kill("n2")
    pathlib.Path("hold.n2").unlink()
    said = ended(process)
    contains(said, "node n2: task")
    contains(said, "was lost")
    equal({len(names) for names in places("lab.db").values()}, {1})
    equal(figures("lab.db"), of_one_machine())


@test
def stopped_it_cancels_what_waits_and_goes_on_later():
    use_cluster()
    process = start("--db", "lab.db", "--throttle", 1)
    until(lambda: len(log()) >= 4, process)
    pathlib.Path("hold").touch()
    process.send_signal(signal.SIGINT)
    said = ended(process, 130)
    pathlib.Path("hold").unlink()
    kept = int(re.search(r"stopped; (\d+) runs are kept", said)[1])
    between(kept, 0, RUNS - 3, "runs that are kept")
    equal(kept % 3, 0, "only whole blocks are kept")
    equal("PENDING" in nodes.run("squeue", "-h", "-o", "%T"), False, "tasks that wait")
    nodes.until_idle()
    pathlib.Path("log").unlink()
    said = ended(start("--db", "lab.db"))
    contains(said, "resuming experiment 1")
    equal(len(log()), RUNS - kept, "only what was missing")
    equal(figures("lab.db"), of_one_machine())


@test
def scancel_is_a_wish_to_stop():
    use_cluster()
    pathlib.Path("hold").touch()
    process = start("--db", "lab.db")
    until(lambda: len(log()) >= 2, process)
    nodes.run("scancel", "--name=assay-lab")
    said = ended(process, 143)
    contains(said, "was cancelled (scancel); stopping the experiment")
    contains(said, "run the same command again to resume")
    pathlib.Path("hold").unlink()
    contains(ended(start("--db", "lab.db")), "resuming")
    equal(figures("lab.db"), of_one_machine())


@test
def killed_it_finds_what_its_tasks_measured_meanwhile():
    use_cluster()
    process = start("--db", "lab.db")
    until(lambda: len(log()) >= 4, process)
    process.kill()
    process.communicate()
    nodes.until_idle()
    said = ended(start("--db", "lab.db"))
    contains(said, "resuming experiment 1")
    equal(len(log()) <= RUNS + 4 * 3, True, f"{len(log())} runs were made")
    equal(leftovers(), [])
    equal(figures("lab.db"), of_one_machine())


@test
def the_database_goes_away_and_comes_back():
    global server
    use_cluster()
    if why_no_server():
        skip(why_no_server())
    server = server or Server()
    place = server.make("cluster")
    pathlib.Path("hold").touch()
    process = start("--db", place)
    until(lambda: len(log()) >= 1, process)
    server.stop()
    pathlib.Path("hold").unlink()
    until(lambda: len(log()) >= RUNS, process)
    server.start()
    ended(process)
    equal(figures(place), of_one_machine())


@test
def a_command_that_fails_is_tried_elsewhere_and_then_told():
    use_cluster("name: bad\ncommand: sh -c 'echo \"$SLURMD_NODENAME\" >> log; echo no luck >&2; exit 3'\n"
                "rounds: 1\nwarmup: 0\n")
    said = ended(start("--db", "lab.db", "--tries", 2), 1)
    contains(said, "exit code 3")
    contains(said, "no luck")
    contains(said, "on node n")
    equal(len({line[0] for line in log()}), 2, "nodes that tried")


NEEDY = """name: needy
command: sh -c 'echo "{v} $SLURMD_NODENAME" >> log'
factors:
  v: [{name: plain}, {name: uring, needs: io-uring}]
  size: [1, 2]
baseline: {size: 1}
rounds: 3
warmup: 0
"""


@test
def nodes_are_used_only_for_what_they_can_measure():
    use_cluster(NEEDY)
    if not has_io_uring():
        skip("this machine has no io_uring")
    for name in ("n1", "n3", "n4"):
        nodes.lacks(name, "io-uring")
    ended(start("--db", "lab.db"))
    uring = {line[1] for line in log() if line[0] == "uring"}
    equal(uring, {"n2"})


def has_io_uring():
    found = re.search(r'"id": ?"io-uring", ?"state": ?"(\w+)"', assay("doctor", "--no-noise", "--json").stdout)
    return bool(found) and found[1] == "yes"


BUILT = """name: built
build:
  command: sh -c 'echo built >> builds; printf "#!/bin/sh\\necho {v}\\n" > {build}/prog; chmod +x {build}/prog'
  inputs: [lab.yaml]
command: '{build}/prog'
factors: {v: [a, b]}
rounds: 4
warmup: 0
"""


@test
def builds_are_made_once_for_a_type_of_node():
    use_cluster(BUILT)
    ended(start("--db", "lab.db"))
    equal(pathlib.Path("builds").read_text().count("built"), 2, "builds")
    equal(len(list(pathlib.Path(".assay/cluster/builds").iterdir())), 1, "types of nodes")


@test
def options_reach_the_scheduler():
    use_cluster()
    ended(start("--db", "lab.db", "--constraint", "n1|n3", "--partition", "lab", "--exclusive",
                "--slurm-args", "--comment='from the lab'", "--throttle", 2, "--together", "all"))
    equal({line[3] for line in log()} <= {"n1", "n3"}, True, str(log()))
    jobs = nodes.run("scontrol", "show", "job", "-o")
    contains(jobs, "Comment=from the lab")
    contains(jobs, "JobName=assay-lab")
    contains(jobs, "ArrayTaskThrottle=2")
    said = ended(start("--fresh", "--db", "lab.db", "--partition", "none"), 1)
    contains(said, "sbatch")


MOVE = """name: across
hosts: [sender, receiver]
setup:
  start: ["{on.receiver}", sh, -c, "echo $SLURMD_NODENAME > receiver; exec BINARY --listen {host.receiver}:PORT"]
  ready: {output: listening}
command: sh -c 'echo $SLURMD_NODENAME > sender; exec BINARY --connect {host.receiver}:PORT -S 0.1 --warmup 0.05'
rounds: 2
warmup: 0
"""


@test
def sender_and_receiver_are_on_different_nodes():
    binary = pathlib.Path(os.environ["BUILD"]) / "workloads/move/assay-move"
    port = slurm.free_ports(1)[0]
    use_cluster(MOVE.replace("BINARY", str(binary)).replace("PORT", str(port)))
    ended(start("--db", "lab.db"))
    sender, receiver = (pathlib.Path(name).read_text().strip() for name in ("sender", "receiver"))
    equal({sender, receiver} < set(nodes.nodes), True, sender + " " + receiver)
    equal(sender != receiver, True, "nodes differ")
    runs = json.loads(assay("list", "--json", "--db", "lab.db", check=0).stdout)["experiments"][0]
    equal(runs["runs_count"], 2)
    equal(runs["failed_count"], 0)


@test
def replicas_are_on_nodes_of_their_own():
    use_cluster()
    build = pathlib.Path(os.environ["BUILD"]).absolute()
    text = (ROOT / "experiments/replication-hosts.yaml").read_text()
    ports = slurm.free_ports(3)
    for i, port in enumerate(ports):
        text = text.replace(f":{7001 + i}", f":{port}")
    text = text.replace("requests: 1000", "requests: 100").replace("requests: 5000", "requests: 200")
    replica = f"{build}/workloads/vr/assay-vr replica"
    asked = ("assay-vr, replica,", f"sh, -c, 'echo $SLURMD_NODENAME >> replicas; exec {replica} \"$@\"', x,")
    equal(text.count(asked[0]), 3)
    text = text.replace(*asked).replace("command: assay-vr", f"command: {build}/workloads/vr/assay-vr")
    pathlib.Path("lab.yaml").write_text(text)
    ended(start("--db", "lab.db", "--quick", "--throttle", 1))
    equal(set(pathlib.Path("replicas").read_text().split()), {"n2", "n3", "n4"})
    with sqlite3.connect("lab.db") as store:
        equal({row[0] for row in store.execute("SELECT DISTINCT layout FROM run")}, {"node=n1"})
        equal(store.execute("SELECT count(*) FROM run WHERE status = 0").fetchone()[0], 4)
    equal(list(pathlib.Path(".").glob("vr-*")), [], "files of the replicas")


@test
def a_dead_node_is_noticed_by_slurm_itself():
    """Nobody tells the controller: the node does not answer its pings."""
    global nodes
    use_cluster()
    usual, nodes = nodes, slurm.Cluster(nodes=3, node_timeout=15)
    try:
        pathlib.Path("hold.n3").touch()
        process = start("--db", "lab.db")
        until(lambda: any(line[3] == "n3" for line in log()), process)
        nodes.kill("n3", is_told=False)
        pathlib.Path("hold.n3").unlink()
        said = ended(process)
        contains(nodes.states()["n3"], "down")
    finally:
        nodes.close()
        nodes = usual
    equal(bool(re.search(r"node n3: task \d+_\d+ was lost \(NODE_FAIL\)", said)), True, said)
    equal(figures("lab.db"), of_one_machine())


# The controller is made to forget what is over, as it does after MinJobAge; sacct is asked as it is.
SACCT = """#!/bin/sh
echo "$@" >> asked
REAL "$@" > answer.$$; code=$?
tee -a answers < answer.$$
exit $code
"""
SCONTROL = """#!/bin/sh
case " $* " in *" show job "*) exit 1 ;; esac
exec REAL "$@"
"""
SQUEUE = """#!/bin/sh
REAL "$@" | grep -E '[|](PENDING|RUNNING|COMPLETING)[|]'
exit 0
"""


@test
def the_queue_has_forgotten_a_task_and_accounting_knows():
    """MinJobAge has passed: what became of a lost task stands only in the accounting."""
    if not slurm.has_accounting():
        skip("not installed: " + " or ".join(slurm.ACCOUNTING_PACKAGES))
    use_cluster()
    tools = pathlib.Path("tools")
    tools.mkdir()
    for name, text in (("sacct", SACCT), ("scontrol", SCONTROL), ("squeue", SQUEUE)):
        (tools / name).write_text(text.replace("REAL", slurm.program(name)))
        (tools / name).chmod(0o755)
    pathlib.Path("hold.n3").touch()
    nodes.environment["PATH"] = f"{tools.absolute()}:{os.environ['PATH']}"
    try:
        process = start("--db", "lab.db")
        until(lambda: any(line[3] == "n3" for line in log()), process)
        nodes.kill("n3")
        pathlib.Path("hold.n3").unlink()
        said = ended(process)
    finally:
        del nodes.environment["PATH"]
    contains(pathlib.Path("asked").read_text(), "--format=JobID,State,NodeList")
    contains(pathlib.Path("answers").read_text(), "|NODE_FAIL|n3|")
    equal(bool(re.search(r"node n3: task \d+_\d+ was lost \(NODE_FAIL\)", said)), True, said)
    size, number = next((line[1], line[2]) for line in log() if line[3] == "n3")
    again = {line[3] for line in log() if line[1:3] == [size, number]} - {"n3"}
    equal(len(again) >= 1, True, "nodes that measured it again")
    equal(figures("lab.db"), of_one_machine())


try:
    main()
finally:
    for thing in (nodes, server):
        if thing:
            thing.close()
