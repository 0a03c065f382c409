# SPDX-License-Identifier: MIT
"""The store on PostgreSQL: the tests of the store run on it, it gives the same answers as SQLite, a
role that may only read suffices for reading, and passwords stay where they belong."""
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request

import large
from harness import *
from server import Server, why_not

# Those of tests/integration/NAME.py that use the store.
SUITES = {
    "run": ["every_cell_runs_in_every_round", "killed_anywhere_loses_at_most_the_run_in_flight",
            "interrupted_keeps_what_is_there_and_goes_on", "two_at_once_on_one_store",
            "failures_may_be_allowed_and_tried_again", "quick_and_cells_choose",
            "a_changed_program_is_not_mixed_into_an_old_experiment",
            "experiments_are_listed_shown_removed_and_moved"],
    "compare": ["a_known_difference_is_found", "two_experiments_are_compared_cell_by_cell",
                "commits_name_experiments", "wrong_words_are_explained",
                "too_few_runs_are_not_judged"],
    "history": [],
}

SPEC = """name: shared
question: which is larger?
command: sh -c 'eval "echo assay.metric size $((10 * {n} + $ASSAY_BASE)) B >&$ASSAY_METRICS_FD"'
factors:
  n: [1, 2, 3]
metrics:
  size: {better: lower, headline: true}
rounds: 5
warmup: 0
baseline: {n: 1}
"""

server = None


def database(name):
    """The address of an empty database."""
    global server
    if why_not():
        skip(why_not())
    if not server:
        server = Server()
    return server.make(name)


def passed(command, **environment):
    """Runs a program that prints TAP; returns how many of its tests passed."""
    result = subprocess.run(command, env=dict(os.environ, **environment), text=True,
                            capture_output=True, timeout=600, check=False)
    if result.returncode != 0:
        raise AssertionError(result.stdout[-6000:] + result.stderr[-2000:])
    return len(re.findall(r"(?m)^ok \d+ \S+\s*$", result.stdout))


@test
def the_unit_tests_of_the_store():
    address = database("units")
    program = pathlib.Path(os.environ["BUILD"]) / "tests/unit-store-store"
    between(passed([program], ASSAY_TEST_PG=address), 8, 1000, "tests that passed")


def suite(name):
    address = database(name)
    program = ROOT / "tests/integration" / f"{name}.py"
    between(passed([sys.executable, program, *SUITES[name]], ASSAY_TEST_PG=address,
                   PYTHONSAFEPATH="1"), 1, 1000,
            "tests that passed")


@test
def integration_tests_of_run():
    suite("run")


@test
def integration_tests_of_compare():
    suite("compare")


@test
def integration_tests_of_history():
    suite("history")


def fill(place, base):
    pathlib.Path("shared.yaml").write_text(SPEC)
    assay("run", "-q", "--fresh", "--seed", 5, "shared.yaml", "--db", place, check=0,
          env={"ASSAY_BASE": str(base)})


def answers(place):
    """Everything that the reading verbs say; the place's own name is no answer."""
    said = {}
    for words in (["list", "--json"], ["list"], ["show", "1", "--json"], ["show", "2", "--csv"],
                  ["compare", "n=1", "n=3", "--json"], ["compare", "1", "2", "--json"],
                  ["answers"], ["history", "size", "--json"],
                  ["history", "size", "--cell", "n=2", "--json"]):
        said[" ".join(words)] = assay(*words, "--db", place, check=0).stdout.replace(place, "STORE")
    # The command is part of the page: no --db there.
    assay("html", "1", "2", "-o", "report.html", env={"ASSAY_DB": place}, check=0)
    said["html"] = pathlib.Path("report.html").read_text()
    return said


@test
def both_databases_give_the_same_answers():
    there = database("answers")
    for base in (100, 200, 300):
        fill("here.db", base)
    contains(assay("db", "copy", "here.db", there, check=0).stdout, "3 copied")
    contains(assay("db", "copy", "here.db", there, check=0).stdout, "3 already there")
    contains(assay("db", "copy", there, "back.db", check=0).stdout, "3 copied")
    contains(assay("db", "copy", there, there, check=1).stderr, "the same store")
    first = answers("here.db")
    for place in (there, "back.db"):
        for words, said in answers(place).items():
            lines, expected = said.splitlines(), first[words].splitlines()
            equal(len(lines), len(expected), f"lines of assay {words} of {place}")
            for line, other in zip(lines, expected):
                if line != other:
                    raise AssertionError(f"assay {words} of {place}: {line[:500]}\nnot {other[:500]}")


@test
def imports_are_equal_in_both():
    """Runs of an import are written in groups, with rows of a failed one between them."""
    there = database("imports")
    pathlib.Path("h.json").write_text(json.dumps({"results": [
        {"command": f"c{c}", "user": 0.5, "times": [(i * 7919 + c) % 1000 / 997 for i in range(70 + c)]} for c in range(3)]}))
    files = ["h.json", *(ROOT / "tests/fuzz/corpus/harness" / name for name in ("google-benchmark.json", "fio.json"))]
    for place in ("here.db", there):
        assay("import", "--db", place, *files, check=0)
    for number in range(1, len(files) + 1):
        first, second = (assay("show", "--db", place, number, "--csv", "--wide", check=0).stdout for place in ("here.db", there))
        equal(second, first, files[number - 1])


@test
def a_copy_that_was_stopped_goes_on():
    there = database("stopped")
    for base in (100, 200):
        fill("here.db", base)
    assay("db", "export", "one.db", "1", "--db", "here.db", check=0)
    assay("db", "copy", "one.db", there, check=0)
    contains(assay("db", "copy", "here.db", there, check=0).stdout,
             "1 copied, 0 replaced by longer ones, 1 already there")
    equal(server.sql("SELECT count(*) FROM run", "stopped"), "30")


def counts_of(place):
    """Whatever a copy could have lost or doubled."""
    what = ("SELECT (SELECT count(*) FROM experiment), (SELECT count(*) FROM cell), (SELECT count(*)"
            " FROM run), (SELECT count(*) FROM value), (SELECT count(*) FROM series),"
            " (SELECT count(*) FROM disturbance), (SELECT count(DISTINCT uuid) FROM experiment),"
            " (SELECT count(*) FROM experiment e WHERE run_count <> (SELECT count(*) FROM run r WHERE"
            " r.experiment = e.id))")
    if place.startswith("postgresql:"):
        return server.sql(what, place.rpartition("/")[2]).split("|")
    with sqlite3.connect(f"file:{place}?mode=ro", uri=True) as db:
        return [str(count) for count in db.execute(what).fetchone()]


def copy_killed_half_way(source, target):
    """Killed when it has copied some, and then done again."""
    process = subprocess.Popen([ASSAY, "db", "copy", source, target], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    there = 0
    while there < 3 and process.poll() is None:
        try:
            there = int(counts_of(target)[0])
        except (sqlite3.Error, RuntimeError):  # its tables are not made yet
            time.sleep(0.005)
    process.kill()
    said = process.communicate()[0]
    equal(process.returncode, -signal.SIGKILL, "it was killed: " + said)
    between(int(counts_of(target)[0]), 3, COPIED, "experiments that are there")
    again = assay("db", "copy", source, target, check=0).stdout
    found = re.search(r"(\d+) copied, (\d+) replaced by longer ones, (\d+) already there", again)
    equal(sum(map(int, found.groups())), COPIED + 1, again)
    between(int(found[3]), 2, COPIED, "experiments that were not copied again")
    equal(counts_of(target), counts_of(source))
    equal(counts_of(target)[-1], "0", "experiments whose count is wrong")


COPIED = 150


def answers_of(place):
    """But for the numbers of experiments: one that was half there when it was killed used one up."""
    listed = json.loads(assay("list", "--json", "--lines", 1000, "--db", place, check=0).stdout)
    numbers = {e["uuid"]: str(e["id"]) for e in listed["experiments"]}
    several = [assay("show", numbers["u7"], "--json", "--db", place, check=0).stdout,
               assay("compare", numbers["u7"], numbers["u8"], "--json", "--db", place, check=0).stdout]
    for experiment in listed["experiments"]:
        del experiment["id"]
    return [listed["experiments"]] + [
        re.sub(r'"(id|experiment)": \d+|"(base|new)": "\d+ ', "", text).replace(place, "X")
        for text in several]


@test
def a_copy_that_was_killed_goes_on_either_way():
    there, other = database("copied"), server.make("copied2")
    pathlib.Path("small.yaml").write_text(large.SPEC)
    assay("run", "-q", "small.yaml", "--db", there, check=0)
    server.sql(large.FILL.format(count=COPIED), "copied")
    copy_killed_half_way(there, "here.db")
    copy_killed_half_way("here.db", other)
    equal(answers_of(other), answers_of(there))


@test
def a_role_that_may_only_read_suffices_for_reading():
    owner = database("grants")
    fill(owner, 100)
    fill(owner, 200)
    server.sql("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA public TO reader;"
               "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", "grants")
    reader = server.address("grants", "reader")
    equal(answers(reader).keys(), answers(owner).keys())
    daemon = subprocess.Popen([ASSAY, "serve", "--db", reader, "--port", "0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        root = daemon.stdout.readline().strip()
        for page in ("", "?q=shared", "e/1", "e/1/runs", "e/1/report", "history?name=shared"):
            text = urllib.request.urlopen(root + page, timeout=240).read().decode()
            contains(text, "shared")
    finally:
        daemon.terminate()
        equal(daemon.wait(60), 0)
    refused = assay("run", "shared.yaml", "--fresh", "--db", reader, check=1,
                    env={"ASSAY_BASE": "1"})
    contains(refused.stderr, "permission denied")
    contains(assay("rm", "1", "--db", reader, check=1).stderr, "permission denied")


@test
def passwords_stay_where_they_belong():
    place = database("secrets")
    server.sql("CREATE ROLE guarded LOGIN PASSWORD 'Tr0ub4dor'; GRANT ALL ON SCHEMA public TO guarded",
               "secrets")
    guarded = server.address("secrets", "guarded")
    for address in (guarded.replace("guarded@", "guarded:Tr0ub4dor@"),
                    guarded + "?password=Tr0ub4dor", "postgresql://guarded:Tr0ub4dor@[::1/x"):
        for words in (["list"], ["db", "copy", address, "x.db"], ["db", "upgrade"], ["serve"]):
            result = assay(*words, "--db", address, check=1)
            lacks(result.stdout + result.stderr, "Tr0ub4dor")
    contains(assay("list", "--db", guarded + "?password=x", check=1).stderr, ".pgpass")
    clean = {"PGPASSFILE": str(pathlib.Path("absent").absolute())}
    contains(assay("list", "--db", guarded, check=1, env=clean).stderr, "password")
    pathlib.Path("pass").write_text("*:*:*:guarded:Tr0ub4dor\n")
    os.chmod("pass", 0o600)
    pathlib.Path("shared.yaml").write_text(SPEC)
    assay("run", "-q", "shared.yaml", "--db", guarded, check=0,
          env={"PGPASSFILE": str(pathlib.Path("pass").absolute()), "ASSAY_BASE": "1"})
    pathlib.Path("services").write_text(
        f"[lab]\nhost=127.0.0.1\nport={server.port}\nuser=guarded\ndbname=secrets\n"
        "password=Tr0ub4dor\n")
    listed = assay("list", "--db", "postgresql:///?service=lab", check=0,
                   env={"PGSERVICEFILE": str(pathlib.Path("services").absolute())})
    contains(listed.stdout, "shared")
    kept = subprocess.run(["pg_dump", "-d", place], capture_output=True, text=True, check=True)
    contains(kept.stdout, "which is larger?")
    lacks(kept.stdout, "Tr0ub4dor")


@test
def what_cannot_be_used_says_why():
    place = database("words")
    contains(assay("list", "--db", place, check=1).stderr, "not an assay store")
    contains(assay("list", "--db", place.replace("/words", "/absent"), check=1).stderr,
             '"absent" does not exist')
    contains(assay("list", "--db", "postgresql://127.0.0.1:1/x", check=1).stderr, "cannot connect")
    contains(assay("list", "--db", "postgresql://h/x?frob=1", check=1).stderr, "cannot parse")


try:
    main()
finally:
    if server:
        server.close()
