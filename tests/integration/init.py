# SPDX-License-Identifier: MIT
"""assay init: what it writes, assay run takes."""
import pathlib

from harness import *


def plan(name="experiment.yaml"):
    return assay("run", "--dry-run", name, check=0).stdout


@test
def two_programs():
    assay("init", "./old", "./new", check=0)
    text = plan()
    contains(text, "experiment: 2 cells, 10 rounds")
    contains(text, "variant=old  (baseline)\n         ./old")
    contains(text, "variant=new\n         ./new")


@test
def words_in_which_they_differ():
    assay("init", "-n", "packing", "gzip -1 -k 'a file'", "gzip -9 -k 'a file'", check=0)
    text = plan("packing.yaml")
    contains(text, "variant=1 ")
    contains(text, "gzip -9 -k a file")


@test
def commands_of_other_lengths_and_for_a_shell():
    assay("init", "true", "sleep 0 | cat", "echo '{x}' a b", check=0)
    result = assay("run", "--rounds", 1, "experiment.yaml", check=0)
    contains(result.stderr, "3 cells")


@test
def braces_are_no_holes():
    assay("init", "test '{round}' = '{round}'", "test '{round}' != 'x'", check=0)
    assay("run", "--rounds", 1, "experiment.yaml", check=0)


@test
def names_are_told_apart():
    assay("init", "a/tool", "b/tool", "c/tool", check=0)
    text = plan()
    for name in "variant=tool ", "variant=tool-2", "variant=tool-3":
        contains(text, name)


@test
def the_file_runs_and_is_commented():
    assay("init", "-o", "mine.yaml", "true", "/bin/true", check=0)
    contains(pathlib.Path("mine.yaml").read_text(), "# timeout: 60s")
    assay("run", "--quick", "mine.yaml", check=0)
    contains(assay("answers", check=0).stdout, "which variant is fastest?")


@test
def nothing_is_overwritten_unasked():
    pathlib.Path("experiment.yaml").write_text("mine\n")
    contains(assay("init", "a", "b", check=1).stderr, "--force replaces it")
    equal(pathlib.Path("experiment.yaml").read_text(), "mine\n")
    assay("init", "--force", "true", "false", check=0)
    contains(plan(), "2 cells")


@test
def wrong_command_lines():
    contains(assay("init", "one", check=2).stderr, "two commands or more")
    contains(assay("init", "a 'b", "c", check=1).stderr, "'a 'b'")
    contains(assay("init", "-n", "a/b", "a", "b", check=2).stderr, "is not a valid file name")


main()
