# SPDX-License-Identifier: MIT
"""assay gate: passes, fails, cannot tell, and cleans up."""
import json
import os
import pathlib
import shutil
import subprocess

from harness import *

# Started without site-packages, and without the module `random`: most of a run is its start.
PROGRAM = """#!/usr/bin/env -S python3 -IS
import math, os
# The n-th run of a test has the n-th value: noise that is the same whenever the test runs.
with open(os.environ['COUNTER'], 'a+') as counter:
    counter.write('.')
    seed = counter.tell()
def uniform(n, mask=2 ** 64 - 1):
    n = n * 0x9E3779B97F4A7C15 & mask
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9 & mask
    n = (n ^ n >> 27) * 0x94D049BB133111EB & mask
    return (n ^ n >> 31) / 2 ** 64
normal = math.sqrt(-2 * math.log(uniform(2 * seed))) * math.cos(2 * math.pi * uniform(2 * seed + 1))
value = FACTOR * (1 + SPREAD * normal)
os.write(int(os.environ['ASSAY_METRICS_FD']), f'assay.metric v {value!r}\\n'.encode())
"""

SPEC = "name: g\ncommand: ./prog\nmetrics: {v: {better: lower}}\nwarmup: 0\n"


def git(*args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                   capture_output=True)


def write(factor, spread):
    path = pathlib.Path("sub/prog")
    path.write_text(PROGRAM.replace("FACTOR", str(factor)).replace("SPREAD", str(spread)))
    os.chmod(path, 0o755)


def repository(factor=100, spread=0.001):
    git("init", "-q", ".")
    os.mkdir("sub")
    pathlib.Path("sub/g.yaml").write_text(SPEC)
    write(factor, spread)
    git("add", "-A")
    git("commit", "-qm", "base")


def gate(*args, check):
    place = pathlib.Path("temporary").resolve()
    place.mkdir(exist_ok=True)
    result = assay("gate", "--base", "HEAD", "--seed", "7", *args, check=check,
                   env={"COUNTER": os.path.abspath(".git/counter"), "TMPDIR": str(place)})
    equal(list(place.iterdir()), [], "left behind")
    worktrees = subprocess.run(["git", "worktree", "list"], text=True, capture_output=True).stdout
    equal(len(worktrees.splitlines()), 1, worktrees)
    return result


@test
def no_change_passes():
    repository()
    result = gate("-r", "10", "sub/g.yaml", check=0)
    contains(result.stdout, "### assay gate: pass")
    contains(result.stdout, "| v | ")


@test
def a_regression_fails_and_an_improvement_does_not():
    repository()
    write(105, 0.001)
    result = gate("-r", "10", "--json", "sub/g.yaml", check=1)
    report = json.loads(result.stdout)
    equal(report["result"], "regression")
    between(report["rows"][0]["change"]["estimate"], 1.04, 1.06)
    between(report["rows"][0]["control"]["estimate"], 0.99, 1.01)
    gate("-r", "10", "--max-regression", "10%", "sub/g.yaml", check=0)
    write(95, 0.001)
    gate("-r", "10", "sub/g.yaml", check=0)


@test
def what_cannot_be_told_is_inconclusive():
    repository(spread=0.1)
    contains(gate("-r", "8", "sub/g.yaml", check=3).stdout, "inconclusive")
    contains(gate("-r", "2", "sub/g.yaml", check=3).stdout, "inconclusive")


@test
def nobody_fails_when_the_control_fails():
    repository()
    # As if the machine gave the same program another speed each time it is built or placed.
    pathlib.Path("sub/prog").write_text("""#!/usr/bin/env python3
import os
levels = {'base': 100, 'control': 130, 'new': 200}
value = levels[os.environ['ASSAY_SIDE']] + os.urandom(1)[0] / 1000
os.write(int(os.environ['ASSAY_METRICS_FD']), f'assay.metric v {value!r}\\n'.encode())
""")
    git("commit", "-qam", "strange")
    result = gate("-r", "10", "sub/g.yaml", check=3)
    contains(result.stdout, "too noisy to fail anyone")


MANY = 20


def many(factor):
    """A program with twenty metrics, each with noise of its own."""
    text = PROGRAM.replace("FACTOR", str(factor)).replace("SPREAD", "0.05")
    head, tail = text.split("normal = ")
    lines = [f"normal = {tail.splitlines()[0].replace('2 * seed', '2 * (seed * 64 + k)')}",
             *tail.splitlines()[1:]]
    lines[-1] = lines[-1].replace("metric v", "metric m{k}")
    path = pathlib.Path("sub/prog")
    path.write_text(head + f"for k in range({MANY}):\n" + "".join(f"    {x}\n" for x in lines))
    os.chmod(path, 0o755)


@test
def twenty_metrics_are_one_family():
    """All twice as slow: every one a regression, whatever a single control does.  All the same: no
    alarm."""
    repository()
    names = [f"m{k}" for k in range(MANY)]
    pathlib.Path("sub/g.yaml").write_text(
        "name: g\ncommand: ./prog\nmetrics:\n" +
        "".join(f"  {name}: {{better: lower}}\n" for name in names) + "warmup: 0\n")
    many(100)
    git("add", "-A")
    git("commit", "-qm", "many")
    same = json.loads(gate("-r", "12", "--judge", "median", "--json", "sub/g.yaml",
                           check=None).stdout)
    equal([row["metric"] for row in same["rows"] if row["result"] == "regression"], [])
    many(200)
    slow = json.loads(gate("-r", "12", "--json", "sub/g.yaml", check=1).stdout)
    equal(sorted(row["metric"] for row in slow["rows"] if row["result"] == "regression"),
          sorted(names))


@test
def the_budget_is_spent_until_it_can_tell():
    repository(spread=0.02)
    result = gate("--budget", "30s", "--json", "sub/g.yaml", check=0)
    rounds = json.loads(result.stdout)["rows"][0]["change"]["rounds"]
    if rounds <= 10:
        raise AssertionError(f"{rounds} rounds")


@test
def a_command_is_built_and_run_in_both_trees():
    repository()
    pathlib.Path("sub/name").write_text("base\n")
    git("add", "-A")
    git("commit", "-qm", "name")
    pathlib.Path("sub/name").write_text("new\n")
    os.chdir("sub")
    log = pathlib.Path("log").resolve()
    try:
        assay("gate", "--base", "HEAD", "-r", "2", "--build", "cp name built", "--",
              "sh", "-c", f"cat built >> {log}", check=3)
    finally:
        os.chdir("..")
    lines = log.read_text().split()
    equal((lines.count("base"), lines.count("new")), (6, 3))


if shutil.which("valgrind"):
    @test
    def exact_counts_judge_where_time_cannot():
        git("init", "-q", ".")
        pathlib.Path("count").write_text("2000\n")
        git("add", "-A")
        git("commit", "-qm", "base")
        command = ["-r", "8", "-e", "sim:instructions", "--", "sh", "-c", "exec seq $(cat count)"]
        result = gate(*command, check=0)
        contains(result.stdout, "sim:instructions")
        pathlib.Path("count").write_text("3000\n")
        contains(gate(*command, check=1).stdout, "regression")
        contains(gate("-e", "cycles", "x.yaml", check=125).stderr, "counters: [cycles]")


@test
def the_summary_is_appended_and_the_store_kept():
    repository()
    gate("-r", "8", "--summary", "summary.md", "--db", "kept.db", "sub/g.yaml", check=0)
    gate("-r", "8", "--summary", "summary.md", "--db", "kept.db", "sub/g.yaml", check=0)
    equal(pathlib.Path("summary.md").read_text().count("### assay gate"), 2)
    equal(len(json.loads(assay("list", "--db", "kept.db", "--json").stdout)["experiments"]), 2)


@test
def trouble_is_not_a_regression():
    repository()
    contains(gate("--build", "echo broken; exit 3", "--", "true", check=125).stderr, "broken")
    contains(assay("gate", "--base", "nosuch", "--", "true", check=125).stderr, "nosuch")
    assay("gate", "--", "true", check=2)
    assay("gate", "--base", "HEAD", check=2)
    assay("gate", "--base", "HEAD", "--max-regression", "abc", "--", "true", check=2)
    gate("-r", "2", "--", "sh", "-c", "exit 9", check=125)


@test
def a_failing_cell_does_not_keep_the_others_from_being_judged():
    repository()
    two = SPEC.replace("./prog", "./prog {n}") + "factors: {n: [1, 2]}\n"
    pathlib.Path("sub/g.yaml").write_text(two)
    git("commit", "-qam", "two cells")
    path = pathlib.Path("sub/prog")
    whole = path.read_text()
    path.write_text(whole + "import sys\nif sys.argv[1] == '2': sys.exit('no such size')\n")
    result = gate("-r", "10", "--junit", "gate.xml", "--json", "sub/g.yaml", check=125)
    document = json.loads(result.stdout)
    equal([(row["cell"], row["result"]) for row in document["rows"]], [("n=1", "pass")])
    equal(document["failures"], [{"cell": "n=2 side=new", "failed": 2, "runs": 2}])
    contains(result.stderr, "no such size")
    contains(pathlib.Path("gate.xml").read_text(), "2 of 2 runs failed")
    # Nobody measures a base whose other side is gone.
    text = gate("-r", "10", "sub/g.yaml", check=125).stdout
    contains(text, "### assay gate: failed: some runs ended with an error")
    contains(text, "left out: n=2 side=new (2 of 2 runs)")
    # A regression is one, whatever fails beside it.
    path.write_text(path.read_text().replace("FACTOR", "").replace("value = 100", "value = 120"))
    gate("-r", "10", "sub/g.yaml", check=1)
    # One that fails now and then is compared, and named.
    path.write_text(whole + "import sys\nif os.environ['ASSAY_SIDE'] == 'new' and seed % 8 == 1: "
                    "sys.exit('now and then')\n")
    sometimes = gate("-r", "12", "--json", "sub/g.yaml", check=125)
    document = json.loads(sometimes.stdout)
    equal(len(document["rows"]), 2)
    if not all(0 < failure["failed"] < failure["runs"] for failure in document["failures"]):
        raise AssertionError(document["failures"])


@test
def rare_slow_runs_are_found_before_it_stops():
    """Without -r the gate stops by itself: not before it has seen what happens in 1 run of 10."""
    repository()
    tailed(1, 10)
    git("commit", "-qam", "tailed")
    tailed(10, 10)
    result = gate("--max-regression", "5%", "--json", "sub/g.yaml", check=1)
    rounds = json.loads(result.stdout)["rows"][0]["change"]["rounds"]
    if rounds < 100:
        raise AssertionError(f"{rounds} rounds")


@test
def files_for_ci_systems():
    import xml.etree.ElementTree as xml
    repository()
    gate("-r", "10", "--markdown", "gate.md", "--junit", "gate.xml", "sub/g.yaml", check=0)
    text = pathlib.Path("gate.md").read_text()
    equal(text.splitlines()[0], "<!-- assay gate -->")
    contains(text, "### assay gate: pass")
    suite = xml.parse("gate.xml").getroot().find("testsuite")
    equal((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("1", "0", "0"))
    write(110, 0.001)
    gate("-r", "10", "--junit", "gate.xml", "sub/g.yaml", check=1)
    suite = xml.parse("gate.xml").getroot().find("testsuite")
    equal((suite.get("failures"), suite.get("skipped")), ("1", "0"))
    contains(suite.find("testcase/failure").get("message"), "at most 2 % worse allowed")
    refused = gate("-r", "10", "--junit", "no/such/gate.xml", "sub/g.yaml", check=125)
    contains(refused.stderr, "no/such/gate.xml")


TAILED = """#!/bin/sh
# About 1050 with a little noise; every so many runs of a side, many times that.
printf . >>"$COUNTER.$ASSAY_SIDE"
n=$(wc -c <"$COUNTER.$ASSAY_SIDE")
x=$((n * 48271 + ${#ASSAY_SIDE} * 7919))
value=$((1000 + x * x / 13 % 97))
[ $((n % EVERY)) != 3 ] || value=$((value * TIMES))
echo "assay.metric v $value" >&$ASSAY_METRICS_FD
"""


def tailed(times, every):
    pathlib.Path("sub/prog").write_text(TAILED.replace("TIMES", str(times)).replace("EVERY", str(every)))


@test
def what_is_judged_is_an_option():
    """A program that is 10 times slower in 1 run of 10: the median passes, the mean does not."""
    repository()
    tailed(1, 10)
    git("commit", "-qam", "tailed")
    tailed(10, 10)
    words = ("-r", "100", "--max-regression", "5%")
    median = gate(*words, "--judge", "median", "--json", "sub/g.yaml", check=0)
    equal(json.loads(median.stdout)["judge"], "median")
    mean = gate(*words, "--judge", "mean", "sub/g.yaml", check=1).stdout
    contains(mean, "Limit: the mean may get at most 5 % worse.")
    contains(mean, "change of the mean (95 %)")
    both = gate(*words, "sub/g.yaml", check=1).stdout
    contains(both, "the median and the mean may get at most 5 % worse")
    contains(both, "mean +")
    contains(gate("-r", "10", "--judge", "p95", "sub/g.yaml", check=3).stdout,
             "the 95th percentile takes 60 rounds or more; there were 10")
    gate(*words, "--judge", "p95", "sub/g.yaml", check=1)
    contains(assay("gate", "--base", "HEAD", "--judge", "max", "--", "true", check=2).stderr,
             "must be median, mean or p95")


@test
def a_plain_command_has_a_metric():
    repository()
    write(105, 0.001)
    os.chdir("sub")
    try:
        # Nothing is known of a program's own figure without a unit: which way is better is asked.
        unknown = assay("gate", "--base", "HEAD", "-q", "-r", "10", "--metric", "v", "--", "./prog",
                        check=125, env={"COUNTER": os.path.abspath("../.git/counter")})
        contains(unknown.stderr, "--better")
        for way, code in (("lower", 1), ("higher", 0)):
            result = assay("gate", "--base", "HEAD", "-q", "-r", "10", "--metric", "v", "--better",
                           way, "--json", "--", "./prog", check=code,
                           env={"COUNTER": os.path.abspath("../.git/counter")})
            rows = json.loads(result.stdout)["rows"]
            equal([row["metric"] for row in rows], ["v"])
        typo = assay("gate", "--base", "HEAD", "-q", "-r", "10", "--metric", "wal", "--", "./prog",
                     check=125, env={"COUNTER": os.path.abspath("../.git/counter")})
        contains(typo.stderr, "no metric 'wal' was measured; there are: cpu, v, wall, user, sys")
    finally:
        os.chdir("..")


@test
def cpu_time_is_judged_where_wall_time_cannot_tell():
    """30 % more work, on a processor that two others want as well: by wall time or by CPU time, it
    is found, and what was judged is said."""
    git("init", "-q", ".")
    for count in 20, 26:
        pathlib.Path("prog").write_text(f"#!/bin/sh\nexec {os.path.abspath(target('spin'))} {count}\n")
        os.chmod("prog", 0o755)
        git("add", "-A")
        git("commit", "-qm", "base") if count == 20 else None
    cpu = str(min(os.sched_getaffinity(0)))
    neighbours = [subprocess.Popen(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"])
                  for _ in range(2)]
    try:
        result = gate("--budget", "15s", "--cpus", cpu, "--json", "--", "./prog", check=1)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    report = json.loads(result.stdout)
    rows = [(row["metric"], row["result"]) for row in report["rows"]]
    equal(rows, [("wall", "set aside"), ("cpu", "regression")] if report["by_cpu"]
          else [("wall", "regression")])


@test
def a_shallow_clone_says_how_to_get_the_base():
    repository()
    write(100, 0.002)
    git("commit", "-qam", "second")
    git("clone", "-q", "--depth", "1", f"file://{os.getcwd()}", "shallow")
    os.chdir("shallow")
    try:
        refused = assay("gate", "--base", "HEAD~1", "--", "true", check=125).stderr
    finally:
        os.chdir("..")
    contains(refused, "shallow clone")
    contains(refused, "git fetch --unshallow")
    contains(refused, "fetch-depth: 0")


@test
def a_program_that_nothing_built_is_named_with_its_tree():
    repository()
    pathlib.Path("built").write_text("#!/bin/sh\n")
    os.chmod("built", 0o755)
    missing = gate("--", "./built", check=125).stderr
    contains(missing, "the base's tree has no ./built, and nothing built it there")
    contains(missing, "--build COMMAND runs in both trees")
    contains(gate("./nowhere now", check=125).stderr, "neither the base's tree nor the working tree")
    vain = gate("--build", "true", "--", "./built", check=125).stderr
    contains(vain, "though 'true' (--build) ran in both")
    pathlib.Path("sub/g.yaml").write_text(SPEC.replace("./prog", "./built"))
    contains(gate("-r", "2", "sub/g.yaml", check=125).stderr, "--build COMMAND does so in both trees")


@test
def the_summary_names_both_commits_and_changes():
    repository()
    head = subprocess.run(["git", "rev-parse", "HEAD"], text=True, capture_output=True).stdout[:12]
    same = gate("-r", "8", "sub/g.yaml", check=0).stdout
    contains(same, f"New ({head}) against base {head} (HEAD). Limit: the median and the mean may get "
             "at most 2 % worse.")
    contains(same, "Both are the same commit")
    write(100, 0.002)
    dirty = gate("-r", "8", "--json", "sub/g.yaml", check=0)
    equal((json.loads(dirty.stdout)["dirty"], json.loads(dirty.stdout)["new"][:12]), (True, head))
    contains(gate("-r", "8", "sub/g.yaml", check=0).stdout,
             f"New ({head}, with uncommitted changes) against base {head} (HEAD)")
    git("commit", "-qam", "second")
    result = assay("gate", "--base", "HEAD~1", "--seed", "7", "-r", "8", "sub/g.yaml", check=0,
                   env={"COUNTER": os.path.abspath(".git/counter")}).stdout
    second = subprocess.run(["git", "rev-parse", "HEAD"], text=True, capture_output=True).stdout
    contains(result, f"New ({second[:12]}) against base {head} (HEAD~1)")


@test
def change_and_control_have_the_same_rounds():
    """Also where the new one alone needs more of them, and where one run fails."""
    repository(spread=0.001)
    write(100, 0.05)
    path = pathlib.Path("sub/prog")
    path.write_text(path.read_text() + "import sys\nsys.exit(1 if seed == 20 else 0)\n")
    pathlib.Path("sub/g.yaml").write_text(SPEC + "allow_failures: true\n")
    git("add", "-A")
    result = gate("--budget", "8s", "--json", "sub/g.yaml", check=None)
    row = json.loads(result.stdout)["rows"][0]
    equal(row["change"]["rounds"], row["control"]["rounds"])
    equal(len(row["base_values"]), row["change"]["rounds"])
    if row["change"]["rounds"] <= 10:
        raise AssertionError("no extra rounds were needed")


@test
def what_is_not_checked_is_not_called_a_pass():
    repository(spread=0.1)
    text = gate("-r", "8", "sub/g.yaml", check=3).stdout
    contains(text, "> [!WARNING]")
    contains(text, "This is not a pass.")


def stored(*args, check):
    return assay("gate", "--seed", "7", "-q", *args, check=check,
                 env={"COUNTER": os.path.abspath(".git/counter")})


@test
def a_stored_result_can_be_the_base():
    repository()
    first = assay("gate", "--base", "HEAD", "-q", "-r", "10", "--db", "kept.db", "--json", "sub/g.yaml",
                  check=0, env={"COUNTER": os.path.abspath(".git/counter")})
    pathlib.Path("g.json").write_text(first.stdout)
    assay("html", "--db", "kept.db", "last", "-o", "g.html")
    for base in (["--baseline", "g.json"], ["--baseline", "g.html"],
                 ["--db", "kept.db", "--baseline", "1"]):
        write(100, 0.001)
        passed = stored(*base, "-r", "12", "sub/g.yaml", check=0).stdout
        contains(passed, "against the stored result ")
        contains(passed, "was not measured in the same rounds")
        contains(passed, "| not measured | 10, 12 | pass |")
        write(105, 0.001)
        report = json.loads(stored(*base, "-r", "12", "--json", "sub/g.yaml", check=1).stdout)
        equal((report["result"], report["stored"]), ("regression", base[-1]))
        equal("control" in report["rows"][0], False)
    # Other verbs read a gate's result as well.
    contains(assay("compare", "g.json", "g.json", "--json", check=0).stdout, '"v"')
    assay("html", "g.json", "-o", "page.html", check=0)
    contains(pathlib.Path("page.html").read_text(), "side=new")
    # It needs no repository.
    os.rename(".git", "gone")
    assay("gate", "--baseline", "g.json", "-q", "-r", "12", "sub/g.yaml", check=1,
          env={"COUNTER": os.path.abspath("gone/counter")})


@test
def what_ab_wrote_can_be_the_base():
    repository()
    env = {"COUNTER": os.path.abspath(".git/counter")}
    assay("ab", "-r", "10", "--json=ab.json", "sub/prog", check=0, env=env)
    assay("ab", "-r", "10", "--json=two.json", "sub/prog", "true", check=0, env=env)
    for file in "ab.json", "two.json":
        stored("--baseline", file, "-r", "12", "--metric", "v", "--better", "lower", "--", "sub/prog",
               check=0)
    write(105, 0.001)
    stored("--baseline", "two.json", "-r", "12", "--metric", "v", "--better", "lower", "--", "sub/prog",
           check=1)
    many = stored("--baseline", "two.json", "-r", "8", "--metric", "v", "--better", "lower", "--",
                  "sub/prog", "x", check=125)
    contains(many.stderr, "could be meant by")
    contains(many.stderr, "'true'")
    # One command with another text is compared, and both are named.
    contains(stored("--baseline", "ab.json", "-r", "12", "--metric", "v", "--better", "lower", "--", "./sub/prog",
                    check=1).stdout, "The command is not that of the stored result: `./sub/prog` now, `sub/prog` then.")


@test
def what_is_no_stored_result_is_refused():
    repository()
    assay("gate", "--base", "HEAD", "-q", "-r", "8", "--db", "kept.db", "sub/g.yaml", check=0,
          env={"COUNTER": os.path.abspath(".git/counter")})
    contains(stored("--baseline", "kept.db", "sub/g.yaml", check=125).stderr,
             "is a store; name one of its experiments: --db kept.db --baseline EXPERIMENT")
    contains(stored("--baseline", "nosuch", "--db", "kept.db", "sub/g.yaml", check=125).stderr,
             "--baseline nosuch is not a file")
    pathlib.Path("old.json").write_text('{"format": "assay-gate-1", "rows": [{"metric": "v"}]}')
    contains(stored("--baseline", "old.json", "sub/g.yaml", check=125).stderr, "has no values")
    contains(stored("--baseline", "sub/g.yaml", "sub/g.yaml", check=125).stderr, "sub/g.yaml is not")
    contains(stored("--baseline", "old.json", "--base", "HEAD", "sub/g.yaml", check=2).stderr,
             "cannot be used together")


main()
