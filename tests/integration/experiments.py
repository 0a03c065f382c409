# SPDX-License-Identifier: MIT
"""The experiments that come with assay: each can be laid out, and the replication's runs."""
import json
import os
import pathlib

from harness import *

FOLDER = ROOT / "experiments"


@test
def every_spec_can_be_laid_out():
    specs = sorted(FOLDER.glob("*.yaml"))
    between(len(specs), 8, 100, "specs")
    for spec in specs:
        for option in ([], ["--quick"] if "\nquick:" in spec.read_text() else []):
            result = assay("run", "--dry-run", *option, spec, check=0)
            contains(result.stdout, " cells")


@test
def a_cell_of_the_replication_runs():
    spec = FOLDER / "replication.yaml"
    assay("run", "--rounds", 1, "--cells", "transport=epoll,replicas=3,clients=8", spec, check=0)
    shown = json.loads(assay("show", "--json", "--all", "last", check=0).stdout)
    text = json.dumps(shown)
    for name in ("throughput", "p50", "cpu_per_op", "cpu_per_op_2", "packets_sent_per_op"):
        contains(text, f'"{name}"')


@test
def experiments_are_found_by_name():
    listed = assay("run", "--list", check=0).stdout
    for spec in FOLDER.glob("*.yaml"):
        contains(listed, spec.stem)
    contains(assay("run", "--dry-run", "--quick", "two-ways", check=0).stdout, "two-ways write 500")
    contains(assay("run", "two-way", check=1).stderr, "did you mean two-ways?")
    contains(assay("run", "nothing-like-it", check=1).stderr, "'assay run --list' shows them")


@test
def a_file_goes_before_an_experiment_of_that_name():
    pathlib.Path("two-ways").write_text("name: mine\ncommand: true {x}\nfactors: {x: [1, 2]}\n")
    contains(assay("run", "--dry-run", "two-ways", check=0).stdout, "mine: 2 cells")


@test
def own_experiments_run_own_programs_and_others_the_users():
    """A program of the same name in PATH is not what the experiment means, but what a user's does."""
    fake = pathlib.Path("bin/two-ways").resolve()
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 7\n")
    fake.chmod(0o755)
    env = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    assay("run", "--quick", "--rounds", 1, "--cells", "messages=500", "two-ways", check=0, env=env)
    pathlib.Path("own.yaml").write_text(
        "name: own\ncommand: two-ways {x} 10\nfactors: {x: [write, writev]}\n")
    contains(assay("run", "--rounds", 1, "own.yaml", check=1, env=env).stderr, "exit code 7")
    assay("run", "--rounds", 1, "--fresh", "own.yaml", check=0)


main()
