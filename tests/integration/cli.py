# SPDX-License-Identifier: MIT
"""The command line itself: help, versions, wrong verbs, completion scripts."""
import os
import pathlib
import re
import shutil
import subprocess

from harness import *
from terminal import Terminal


@test
def help_goes_to_stdout():
    result = assay("--help", check=0)
    contains(result.stdout, "usage: assay VERB")
    equal(result.stderr, "")


@test
def no_verb_is_a_usage_error():
    result = assay(check=2)
    contains(result.stderr, "usage: assay VERB")


@test
def an_unknown_verb_gets_a_suggestion():
    result = assay("completon", check=2)
    contains(result.stderr, "did you mean completion?")


@test
def a_full_disk_on_stdout_is_an_error():
    with open("/dev/full", "w") as full:
        result = subprocess.run([ASSAY, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    equal(result.returncode, 1)
    contains(result.stderr, "standard output")


@test
def the_version_names_commit_and_libraries():
    lines = assay("--version", check=0).stdout.splitlines()
    assert re.fullmatch(r"assay \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(-dirty)?\))?", lines[0]), lines
    assert re.match(r"with [a-z]", lines[1]), lines


@test
def debian_has_the_changelog():
    made = subprocess.run([str(ROOT / "debian/make-changelog"), "0.2.0", "1700000000"], cwd=ROOT,
                          text=True, capture_output=True, check=False)
    equal(made.returncode, 0, made.stderr)
    releases = re.findall(r"^assay \((.+?)\) unstable", made.stdout, flags=re.M)
    written = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    equal(releases, written)
    equal(made.stdout.count(" -- The assay developers"), len(releases))


@test
def few_libraries_are_needed_to_start():
    """What few verbs need is loaded by them: a start must not wait for LDAP."""
    if not shutil.which("ldd"):
        skip("there is no ldd")
    if "libasan" in (names := subprocess.run(["ldd", ASSAY], text=True, capture_output=True).stdout):
        skip("a build with sanitizers has their libraries, too")
    libraries = [line.split()[0] for line in names.splitlines() if "=>" in line]
    assert len(libraries) <= 12, libraries
    for name in "libpq", "libmicrohttpd", "libncurses", "libcapstone", "libdw", "libdebuginfod":
        assert not any(l.startswith(name) for l in libraries), f"{name} is linked"


@test
def every_verb_has_help():
    for verb in verbs():
        result = assay(verb, "--help", check=0)
        contains(result.stdout, f"usage: assay {verb}")


@test
def bash_accepts_the_completion_script():
    script = assay("completion", "bash", check=0).stdout
    check = script + '\nCOMP_WORDS=(assay compl); COMP_CWORD=1; _assay; echo "${COMPREPLY[@]}"\n'
    result = subprocess.run(["bash", "-c", check], text=True, capture_output=True)
    equal(result.stderr, "")
    equal(result.stdout, "completion\n")


@test
def zsh_accepts_the_completion_script():
    if not shutil.which("zsh"):
        skip("zsh is not installed")
    script = assay("completion", "zsh", check=0).stdout
    result = subprocess.run(["zsh", "-n"], input=script, text=True, capture_output=True)
    equal((result.returncode, result.stderr), (0, ""))


@test
def fish_accepts_the_completion_scripts():
    if not shutil.which("fish"):
        skip("fish is not installed")
    scripts = [assay("completion", "fish", check=0).stdout]
    for name in ("move", "queue", "scale", "vr"):
        scripts.append(subprocess.run([workload(name), "--completion", "fish"], text=True,
                                      capture_output=True, check=True).stdout)
    for script in scripts:
        result = subprocess.run(["fish", "-n"], input=script, text=True, capture_output=True)
        equal((result.returncode, result.stderr), (0, ""))


def completed_by_bash(*words):
    script = assay("completion", "bash", check=0).stdout
    line = " ".join(f"'{word}'" for word in ("assay", *words))
    check = (script + f"\nPATH='{pathlib.Path(ASSAY).resolve().parent}':$PATH\nCOMP_WORDS=({line}); "
             f'COMP_CWORD={len(words)}; _assay; printf "%s\\n" "${{COMPREPLY[@]}}"\n')
    result = subprocess.run(["bash", "-c", check], text=True, capture_output=True)
    equal(result.stderr, "")
    return result.stdout.split()


# What completes, of what is typed, by what it stands for.
COMPLETIONS = {
    "a verb": ("assay compl", "completion"),
    "a subcommand of vm": ("assay vm fe", "fetch"),
    "a subcommand of db": ("assay db deli", "deliver"),
    "an experiment that came with assay": ("assay run two-w", "two-ways"),
    "a monitor": ("assay run --monitor vmst", "vmstat"),
    "an event": ("assay stat -e context-sw", "context-switches"),
    "the newest experiment": ("assay show las", "last"),
    "an experiment by name": ("assay rm sort", "sorted"),
    "a metric": ("assay compare -m wal", "wall"),
    "a cell": ("assay compare many=y", "many=yes"),
    "the factor of a cell": ("assay compare man", "many="),
    "a value behind =": ("assay run --monitor=vmst", "--monitor=vmstat"),
    "a cell of a report": ("assay html many=y", "many=yes"),
}


def keep_an_experiment():
    pathlib.Path("s.yaml").write_text("name: sorted\ncommand: true {many}\nfactors: {many: ['yes', 'no']}\n")
    assay("run", "--rounds", 1, "s.yaml", check=0)


def on_a_terminal(shell, words):
    """Types what is to be completed, as nothing else shows what a shell makes of it."""
    with Terminal(shell, columns=200) as terminal:
        terminal.send(words + "\r")
        terminal.send("echo set\\-up\r")
        terminal.expect("set-up")
        for typed, wanted in COMPLETIONS.values():
            terminal.send(f"\x15{typed}\t")
            terminal.expect(" ".join([*typed.split()[:-1], wanted]))


@test
def words_complete_in_bash():
    """Where = and : end words."""
    equal(completed_by_bash("show", "la"), [])  # there is no store yet
    keep_an_experiment()
    equal(completed_by_bash("show", "la"), ["last"])
    os.environ.update(with_assay() | {"HOME": os.getcwd()})
    pathlib.Path("completion").write_text(assay("completion", "bash", check=0).stdout)
    on_a_terminal(["bash", "--norc", "--noprofile", "-i"], "PS1='ready> '; . ./completion")


@test
def every_subcommand_completes():
    for verb in "vm", "db":
        usage = assay(verb, "--help", check=0).stdout.partition("\n\n")[0].partition(f"assay {verb} ")[2]
        named = {part.replace("[options]", "").split()[0] for part in usage.split(" | ")}
        offered = completed_by_bash(verb, "")
        equal(named - set(offered), set(), f"subcommands of {verb} that are not offered")


@test
def words_complete_in_fish():
    if not shutil.which("fish"):
        skip("fish is not installed")
    keep_an_experiment()
    script = assay("completion", "fish", check=0).stdout
    for what, (typed, wanted) in COMPLETIONS.items():
        result = subprocess.run(["fish", "-c", f"{script}\ncomplete -C '{typed}'"], text=True,
                                capture_output=True, env=with_assay() | {"HOME": os.getcwd()}, check=False)
        offered = [line.split("\t")[0] for line in result.stdout.splitlines()]
        assert any(word.startswith(wanted) for word in offered), \
            f"{what}: '{typed}' offers {offered}: {result.stderr}"


@test
def words_complete_in_zsh():
    """On a terminal, as zsh completes nowhere else; the file is the one that is installed."""
    if not shutil.which("zsh"):
        skip("zsh is not installed")
    keep_an_experiment()
    os.mkdir("functions")
    shutil.copy(pathlib.Path(os.environ["BUILD"]) / "src/shell/zsh-assay", "functions/_assay")
    os.environ.update(with_assay() | {"HOME": os.getcwd()})
    on_a_terminal(["zsh", "-f", "-i"], "PS1='ready> ' fpath=($PWD/functions $fpath); autoload -U compinit; "
                  "compinit -u -D")


def with_assay():
    return os.environ | {"PATH": f"{pathlib.Path(ASSAY).resolve().parent}:{os.environ['PATH']}"}


def workload(name):
    return str(pathlib.Path(os.environ["BUILD"]) / "workloads" / name / f"assay-{name}")


def completed(name, *words):
    """What bash offers for the last of the words."""
    script = subprocess.run([workload(name), "--completion", "bash"], text=True, capture_output=True,
                            check=True).stdout
    line = " ".join(f"'{word}'" for word in (f"assay-{name}", *words))
    check = (script + f"\nPATH='{pathlib.Path(workload(name)).parent}':$PATH\nCOMP_WORDS=({line}); "
             f'COMP_CWORD={len(words)}; _assay_{name}; printf "%s\\n" "${{COMPREPLY[@]}}"\n')
    result = subprocess.run(["bash", "-c", check], text=True, capture_output=True)
    equal(result.stderr, "")
    return result.stdout.split()


@test
def workloads_complete_in_bash():
    equal(completed("scale", "--overs"), ["--oversubscribe"])
    equal(completed("scale", "-t", "2", "page_"), ["page_fault1", "page_fault2", "page_fault3"])
    equal(completed("scale", "--completion", "z"), ["zsh"])
    equal(completed("move", "--variant", "batch-sendm"), ["batch-sendmsg"])
    equal("mpmc" in completed("queue", "--queue", ""), True)
    equal(completed("queue", "--reclaim", "h"), ["hazard"])
    equal(completed("vr", "si"), ["sim"])
    equal("--json" in completed("vr", "sim", "--j"), True)


@test
def workloads_complete_in_zsh():
    if not shutil.which("zsh"):
        skip("zsh is not installed")
    for name in ("move", "queue", "scale", "vr"):
        script = subprocess.run([workload(name), "--completion", "zsh"], text=True,
                                capture_output=True, check=True).stdout
        contains(script, f"#compdef assay-{name}\n")
        result = subprocess.run(["zsh", "-n"], input=script, text=True, capture_output=True)
        equal((result.returncode, result.stderr), (0, ""))


@test
def workloads_refuse_other_shells():
    for name in ("move", "queue", "scale", "vr"):
        result = subprocess.run([workload(name), "--completion", "ksh"], text=True,
                                capture_output=True)
        equal(result.returncode, 2)
        contains(result.stderr, "use bash, zsh or fish")


def verbs():
    lines = assay("--help", check=0).stdout.splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ")]


main()
