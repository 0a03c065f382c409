# SPDX-License-Identifier: MIT
"""assay run and the store: real experiments, killed, stopped, resumed, side by side."""
import json
import os
import pathlib
import signal
import subprocess
import time

from harness import *

PROGRAM = """#!/bin/sh
# program NAME N: notes that it ran, reports a metric
echo "$1 $2" >> log
[ -z "$ASSAY_METRICS_FD" ] || eval "echo assay.metric ops $2 op/s >&$ASSAY_METRICS_FD"
echo "took $2.5 ms"
echo '{"a": [{"b": 7}]}'
sleep ${PAUSE:-0}
"""

SPEC = """name: demo
question: which?
command: ./program {variant} {n}
factors:
  variant: [a, b]
  n: [1, 2]
metrics:
  ops: {better: higher}
rounds: 4
warmup: 0
baseline: {variant: a}
"""


def prepare(spec=SPEC, name="demo.yaml"):
    pathlib.Path("program").write_text(PROGRAM)
    os.chmod("program", 0o755)
    pathlib.Path(name).write_text(spec)


def runs():
    path = pathlib.Path("log")
    return path.read_text().split("\n")[:-1] if path.exists() else []


def shown(word="last", *args):
    return json.loads(assay("show", word, "--json", *args, check=0).stdout)


def start(*args, **env):
    return subprocess.Popen([ASSAY, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))


def wait_for_runs(count, process):
    for _ in range(3000):
        if len(runs()) >= count:
            return
        if process.poll() is not None:
            raise AssertionError("ended early: " + process.stderr.read())
        time.sleep(0.01)
    raise AssertionError(f"only {len(runs())} runs")


def await_true(condition, what):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"not after a minute: {what}")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def counts(experiment):
    """How many values each cell has, and that no round comes twice."""
    result = []
    for cell in experiment["cells"]:
        rounds = [pair[0] for pair in cell["values"].get("wall", [])]
        equal(len(rounds), len(set(rounds)), "rounds of " + cell["label"])
        result.append(len(rounds))
    return result


@test
def every_cell_runs_in_every_round():
    prepare()
    result = assay("run", "demo.yaml", "--seed", "5", check=0)
    contains(result.stdout, "ops (higher is better)")
    contains(result.stdout, "n=4")
    equal(len(runs()), 16)
    experiment = shown()
    equal(counts(experiment), [4, 4, 4, 4])
    equal(experiment["state"], "done")
    equal(experiment["seed"], 5)
    cell = [c for c in experiment["cells"] if c["label"] == "variant=b n=2"][0]
    equal(cell["factors"], {"variant": "b", "n": "2"})
    equal([v for _, v in cell["values"]["ops"]], [2, 2, 2, 2])
    # In rounds, each in an order of its own.
    orders = [tuple(runs()[i:i + 4]) for i in range(0, 16, 4)]
    for order in orders:
        equal(sorted(order), ["a 1", "a 2", "b 1", "b 2"])
    if len(set(orders)) < 2:
        raise AssertionError(f"the order never changes: {orders}")
    # The seed gives the same order again.
    os.unlink("log")
    assay("run", "demo.yaml", "--seed", "5", "--fresh", check=0)
    equal([tuple(runs()[i:i + 4]) for i in range(0, 16, 4)], orders)


@test
def dry_run_shows_the_plan_and_runs_nothing():
    prepare()
    result = assay("run", "demo.yaml", "--dry-run", check=0)
    contains(result.stdout, "4 cells, 4 rounds")
    contains(result.stdout, "./program b 2")
    contains(result.stdout, "(baseline)")
    equal(runs(), [])
    equal(pathlib.Path("assay.db").exists(), False)


@test
def killed_anywhere_loses_at_most_the_run_in_flight():
    prepare()
    for killed_at in (2, 6, 9):
        before = shown()["runs_count"] if killed_at > 2 else 0
        process = start("run", "demo.yaml", PAUSE="0.05")
        wait_for_runs(killed_at, process)
        process.kill()
        process.wait()
        time.sleep(0.2)  # the last command may still write its line
        started = len(runs())
        kept = shown()["runs_count"]
        # Of what this session started, all but the last was kept; each kill may waste one run.
        if kept < before:
            raise AssertionError(f"{kept} runs, before there were {before}")
        between(started - kept, 0, {2: 1, 6: 2, 9: 3}[killed_at], "runs lost")
        equal(json.loads(assay("list", "--json", check=0).stdout)["experiments"][0]["alive"], False)
    contains(assay("list", check=0).stdout, "killed")
    result = assay("run", "demo.yaml", check=0)
    contains(result.stderr, "resuming experiment 1")
    equal(counts(shown()), [4, 4, 4, 4])
    equal(len(json.loads(assay("list", "--json").stdout)["experiments"]), 1)


@test
def interrupted_keeps_what_is_there_and_goes_on():
    prepare()
    process = start("run", "demo.yaml", PAUSE="0.05")
    wait_for_runs(5, process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=240)
    equal(process.returncode, 130)
    contains(stderr, "run the same command again to resume")
    equal(shown()["state"], "stopped")
    kept = shown()["runs_count"]
    between(kept, 3, 15)
    os.unlink("log")
    assay("run", "demo.yaml", check=0)
    equal(len(runs()), 16 - kept, "runs of the second session")
    equal(counts(shown()), [4, 4, 4, 4])
    # Finished: the next one is a new experiment.
    contains(assay("run", "demo.yaml", check=0).stderr, "experiment 2")


@test
def two_at_once_on_one_store():
    prepare()
    pathlib.Path("other.yaml").write_text(SPEC.replace("name: demo", "name: other"))
    processes = [start("run", name, PAUSE="0.01")
                 for name in ("demo.yaml", "other.yaml", "demo.yaml")]
    for process in processes:
        _, stderr = process.communicate(timeout=300)
        equal(process.returncode, 0, stderr)
    experiments = json.loads(assay("list", "--json", check=0).stdout)["experiments"]
    equal(sorted(e["name"] for e in experiments), ["demo", "demo", "other"])
    for e in experiments:
        equal(counts(shown(str(e["id"]))), [4, 4, 4, 4])


@test
def a_failing_command_stops_with_its_words():
    prepare(SPEC.replace("./program", "sh -c 'echo broken >&2; exit 3' #"))
    result = assay("run", "demo.yaml", check=1)
    contains(result.stderr, "exit code 3")
    contains(result.stderr, "broken")
    equal(shown()["state"], "failed")
    prepare(SPEC.replace("./program", "./absent"))
    contains(assay("run", "demo.yaml", check=1).stderr, "absent")


@test
def a_failing_cell_does_not_end_the_others():
    prepare(SPEC.replace("./program {variant}", "sh -c 'test {variant} = a || { echo sorry; exit 5; }' #")
            .replace("metrics:\n  ops: {better: higher}\n", ""))
    result = assay("run", "demo.yaml", check=1)
    equal(counts(shown()), [4, 4, 0, 0])
    contains(result.stderr, "2 of 4 cells failed: variant=b")
    contains(result.stderr, "exit code 5")
    contains(result.stderr, "sorry")
    contains(result.stdout, "variant=a")
    # The same command makes what is missing.
    prepare(SPEC.replace("./program {variant}", "sh -c 'test -e mended || test {variant} = a' #")
            .replace("metrics:\n  ops: {better: higher}\n", ""))
    assay("run", "demo.yaml", check=1)
    pathlib.Path("mended").touch()
    assay("run", "demo.yaml", check=0)
    equal(counts(shown()), [4, 4, 4, 4])


@test
def failures_may_be_allowed_and_tried_again():
    flaky = "#!/bin/sh\n[ -e mark-$1-$2 ] && exit 0\ntouch mark-$1-$2\nexit 1\n"
    prepare(SPEC.replace("metrics:\n  ops: {better: higher}\n", "") + "attempts: 2\n")
    pathlib.Path("program").write_text(flaky)
    assay("run", "demo.yaml", check=0)
    experiment = shown()
    equal(counts(experiment), [4, 4, 4, 4])
    equal(experiment["failed_count"], 4)
    prepare(SPEC.replace("./program {variant}", "sh -c 'test {variant} = a' #")
            .replace("metrics:\n  ops: {better: higher}\n", "") + "allow_failures: true\n")
    assay("run", "demo.yaml", check=0)
    equal(counts(shown()), [4, 4, 0, 0])
    equal(shown()["failed_count"], 8)


@test
def metrics_from_output_and_files():
    prepare("""name: m
command: ./program x 3
rounds: 2
metrics:
  took: {regex: 'took ([0-9.]+) ms', unit: ms, better: lower}
  deep: {json: 'a[0].b'}
  left: {file: left.txt, regex: 'value=(.*)'}
  ops:
""")
    pathlib.Path("left.txt").write_text("value=42\n")
    assay("run", "demo.yaml", check=0)
    values = shown()["cells"][0]["values"]
    equal([values[name][0][1] for name in ("took", "deep", "left", "ops")], [3.5, 7, 42, 3])
    pathlib.Path("left.txt").write_text("nothing\n")
    contains(assay("run", "demo.yaml", check=1).stderr, "metric left: in ./left.txt")


@test
def builds_are_made_once_and_cached_by_content():
    prepare("""name: b
command: "{build}/prog {n}"
factors:
  opt: [x, y]
  n: [1, 2]
build:
  command: sh -c 'echo made {opt} >> made; cp prog.sh {build}/prog; chmod +x {build}/prog'
  inputs: [prog.sh]
rounds: 2
""")
    pathlib.Path("prog.sh").write_text("#!/bin/sh\nexit 0\n")
    assay("run", "demo.yaml", check=0)
    equal(sorted(pathlib.Path("made").read_text().split("\n")[:-1]), ["made x", "made y"])
    first = shown()["cells"][0]["build_id"]
    assay("run", "demo.yaml", "--fresh", check=0)
    equal(len(pathlib.Path("made").read_text().split("\n")), 3)
    pathlib.Path("prog.sh").write_text("#!/bin/sh\ntrue\n")
    assay("run", "demo.yaml", "--fresh", check=0)
    equal(len(pathlib.Path("made").read_text().split("\n")), 5)
    if shown()["cells"][0]["build_id"] == first:
        raise AssertionError("another program has the same build id")
    prepare(pathlib.Path("demo.yaml").read_text().replace("cp prog.sh", "echo no >&2; exit 4; cp"))
    contains(assay("run", "demo.yaml", check=1).stderr, "no")


@test
def a_changed_program_is_not_mixed_into_an_old_experiment():
    prepare()
    process = start("run", "demo.yaml", PAUSE="0.05")
    wait_for_runs(3, process)
    process.kill()
    process.communicate()
    pathlib.Path("program").write_text(PROGRAM + "# changed\n")
    result = assay("run", "demo.yaml", check=0)
    contains(result.stderr, "the program has changed since")
    equal(shown()["id"], 2)
    contains(assay("run", "demo.yaml", "--resume", "1", check=1).stderr, "cannot be resumed")


@test
def servers_are_started_awaited_and_ended():
    server = ("import socket, sys, time, os\n"
              "open('servers', 'a').write(f'{os.getpid()}\\n')\n"
              "time.sleep(0.1)\n"
              "s = socket.socket()\n"
              "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
              "s.bind(('127.0.0.1', 0))\n"
              "s.listen()\n"
              "open('port', 'w').write(str(s.getsockname()[1]))\n"
              "print('listening', flush=True)\n"
              "while True:\n"
              "    s.accept()[0].close()\n")
    client = ("import socket\n"
              "socket.create_connection(('127.0.0.1', int(open('port').read()))).close()\n")
    prepare("""name: s
command: python3 client.py
setup:
  start: python3 server.py
  ready: {output: listening}
teardown: rm -f port
rounds: 3
warmup: 0
counters: [page-faults]
""")
    pathlib.Path("server.py").write_text(server)
    pathlib.Path("client.py").write_text(client)
    assay("run", "demo.yaml", check=0)
    pids = pathlib.Path("servers").read_text().split()
    equal(len(pids), 3)
    for pid in pids:
        equal(pathlib.Path(f"/proc/{pid}").exists(), False, f"server {pid} is still there")
    equal(pathlib.Path("port").exists(), False)
    prepare(pathlib.Path("demo.yaml").read_text()
            .replace("python3 server.py", "sh -c 'echo went wrong; exit 1'"))
    contains(assay("run", "demo.yaml", check=1).stderr, "went wrong")


@test
def a_server_does_not_outlive_an_assay_that_was_killed():
    prepare("""name: s
command: sh -c 'touch running; sleep 100'
setup:
  start: sh -c 'echo $$ > server; sleep 1000 & echo $! >> server; wait'
  ready: {command: test $(wc -l < server) = 2}
rounds: 1
warmup: 0
""")
    process = subprocess.Popen([ASSAY, "run", "demo.yaml"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    await_true(pathlib.Path("running").exists, "the command runs")
    process.kill()
    process.wait()
    for pid in pathlib.Path("server").read_text().split():
        await_true(lambda pid=pid: not is_running(pid), f"server process {pid} has ended")
    for pid in processes(words=["sh", "-c", "touch running; sleep 100"]):
        os.kill(pid, signal.SIGTERM)


def writable_setting():
    """A limit that this machine allows: the controller, its file, a value and where it is mounted."""
    kinds = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        place, (kind, _, options) = line.split()[4], line.partition(" - ")[2].split()[:3]
        if kind == "cgroup2":
            kinds.setdefault("v2", place)
        elif kind == "cgroup":
            kinds.update({word: place for word in options.split(",")})
    for controller, name, value in (("cpu", "cpu.cfs_quota_us", "90000"),
                                    ("pids", "pids.max", "1000")):
        if controller in kinds and os.access(kinds[controller], os.W_OK):
            yield kinds[controller], name, value
    if "v2" in kinds and os.access(kinds["v2"], os.W_OK):
        controllers = pathlib.Path(kinds["v2"], "cgroup.controllers").read_text().split()
        for controller, name, value in (("pids", "pids.max", "1000"),
                                        ("hugetlb", "hugetlb.2MB.max", "4194304")):
            if controller in controllers:
                yield kinds["v2"], name, value


@test
def control_groups_limit_the_runs():
    settings = list(writable_setting())
    if os.getuid() or not settings:
        skip("no control group can be made here")
    for place, name, value in settings:
        groups = lambda: set(pathlib.Path(place).glob("**/assay-*"))
        before = groups()  # of a process that was killed, for example
        prepare(f"""name: limited
command: sh -c 'cat {place}/assay-*/{name}; cat /proc/self/cgroup'
cgroup: {{{name}: "{value}"}}
metrics:
  limit: {{regex: "^([0-9]+)$"}}
  inside: {{regex: "assay-([0-9]+)"}}
rounds: 1
warmup: 0
""")
        result = assay("run", "demo.yaml")
        if result.returncode and "is not available" in result.stderr:
            continue
        equal(result.returncode, 0, result.stderr)
        values = shown()["cells"][0]["values"]
        equal(values["limit"][0][1], float(value), name)
        equal(len(values["inside"]), 1, "runs in the group")
        equal(groups() - before, set(), "groups left behind")
    prepare("name: x\ncommand: 'true'\ncgroup: {nonsense.max: 1}\nrounds: 1\n")
    contains(assay("run", "demo.yaml", check=1).stderr, "nonsense")


@test
def a_server_for_the_whole_experiment():
    prepare("""name: s
command: test -e up
setup: {start: "sh -c 'touch up; echo x >> ups; exec sleep 100'", ready: {file: up}, per: experiment}
teardown: {command: rm up, per: experiment}
rounds: 3
""")
    assay("run", "demo.yaml", check=0)
    equal(pathlib.Path("ups").read_text(), "x\n")
    equal(pathlib.Path("up").exists(), False)


@test
def counters_and_monitors_are_kept():
    prepare("""name: c
command: sleep 0.3
rounds: 2
warmup: 0
counters: [page-faults, context-switches, no-such-thing-here]
monitors: {interval: 50ms, list: [mpstat, vmstat, proc-vmstat, interrupts, pressure]}
""".replace(", no-such-thing-here", ""))
    assay("run", "demo.yaml", check=0)
    values = shown()["cells"][0]["values"]
    if "page-faults" in values:
        between(values["page-faults"][0][1], 20, 10000)
    between(values["vmstat.system.cs"][0][1], 1, 1e9)
    between(values["proc-vmstat.pgfault"][0][1], 1, 1e9)
    contains(" ".join(values), "mpstat.cpu.all.usr%")
    needs_file_store("what stands in the tables is looked up in the file")
    import sqlite3
    db = sqlite3.connect("assay.db")
    rows = db.execute("SELECT length(s.points) / 8, length(r.ticks) / 8 FROM series s"
                      " JOIN run r ON r.id = s.run").fetchall()
    for points, ticks in rows:
        equal(points, ticks)
    between(rows[0][0], 3, 20)
    prepare(pathlib.Path("demo.yaml").read_text().replace("page-faults", "page-fualts"))
    contains(assay("run", "demo.yaml", check=1).stderr, "page-fualts")


@test
def precision_spends_rounds_where_they_are_needed():
    prepare("""name: p
command: ./noisy {kind}
factors: {kind: [steady, wild]}
metrics: {v: {better: lower}}
rounds: 8
warmup: 0
precision: 2%
budget: 60s
""")
    pathlib.Path("noisy").write_text(
        "#!/usr/bin/env python3\nimport os, sys, random\n"
        "v = 100 + (random.uniform(-8, 8) if sys.argv[1] == 'wild' else 0)\n"
        "os.write(int(os.environ['ASSAY_METRICS_FD']), f'assay.metric v {v}\\n'.encode())\n")
    os.chmod("noisy", 0o755)
    assay("run", "demo.yaml", check=0)
    steady, wild = counts(shown())
    equal(steady, 8)
    if wild <= 8:
        raise AssertionError(f"no extra rounds: {wild}")


def prepare_slow():
    prepare("""name: f
command: ./slow {ms}
factors: {ms: [30, 90]}
rounds: 8
warmup: 0
baseline: {ms: 30}
metrics: {cost: {headline: true}}
profile: changed
""")
    pathlib.Path("slow").write_text(
        "#!/usr/bin/env python3\nimport os, sys, time\n"
        "end = time.process_time() + int(sys.argv[1]) / 1000\n"
        "while time.process_time() < end: pass\n"
        "if 'ASSAY_METRICS_FD' in os.environ:\n"
        "    text = f'assay.metric cost {int(sys.argv[1]) + os.getpid() / 1e7}\\n'\n"
        "    os.write(int(os.environ['ASSAY_METRICS_FD']), text.encode())\n")
    os.chmod("slow", 0o755)


def check_profiles(result):
    if "no profile of" in result.stderr:
        skip("assay record cannot sample here: " + result.stderr)
    files = sorted(p.name for p in pathlib.Path(".assay/profiles").iterdir())
    equal(files, [f"experiment-1-cell-{cell}-run-{run}.data" for cell in (1, 2)
                  for run in range(1, 6)])
    equal(pathlib.Path(".assay/profiles", files[0]).read_bytes()[:8], b"PERFILE2")


@test
def changed_cells_get_a_profile():
    prepare_slow()
    check_profiles(assay("run", "demo.yaml", check=0))


@test
def profiles_go_on_where_they_were_stopped():
    prepare_slow()
    run = start("run", "demo.yaml")
    end = time.monotonic() + 400
    while not list(pathlib.Path(".").glob(".assay/profiles/*")) and run.poll() is None:
        if time.monotonic() > end:
            run.kill()
            raise AssertionError("no profile in two minutes")
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, words = run.communicate(timeout=400)
    if "no profile of" in words:
        skip("assay record cannot sample here: " + words)
    contains(words, "stopped")
    recorded = {p.name: p.stat().st_mtime_ns for p in pathlib.Path(".assay/profiles").iterdir()}
    result = assay("run", "demo.yaml", check=0)
    check_profiles(result)
    equal(len(shown()["cells"]), 2)
    equal(counts(shown()), [8, 8])
    # What was whole already was not recorded again.
    again = {p.name: p.stat().st_mtime_ns for p in pathlib.Path(".assay/profiles").iterdir()}
    if len([n for n in recorded if recorded[n] != again[n]]) > 1:
        raise AssertionError(f"{recorded}, then {again}")


@test
def quick_and_cells_choose():
    prepare(SPEC + "quick: {factors: {n: [1]}, rounds: 2}\n")
    assay("run", "demo.yaml", "--quick", check=0)
    equal(counts(shown()), [2, 2])
    assay("run", "demo.yaml", "--cells", "variant=b,n=2", check=0)
    equal([c["label"] for c in shown()["cells"]], ["variant=b n=2"])
    contains(assay("run", "demo.yaml", "--cells", "9", check=1).stderr, "1 to 4")


@test
def spec_errors_name_the_line():
    prepare("name: a\ncomand: b\n")
    contains(assay("run", "demo.yaml", check=1).stderr,
             "demo.yaml:2: unknown key 'comand'; did you mean command?")
    contains(assay("run", "absent.yaml", check=1).stderr, "absent.yaml")
    assay("run", check=2)
    assay("run", "demo.yaml", "--precision", "abc", check=2)


@test
def disturbed_runs_are_kept_and_shown():
    prepare("name: d\ncommand: sleep 0.4\nrounds: 1\nwarmup: 0\n")
    process = start("run", "demo.yaml")
    time.sleep(0.3)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=240)
    equal(process.returncode, 0, stderr)
    equal(counts(shown()), [1])


@test
def metrics_that_are_refused_are_said_once_each():
    pathlib.Path("refused.yaml").write_text("""name: refused
command: sh -c 'for n in a,b c=d good; do eval "echo assay.metric $n $$ B >&$ASSAY_METRICS_FD"; done'
rounds: 4
warmup: 0
""")
    said = assay("run", "refused.yaml", check=0).stderr
    for name in ("a,b", "c=d"):
        equal(said.count(f"assay.metric {name}"), 1, said)
    contains(said, "the name must be 1 to 63 letters")
    contains(assay("show", "last", "--json", check=0).stdout, '"good"')


@test
def options_of_running_reach_the_command():
    prepare("""name: o
command: sh -c 'echo "cpus=$(nproc) nice=$(nice)"'
metrics:
  cpus: {regex: 'cpus=([0-9]+)'}
  nice: {regex: 'nice=([0-9]+)'}
rounds: 1
warmup: 0
""")
    allowed = sorted(os.sched_getaffinity(0))[0]
    wanted = max(7, os.nice(0))  # an ordinary user may not go below what the tests run with
    assay("run", "demo.yaml", "--cpus", allowed, "--nice", wanted, check=0)
    values = shown()["cells"][0]["values"]
    equal((values["cpus"][0][1], values["nice"][0][1]), (1, wanted))


@test
def experiments_are_listed_shown_removed_and_moved():
    prepare()
    assay("run", "demo.yaml", check=0)
    contains(assay("list", check=0).stdout, "demo")
    contains(assay("show", "demo", "--spec", check=0).stdout, "question: which?")
    json.loads(assay("show", "demo", "--machine", check=0).stdout)
    json.loads(assay("show", "1", "--environment", check=0).stdout)
    shown_text = assay("show", "1", check=0).stdout
    csv = assay("show", "1", "--csv", check=0).stdout.splitlines()
    equal(csv[0], "variant,n,round,metric,unit,value")
    # The wide form has the same values, a line for each run.
    wide = [line.split(",") for line in assay("show", "1", "--csv", "--wide",
                                                check=0).stdout.splitlines()]
    equal(wide[0][:3], ["variant", "n", "round"])
    names = [name.split(" (")[0] for name in wide[0][3:]]
    again = sorted((*line[:3], name, value) for line in wide[1:]
                   for name, value in zip(names, line[3:]) if value)
    equal(again, sorted((*line[:4], line[5]) for line in (line.split(",") for line in csv[1:])))
    equal(len({tuple(line[:3]) for line in wide[1:]}), len(wide) - 1, "a line for each run")
    contains(assay("show", "1", "--csv=wide", check=2).stderr, "use --csv --wide")
    # With a file, the text is printed besides.
    contains(assay("show", "1", "--csv=values.csv", check=0).stdout, "demo")
    equal(pathlib.Path("values.csv").read_text().splitlines(), csv)
    equal(assay("show", "1", "--json=values.json", check=0).stdout, shown_text)
    json.loads(pathlib.Path("values.json").read_text())
    contains(assay("show", "1", "--json=none/values.json", check=1).stderr, "none/values.json")
    before = shown()
    contains(assay("db", "export", "one.assay", "1", check=0).stdout, "1 copied")
    equal(sorted(p.name for p in pathlib.Path(".").glob("one.assay*")), ["one.assay"])
    assay("rm", "1", check=0)
    contains(assay("list", check=0).stdout, "no experiments")
    contains(assay("rm", "1", check=1).stderr, "no experiment")
    assay("db", "import", "one.assay", check=0)
    after = shown()
    equal(after["cells"], before["cells"])
    equal(after["uuid"], before["uuid"])
    contains(assay("db", "import", "one.assay", check=0).stdout, "1 already there")
    assay("db", "copy", store_place(), "copy.db", check=0)
    equal(shown("last", "--db", "copy.db")["cells"], before["cells"])
    equal(json.loads(assay("show", "--json", env={"ASSAY_DB": "copy.db"}, check=0).stdout)["uuid"],
          before["uuid"])
    contains(assay("db", "copy", store_place(), store_place(), check=1).stderr, "the same store")
    assay("db", "frobnicate", check=2)
    pathlib.Path("text.db").write_text("no database " * 1000)
    contains(assay("list", "--db", "text.db", check=1).stderr, "not an assay store")
    contains(assay("list", "--db", "absent.db", check=1).stderr, "there is no store")


@test
def where_every_run_fails_nothing_was_measured():
    prepare(SPEC.replace("./program {variant} {n}", "sh -c 'exit 3'") + "allow_failures: true\n")
    contains(assay("run", "demo.yaml", check=1).stderr, "every run failed; nothing was measured")


@test
def yaml_that_cannot_be_read_comes_with_the_remedy():
    prepare(SPEC.replace("question: which?", "question: which: this?"))
    result = assay("run", "demo.yaml", check=1)
    contains(result.stderr, "demo.yaml:2")
    contains(result.stderr, "quotes around a value that contains")


main()
