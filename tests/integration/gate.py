# SPDX-License-Identifier: MIT
"""assay gate: passes, fails, cannot tell, and cleans up."""
import json
import os
import pathlib
import shutil
import subprocess

from harness import *

PROGRAM = """#!/usr/bin/env python3
import os, random
# The n-th run of a test has the n-th value: noise that is the same whenever the test runs.
with open(os.environ['COUNTER'], 'a+') as counter:
    counter.write('.')
    seed = counter.tell()
value = FACTOR * random.Random(seed).gauss(1, SPREAD)
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


main()
