# SPDX-License-Identifier: MIT
"""The documents: every command of README.md and docs/ is run as printed, or is in ONLY_CHECKED with
the reason why not.  All of them have verbs and options that exist, and name files that are there."""
import os
import pathlib
import re
import shutil
import subprocess
import time

from documents import commands, prepare, prepare_benchmarks, prepare_objects, prepare_results
from harness import *

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Options that make a command take less time, right behind its verb.
QUICKER = {"assay ab": "--time 1s", "assay doctor": "--seconds 1",
           "assay explain": "--no-sim --rounds 4 --profiles 1", "assay gate": "--budget 3s",
           "assay bisect": "--no-explain", "assay-move": "--seconds 0.1 --warmup 0.02",
           "assay-queue": "--items 100000", "assay-scale": "-s 10ms -w 10ms",
           "assay run": "--quick", "assay bench": "--time 1s"}
# Others: a part of what the command covers, or the time after which a user would stop it.
INSTEAD = {
    "assay-move --prove": "assay-move --prove --variant send",
    # The two cells that are explained next.
    "assay run experiments/replication.yaml":
        "assay run --quick --rounds 3 --cells 5,7 experiments/replication.yaml",
    "assay run experiments/scalability.yaml":
        "assay run --quick --rounds 1 --cells test=getppid1 experiments/scalability.yaml",
    "assay run experiments/queue-allocators.yaml":
        "assay run --dry-run experiments/queue-allocators.yaml",
    "assay-scale all -t 1..N": "assay-scale getppid1 open1 -t 1..N -s 10ms -w 10ms",
    "assay bisect --good v1.2 --build make --bench parse_small --run ./bench":
        "assay bisect --no-explain --min-rounds 8 --max-rounds 16 --good HEAD~2 --bad HEAD~1 --build make "
        "--bench parse_small --run ./bench",
    "assay serve": "timeout --preserve-status --signal INT 2 assay serve",
}
# What a verdict may be: pass, regression, inconclusive.
EXIT_CODES = {"assay gate": (0, 1, 3)}

VM = "emulated machines are in tests/vm"
LAB = "PostgreSQL, Slurm and other hosts are in tests/lab"
PART = "a part of a command, named in a sentence"
ALLOCATORS = "compiles for a minute, and needs the allocators that ./dev bench installs"
# Commands that are not run, by how they begin, and why.
ONLY_CHECKED = {
    "./dev demo": "installs packages; ./dev roots runs it",
    "./dev test": "is this",
    "./dev bench": "takes minutes, and installs rivals",
    "./dev guests": VM, "./dev vm": VM, "assay vm": VM,
    "assay run experiments/kernel-brk2.yaml": VM,
    "assay compare kernel=": VM, "assay diff kernel=": VM,
    "python3 tests/lib/run.py": "is this",
    "assay compare allocator=": ALLOCATORS, "assay compare level=": ALLOCATORS,
    "assay compare queue=": ALLOCATORS, "assay explain level=": ALLOCATORS,
    "sudo apt install": "installs packages",
    "docker run": "needs docker; ./dev roots builds the image and uses it with podman",
    "cc program.c": "needs an installation; tests/integration/queue.py compiles such programs",
    "sudo -u postgres": LAB, "echo 'hostssl": LAB, "sudo systemctl": LAB, "echo 'db.example": LAB,
    "export ASSAY_DB=postgresql": LAB, "parallel --sshlogin": LAB, "assay list --name sort": LAB,
    "cd /shared/project": LAB, "sudo scp": LAB, "sudo tee": LAB, "sinfo": LAB,
    "assay db deliver": LAB,
    "assay ab --time 1m": PART, "assay run --precision 2%": PART, "assay ab --duet": PART,
    "assay stat --sim": PART, "assay run --cells 'variant=new'": PART,
    "assay-move --transport veth": PART,
    "assay bench --layouts 20": "needs the objects of two versions; tests/integration/bench_more.py has them",
    "assay bench old-benchmarks": "needs other harnesses; tests/integration/bench_more.py has them",
}
NEEDS_ROOT = ("assay stat -e raw_syscalls:",)
NEEDS_PROGRAM = {"assay stat --sim": "valgrind", "assay plot -p ratio -o ratio.png": "rsvg-convert",
                 "for level in": "c++"}


def why_not(command):
    """Why the command is not run here, or None."""
    for start, reason in ONLY_CHECKED.items():
        if command.text.startswith(start) and (reason != PART or command.text == start):
            return reason
    if command.text.startswith(NEEDS_ROOT) and os.geteuid() != 0:
        return "needs root"
    if re.search(r"--exact(?!=)|assay vm prepare", command.text):
        return "needs an emulated machine; tests/vm/exact.py has one"
    if "--exact" in command.text and not (shutil.which("qemu-x86_64") or shutil.which("valgrind")):
        return "needs qemu-user or valgrind"
    if "--exact=model" in command.text and not shutil.which("valgrind"):
        return "needs valgrind"
    for start, program in NEEDS_PROGRAM.items():
        if command.text.startswith(start) and not shutil.which(program):
            return f"needs {program}"
    return None


def quick_form(text):
    if text in INSTEAD:
        return INSTEAD[text]
    for start, options in QUICKER.items():
        if not re.search(rf"--rounds|--list|monitor list|--import|{options.split()[0]}", text):
            text = re.sub(rf"(^|&& ){re.escape(start)}(?= )|^{re.escape(start)}$",
                          rf"\g<0> {options}", text)
    return text


def run_one(command):
    line = quick_form(command.text)
    result = subprocess.run(["bash", "-c", line], text=True, errors="replace", capture_output=True, timeout=400,
                            stdin=subprocess.DEVNULL, check=False)
    allowed = next((codes for start, codes in EXIT_CODES.items() if line.startswith(start)), (0,))
    assert result.returncode in allowed, \
        f"{command}\n$ {line}\nexit {result.returncode}\n{result.stdout}{result.stderr}"


def run_all(*documents):
    """Runs the commands of these documents in order, each once; how many that were."""
    seen, count = set(), 0
    for command in [command for path in documents for command in commands(ROOT / path)]:
        if command.text in seen:
            continue
        seen.add(command.text)
        reason = why_not(command)
        if reason is not None:
            print(f"# only checked: {command.text.splitlines()[0]}: {reason}")
            continue
        started = time.monotonic()
        run_one(command)
        print(f"# {time.monotonic() - started:.1f} s: {command.text.splitlines()[0]}", flush=True)
        count += 1
    return count


@test
def the_commands_of_the_readme_run():
    prepare()
    prepare_results()
    prepare_objects()
    between(run_all("README.md"), 35, 1000, "commands that were run")
    for name in "report.html", "why.html", "ratio.png":
        assert pathlib.Path(name).stat().st_size > 1000, name


@test
def the_first_five_minutes():
    prepare()
    shutil.rmtree(".git")  # the page makes its own
    between(run_all("docs/START.md"), 12, 1000, "commands that were run")
    for name in "report.html", "plot.svg", "experiment.yaml":
        assert pathlib.Path(name).stat().st_size > 100, name


@test
def the_commands_of_the_other_documents_run():
    prepare()
    prepare_results()
    between(run_all("docs/HOWTO.md", "docs/MOVE.md", "docs/LAB.md", "docs/QUEUES.md", "docs/VM.md",
                    "docs/TESTING.md"), 12, 1000, "commands that were run")


@test
def the_commands_about_benchmarks_run():
    prepare()
    prepare_benchmarks()
    between(run_all("docs/BENCH.md"), 8, 1000, "commands that were run")


@test
def the_commands_about_exact_counts_run():
    prepare()
    between(run_all("docs/EXACT.md"), 4, 1000, "commands that were run")


@test
def what_is_not_run_is_in_a_document():
    """A row of the table that nothing needs any more hides what comes later."""
    texts = [command.text for path in DOCUMENTS for command in commands(path)]
    for start in [*ONLY_CHECKED, *INSTEAD, *NEEDS_ROOT, *NEEDS_PROGRAM]:
        assert any(text.startswith(start) for text in texts), f"no document has '{start}'"


def mentioned(path):
    """(line, program, rest) for every mention of a program with a verb or options."""
    text = path.read_text()
    lines = [l for b in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S)
             for l in b.splitlines()]
    lines += [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text,
                                                                         flags=re.M | re.S))]
    for line in lines:
        found = re.match(r"^(?:\$ |\d+% )?(?:\(cd \S+ && )?(assay|assay-vr|\./dev) ([a-z-]+)\b(.*)$|"
                         r"^(?:\$ )?(assay-(?:move|queue|scale))( )(.*)$", line.strip())
        if found and not re.match(r"assay [a-z]+:", line.strip()):
            yield (line, found[1], found[2], found[3]) if found[1] else (line, found[4], "", found[6])


def verbs_of(program):
    if program == "./dev":
        text = subprocess.run([ROOT / "dev", "help"], text=True, capture_output=True, check=True,
                              stdin=subprocess.DEVNULL).stdout
    else:
        text = subprocess.run([path_of(program), "--help"], text=True, capture_output=True,
                              check=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.startswith("  ")]


def path_of(program):
    build = pathlib.Path(ASSAY).resolve().parents[2]
    return ASSAY if program == "assay" else build / "workloads" / program[6:] / program


def help_for(program, verb):
    words = [path_of(program), *([verb] if verb else []), "--help"]
    return subprocess.run(words, text=True, capture_output=True, check=True).stdout


@test
def every_command_has_a_verb_and_options_that_exist():
    helps, count = {}, 0
    verbs = {program: verbs_of(program) for program in ("assay", "assay-vr", "./dev")}
    for path in DOCUMENTS:
        for line, program, verb, rest in mentioned(path):
            if verb in ("help", "version"):
                continue
            if verb and verb not in verbs[program] and not line.startswith("$ "):
                continue  # the first line of a file's format, not a command
            assert not verb or verb in verbs[program], f"{path.name}: '{line}': there is no verb {verb}"
            count += 1
            if program == "./dev":
                continue
            if (program, verb) not in helps:
                helps[program, verb] = help_for(program, verb)
            own = re.split(r"\s(?:--|\||#|&&|>|;)\s|'", rest + " ")[0]
            for option in re.findall(r"(?<=\s)(--[a-z][a-z-]*)", " " + own):
                assert option in helps[program, verb], f"{path.name}: '{line}': there is no {option}"
            for file in re.findall(r"(?<=\s)(experiments/[\w-]+\.yaml)", own):
                assert (ROOT / file).exists(), f"{path.name}: '{line}': there is no {file}"
    between(count, 100, 10000, "commands looked at")


main()
