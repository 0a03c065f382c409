# SPDX-License-Identifier: MIT
"""The documents: the commands of docs/START.md run as printed, in order, in one folder; and every
assay command of README and docs/ has a verb and options that exist, and files that are there."""
import os
import pathlib
import re
import shlex
import subprocess

from harness import *

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Long ones in their short form: the same command with less time.
SHORTER = [("assay ab '", "assay ab --time 2s '"), ("assay explain '", "assay explain --no-sim --rounds 5 --profiles 3 '")]


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.M | re.S)


@test
def the_first_five_minutes():
    path = f"{pathlib.Path(ASSAY).resolve().parent}:{os.environ['PATH']}"
    subprocess.run("git init -q . && git -c user.name=t -c user.email=t@example.org commit -q "
                   "--allow-empty -m base", shell=True, check=True)
    text = "".join(blocks(ROOT / "docs/START.md", "sh"))
    for before, after in SHORTER:
        text = text.replace(before, after)
    contains(text, "assay init")
    for line in text.splitlines():
        # The gate measures committed files: what came before is committed as a user would.
        if line.startswith("assay gate"):
            subprocess.run("git add numbers && git -c user.name=t -c user.email=t@example.org commit "
                           "-q -m numbers", shell=True, check=True)
        result = subprocess.run(["bash", "-c", line], text=True, capture_output=True, timeout=300,
                                env=os.environ | {"PATH": path})
        allowed = (0, 3) if line.startswith("assay gate") else (0,)
        assert result.returncode in allowed, f"{line}: exit {result.returncode}\n{result.stderr}"
    for name in "report.html", "plot.svg", "experiment.yaml":
        assert pathlib.Path(name).stat().st_size > 100, name


def commands(path):
    """Every command of assay in code, whether in a block or in a line."""
    text = path.read_text()
    lines = [l for b in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S)
             for l in b.splitlines()]
    lines += [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text,
                                                                         flags=re.M | re.S))]
    for line in lines:
        found = re.match(r"^(?:\$ |\d+% )?(?:\(cd \S+ && )?assay ([a-z]+)\b(.*)$", line.strip())
        if found and not re.match(r"assay [a-z]+:", line.strip()):
            yield line, found[1], found[2]


@test
def every_command_has_a_verb_and_options_that_exist():
    help_of, count = {}, 0
    verbs = [l.split()[0] for l in assay("--help", check=0).stdout.splitlines() if l.startswith("  ")]
    for path in DOCUMENTS:
        for line, verb, rest in commands(path):
            if verb in ("help", "version"):
                continue
            if verb not in verbs and not line.startswith("$ "):
                continue  # the first line of a file's format, not a command
            assert verb in verbs, f"{path.name}: '{line}': there is no verb {verb}"
            if verb not in help_of:
                help_of[verb] = assay(verb, "--help", check=0).stdout
            own = re.split(r"\s(?:--|\||#|&&|>|;)\s|'", rest + " ")[0]
            for option in re.findall(r"(?<=\s)(--[a-z][a-z-]*)", own):
                assert option in help_of[verb], f"{path.name}: '{line}': {verb} has no {option}"
            for file in re.findall(r"(?<=\s)(experiments/[\w-]+\.yaml)", own):
                assert (ROOT / file).exists(), f"{path.name}: '{line}': there is no {file}"
            count += 1
    between(count, 60, 10000, "commands looked at")


main()
