# SPDX-License-Identifier: MIT
"""assay bisect on generated repositories whose truth is known: the program reports a level that the
commit sets, with noise that is the same whenever the test runs."""
import json
import os
import pathlib
import signal
import subprocess
import time

from harness import *

NOISY = os.path.abspath(target("noisy"))


def git(*args):
    result = subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *args],
                            check=True, capture_output=True, text=True)
    return result.stdout.strip()


def repository(count, changes, broken=()):
    """`count` commits after the first; changes: {number: factor}.  Returns their hashes."""
    git("init", "-q", ".")
    git("config", "commit.gpgsign", "false")
    level, hashes = 100.0, []
    for number in range(count + 1):
        level *= changes.get(number, 1)
        pathlib.Path("level").write_text(f"{level!r}\n")
        pathlib.Path("number").write_text(f"{number}\n")
        pathlib.Path("broken").write_text("yes\n" if number in broken else "no\n")
        git("add", "-A")
        git("commit", "-qm", f"change number {number}")
        hashes.append(git("rev-parse", "HEAD"))
    return hashes


def bisect(*args, count=32, spread="0.01", check=0, build="grep -q no broken && cp level built",
           **kwargs):
    counter = os.path.abspath(".git/counter")
    return assay("bisect", "--good", f"HEAD~{count}", "--build", build,
                 "--run", f"{NOISY} built {counter} {spread}", "--metric", "latency", "--seed", "7",
                 "--no-explain", *args, check=check, timeout=600, **kwargs)


def nothing_left(kept=1):
    worktrees = git("worktree", "list")
    equal(len(worktrees.splitlines()), kept, worktrees)
    trees = pathlib.Path(".git/assay-bisect/trees")
    equal(list(trees.iterdir()) if trees.exists() else [], [], "left behind")


@test
def the_commit_is_found_and_the_mail_is_whole():
    hashes = repository(32, {11: 1.03})
    result = bisect("--json=r.json", "--markdown=r.md")
    text = result.stdout
    contains(text, f"regression of latency on commit {hashes[11][:12]} (change number 11)")
    contains(text, f"after {hashes[10][:12]} (change number 10)")
    contains(text, "by T <t@example.org>")
    contains(text, "confirmed")
    contains(text, f"assay bisect --good {hashes[10][:12]} --bad {hashes[11][:12]} --build")
    for part in ("environment:", "machine: ", "kernel: ", "what changed:", "How certain: "):
        contains(text, part)
    report = json.loads(pathlib.Path("r.json").read_text())
    equal(report["verdict"], "found")
    equal(len(report["changes"]), 1)
    change = report["changes"][0]
    equal((change["commit"]["hash"], change["kind"], change["certain"]),
          (hashes[11], "regression", True))
    between(change["change"]["estimate"], 1.02, 1.04)
    between(change["change"]["low"], 1.01, change["change"]["estimate"])
    between(report["built"], 6, 9)
    latency = [m for m in change["metrics"] if m["name"] == "latency"][0]
    equal(len(latency["before"]), change["change"]["rounds"])
    contains(pathlib.Path("r.md").read_text(), "regression of latency** on commit `")
    nothing_left()
    # The result of a search that has ended is there to be seen again.
    again = assay("bisect", "--continue", check=0).stdout
    equal(again.split("environment:")[0], text.split("environment:")[0])


@test
def commits_that_fail_sometimes_are_named_in_the_mail():
    hashes = repository(8, {5: 1.2})
    runs = os.path.abspath(".git/runs")
    counter = os.path.abspath(".git/counter")
    # Only the good end fails, in each seventh of its runs.
    run = (f"echo x >>{runs}; n=$(wc -l <{runs}); "
           f"if [ $(cat number) = 0 ] && [ $((n % 7)) = 6 ]; then exit 9; fi; "
           f"{NOISY} built {counter} 0.01")
    result = assay("bisect", "--good", "HEAD~8", "--build", "cp level built", "--run", run,
                   "--metric", "latency", "--seed", "7", "--no-explain", "--json=r.json", check=0,
                   timeout=600)
    found = json.load(open("r.json"))
    equal([entry["commit"] for entry in found["failed_runs"]], [hashes[0]])
    contains(result.stdout, hashes[5][:12])
    contains(" ".join(result.stdout.split()), f"Failed sometimes: {hashes[0][:12]}")
    contains(result.stdout, f", {found['failed_runs'][0]['runs']} run")


@test
def a_command_that_fails_now_and_then_is_searched():
    """In each fifth of its runs, the first included, whatever the commit; one commit always fails."""
    hashes = repository(8, {5: 1.2})
    runs = os.path.abspath(".git/runs")
    counter = os.path.abspath(".git/counter")
    run = (f"echo x >>{runs}; n=$(wc -l <{runs}); "
           f"if [ $(cat number) = 4 ] || [ $((n % 5)) = 1 ]; then exit 9; fi; {NOISY} built {counter} 0.01")
    result = assay("bisect", "--good", "HEAD~8", "--build", "cp level built", "--run", run, "--metric", "latency",
                   "--seed", "7", "--no-explain", "--json=r.json", check=0, timeout=600)
    found = json.load(open("r.json"))
    equal(found["left_out"], [hashes[4]])
    equal(hashes[4] in [entry["commit"] for entry in found["failed_runs"]], False)
    contains(result.stdout, f"{hashes[5][:12]} (")


@test
def an_improvement_is_found_past_commits_that_do_not_build():
    hashes = repository(32, {20: 0.95}, broken=(14, 15, 16, 17))
    result = bisect("--json", "--better", "lower", spread="0.005")
    report = json.loads(result.stdout)
    equal([c["commit"]["hash"] for c in report["changes"]], [hashes[20]])
    equal(report["changes"][0]["kind"], "improvement")
    if hashes[16] not in report["left_out"]:
        raise AssertionError(report["left_out"])
    contains(result.stderr, "which cannot be built")
    nothing_left()


@test
def a_change_among_commits_that_do_not_build_is_one_of_several():
    hashes = repository(8, {4: 1.1}, broken=(3, 4))
    result = bisect("--json=r.json", "--markdown=r.md", count=8)
    contains(result.stdout, "one of these commits")
    # The subject accuses nobody alone: the last of them is as innocent as the others until built.
    for subject in result.stdout, pathlib.Path("r.md").read_text():
        contains(subject.splitlines()[0],
                 f" by one of 3 commits, {hashes[2][:12]}..{hashes[5][:12]}")
        lacks(subject.splitlines()[0], f"by {hashes[5][:12]}")
    change = json.loads(pathlib.Path("r.json").read_text())["changes"][0]
    equal((change["certain"], change["suspects"]), (False, hashes[3:6]))


@test
def the_table_and_the_opening_agree():
    hashes = repository(8, {4: 1.1})
    text = bisect("--json=r.json", count=8).stdout
    change = json.loads(pathlib.Path("r.json").read_text())["changes"][0]
    opening = text.split("assay noticed a ")[1].split(" regression")[0]
    table = text.split("what changed:")[1]
    equal(opening.split("[")[1], table.split("[")[1][:len(opening.split("[")[1])])
    contains(table.split("\n\n")[1], opening)
    contains(table, "is not quite the ratio of")
    equal(change["commit"]["hash"], hashes[4])


@test
def what_a_machine_counts_is_not_the_hosts():
    """As 'assay vm run -e instructions' reports it: nothing of the host is compared, and a change
    of 0.2 % is found in the least rounds."""
    hashes = repository(16, {6: 1.002})
    script = pathlib.Path("counted").absolute()
    script.write_text("#!/bin/sh\n"
                      "echo assay.metric vm:instructions $(($(cat built) * 10 + $$ % 10)) >&$ASSAY_METRICS_FD\n"
                      "echo assay.metric other $$ >&$ASSAY_METRICS_FD\n"
                      "test $(cat built) -gt 100100 && echo assay.kernel 6.2.0 >&$ASSAY_METRICS_FD || "
                      "echo assay.kernel 6.1.9 >&$ASSAY_METRICS_FD\n")
    script.chmod(0o755)
    result = assay("bisect", "--good", "HEAD~16", "--build", "awk '{print int($1 * 1000)}' level > built",
                   "--run", str(script), "--metric", "vm:instructions", "--min-change", "0.1%", "--seed", "7",
                   "--json=r.json", check=0, timeout=600)
    contains(result.stdout, f"regression of vm:instructions on commit {hashes[6][:12]}")
    contains(result.stdout, "counted in an emulated machine, under Linux 6.1.9, then 6.2.0;")
    # The same from the journal, without measuring again.
    contains(assay("bisect", "--continue", check=0).stdout, "under Linux 6.1.9, then 6.2.0;")
    change = json.loads(pathlib.Path("r.json").read_text())["changes"][0]
    equal((change["before"]["kernel"], change["commit"]["kernel"]), ("6.1.9", "6.2.0"))
    equal([m["name"] for m in change["metrics"]], ["vm:instructions"])
    between(change["change"]["estimate"], 1.0019, 1.0021)
    nothing_left()


@test
def all_finds_two():
    hashes = repository(32, {5: 1.05, 25: 0.96})
    result = bisect("--all", "--json=r.json", spread="0.005")
    report = json.loads(pathlib.Path("r.json").read_text())
    equal([(c["commit"]["hash"], c["kind"]) for c in report["changes"]],
          [(hashes[5], "regression"), (hashes[25], "improvement")])
    contains(result.stdout, "The 2 changes add up to")
    nothing_left()


@test
def where_nothing_changed_nothing_is_found():
    repository(8, {})
    result = bisect(count=8, spread="0.005", check=1)
    contains(result.stdout, "No change of latency by 1 % or more was found")
    nothing_left()


@test
def too_much_noise_is_said():
    repository(8, {4: 1.03})
    result = bisect("--max-rounds", "20", "--json=r.json", count=8, spread="0.3", check=3)
    contains(result.stdout, "Cannot tell which commit it is")
    equal(json.loads(pathlib.Path("r.json").read_text())["verdict"], "cannot-tell")
    nothing_left()


@test
def with_all_too_much_noise_is_no_proof_either():
    repository(8, {4: 1.03})
    result = bisect("--all", "--max-rounds", "10", "--json=r.json", count=8, spread="0.3", check=3)
    contains(result.stdout, "Cannot tell whether a commit changed it")
    contains(result.stdout, "Too noisy to tell whether there is a change")
    report = json.loads(pathlib.Path("r.json").read_text())
    equal(report["verdict"], "cannot-tell")
    equal([rest["differs"] for rest in report["unexplained"] if rest["differs"]], [])
    nothing_left()


@test
def outside_of_a_repository_git_is_quoted_line_by_line():
    result = assay("bisect", "--good", "HEAD~1", "--run", "true", check=125)
    contains(result.stderr, "bisect needs a git repository")
    contains(result.stderr, "\nfatal: ")
    equal("\\x0a" in result.stderr, False, result.stderr)


@test
def merges_are_followed_along_first_parents():
    repository(4, {})
    git("checkout", "-q", "-b", "side", "HEAD~2")
    pathlib.Path("other").write_text("x\n")
    git("add", "-A")
    git("commit", "-qm", "on the side")
    git("checkout", "-q", "-")
    git("merge", "-q", "--no-commit", "side")
    pathlib.Path("level").write_text("110\n")
    git("commit", "-qam", "the merge")
    result = bisect(count=4)
    contains(result.stdout, "(the merge)")
    contains(result.stdout, "The commit is a merge")


@test
def commands_run_in_the_folder_where_it_was_started():
    git("init", "-q", ".")
    os.mkdir("sub")
    for number in range(5):
        pathlib.Path("sub/level").write_text("100\n" if number < 3 else "120\n")
        pathlib.Path("sub/number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
    counter = os.path.abspath(".git/counter")
    os.chdir("sub")
    try:
        result = assay("bisect", "--good", "HEAD~4", "--run", f"{NOISY} level {counter} 0.01",
                       "--metric", "latency", "--no-explain", check=0)
    finally:
        os.chdir("..")
    contains(result.stdout, "(number 3)")
    contains(result.stdout, "in the directory: sub/")


def processes_in(folder):
    """Processes whose working folder lies below."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(folder)):
                found.append((entry / "cmdline").read_text())
        except OSError:
            pass
    return found


def wait_for(condition, what, step=0.1):
    limit = time.monotonic() + 240
    while time.monotonic() < limit:
        if condition():
            return
        time.sleep(step)
    raise AssertionError(f"never: {what}")


def start(*args, build="cp level built", run=None):
    counter = os.path.abspath(".git/counter")
    run = run or f"{NOISY} built {counter} 0.01"
    return subprocess.Popen([ASSAY, "bisect", "--good", "HEAD~16", "--build", build, "--run", run,
                             "--metric", "latency", "--seed", "7", "--no-explain", *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL)


def rounds():
    journal = pathlib.Path(".git/assay-bisect/journal")
    return journal.read_text().count("\nend\n") if journal.exists() else 0


def interrupted(number):
    """Stops a search twice with the signal, once in a build and once in the runs, and goes on."""
    hashes = repository(16, {6: 1.05})
    here = os.getcwd()
    flag = os.path.abspath(".git/hold")
    pathlib.Path(flag).write_text("")
    process = start(build=f"touch {flag}.seen; while test -e {flag}; do sleep 0.1; done; "
                          "cp level built")
    wait_for(lambda: os.path.exists(flag + ".seen"), "a build")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=240)
    if number != signal.SIGKILL:
        equal(process.returncode, 128 + number, stderr)
        contains(stderr, "assay bisect --continue")
    wait_for(lambda: not processes_in(here + "/.git"), "no process of the build left")
    os.unlink(flag)
    # The same again, in the middle of the rounds.
    process = subprocess.Popen([ASSAY, "bisect", "--continue"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    wait_for(lambda: rounds() >= 5 or process.poll() is not None, "five rounds")
    process.send_signal(number)
    process.communicate(timeout=240)
    before = rounds()
    # A new one is refused; what is there goes on where it was.
    refused = bisect(count=16, check=125)
    contains(refused.stderr, "--continue resumes")
    result = assay("bisect", "--continue", "--json", check=0, timeout=600)
    report = json.loads(result.stdout)
    equal([c["commit"]["hash"] for c in report["changes"]], [hashes[6]])
    if rounds() <= before or before < 5:
        raise AssertionError(f"{before} rounds before, {rounds()} after")
    nothing_left()


@test
def a_search_that_was_interrupted_goes_on():
    interrupted(signal.SIGINT)


@test
def a_search_that_was_killed_goes_on():
    interrupted(signal.SIGKILL)


def journal():
    path = pathlib.Path(".git/assay-bisect/journal")
    return path.read_text() if path.exists() else ""


PHASES = {
    "the first build": lambda: "\nsearch\n" in journal() and list(
        pathlib.Path(".git/assay-bisect/trees").iterdir()),
    "the comparison of the ends": lambda: "\nround\t" in journal(),
    "the rounds of a candidate": lambda: "\nround\t" in journal().partition("\nbuilt\t8\n")[2],
    "a confirmation": lambda: "\nmetric\t" in journal(),
    "the profiles": lambda: os.path.exists(".git/assay-bisect/recordings"),
}


@test
def it_goes_on_after_a_kill_in_any_phase():
    hashes = repository(16, {6: 1.05})
    here = os.getcwd()
    counter = os.path.abspath(".git/counter")
    first = ["--good", "HEAD~16", "--build", "sleep 0.1; cp level built", "--run",
             f"sh -c 'sleep 0.01; {NOISY} built {counter} 0.01'", "--metric", "latency",
             "--seed", "7"]
    for phase, reached in PHASES.items():
        process = subprocess.Popen([ASSAY, "bisect", *(first or ["--continue"])],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL)
        first = None
        wait_for(lambda: reached() or process.poll() is not None, phase, 0.01)
        process.kill()
        process.wait()
        wait_for(lambda: not processes_in(here + "/.git"), f"no process left after {phase}")
    report = json.loads(assay("bisect", "--continue", "--json", check=0, timeout=600).stdout)
    equal([c["commit"]["hash"] for c in report["changes"]], [hashes[6]])
    nothing_left()
    equal(os.path.exists(".git/assay-bisect/recordings"), False)


@test
def a_journal_that_was_cut_off_loses_the_last_round_only():
    hashes = repository(16, {6: 1.05})
    process = start()
    wait_for(lambda: rounds() >= 12 or process.poll() is not None, "twelve rounds")
    process.kill()
    process.communicate()
    journal = pathlib.Path(".git/assay-bisect/journal")
    text = journal.read_text()
    whole = text[:text.rindex("end\n")]
    journal.write_text(whole[:whole.rindex("\n") - 3])
    report = json.loads(assay("bisect", "--continue", "--json", check=0, timeout=600).stdout)
    equal([c["commit"]["hash"] for c in report["changes"]], [hashes[6]])
    journal.write_text(text.replace("search\n", "nonsense\n"))
    contains(assay("bisect", "--continue", check=125).stderr, "damaged")


@test
def abort_removes_everything():
    repository(16, {6: 1.05})
    process = start()
    wait_for(lambda: rounds() >= 3 or process.poll() is not None, "three rounds")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assay("bisect", "--abort", check=0)
    equal(os.path.exists(".git/assay-bisect"), False)
    nothing_left()
    contains(assay("bisect", "--abort", check=125).stderr, "no bisect to abort")
    contains(assay("bisect", "--continue", check=125).stderr, "no bisect to resume")


@test
def cpu_time_stands_for_wall_time_where_nothing_waits():
    git("init", "-q", ".")
    for number in range(3):
        pathlib.Path("loops").write_text("9\n" if number >= 2 else "3\n")
        pathlib.Path("number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
    spin = os.path.abspath(target("spin"))
    # The program is a copy in each tree: a shell that looks for it would wait for it.
    build = f"printf '#!%s %s\\n' {spin} $(cat loops) > work; chmod +x work"
    result = assay("bisect", "--good", "HEAD~2", "--build", build, "--run", "./work",
                   "--no-explain", "--max-rounds", "20", "--json=r.json", check=0, timeout=600)
    metric = json.loads(pathlib.Path("r.json").read_text())["metric"]
    equal((metric["name"], metric["chosen"]), ("cpu", True))
    contains(result.stdout, "regression of cpu on commit")
    contains(result.stdout, "never waits on its own")
    contains(result.stdout, "--metric cpu")
    # What was chosen is kept.
    again = json.loads(assay("bisect", "--continue", "--json", check=0).stdout)["metric"]
    equal((again["name"], again["chosen"]), ("cpu", True))
    waiting = assay("bisect", "--good", "HEAD~2", "--run", "sh -c 'sleep 0.00$(cat loops)'",
                    "--no-explain", "--max-rounds", "10", "--json", check=None, timeout=600)
    equal(json.loads(waiting.stdout)["metric"]["name"], "wall")


@test
def trees_are_kept_and_used_again():
    repository(8, {4: 1.1})
    log = os.path.abspath(".git/builds")
    build = f"echo x >> {log}; cp level built"
    bisect("--keep", "--dir", ".git/kept", count=8, build=build)
    built = len(pathlib.Path(log).read_text().split())
    equal(len(git("worktree", "list").splitlines()), built + 1)
    bisect("--dir", ".git/kept", count=8, build=build)
    equal(len(pathlib.Path(log).read_text().split()), built)
    nothing_left()


@test
def the_function_that_accounts_for_it_is_named():
    git("init", "-q", ".")
    for number in range(4):
        pathlib.Path("loops").write_text("40\n" if number >= 2 else "10\n")
        pathlib.Path("number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
    spin = os.path.abspath(target("spin"))
    result = assay("bisect", "--good", "HEAD~3", "--run", f"{spin} $(cat loops)", "--seed", "7",
                   "--metric", "user", "--json=r.json", check=0, timeout=600)
    contains(result.stdout, "(number 2)")
    contains(result.stdout, "what accounts for it:")
    reasons = json.loads(pathlib.Path("r.json").read_text())["changes"][0]["reasons"]
    nothing_left()
    equal(os.path.exists(".git/assay-bisect/recordings"), False)
    # The reasons are kept: nothing is run to show them again.
    again = json.loads(assay("bisect", "--continue", "--json", check=0).stdout)
    equal(again["changes"][0]["reasons"], reasons)
    if reasons[0].startswith("not known"):
        skip(reasons[0])
    contains(reasons[0], "main")


@test
def trouble_is_told():
    hashes = repository(4, {2: 1.1}, broken=(4,))
    result = bisect(count=4, check=125)
    contains(result.stdout, "cannot be built, but a search needs both of its ends")
    contains(bisect("--bad", "nosuch", count=4, check=125).stderr, "no such commit")
    contains(bisect("--bad", hashes[0], count=2, check=125).stderr, "older than --good")
    contains(bisect("--bad", "HEAD~4", count=4, check=125).stderr, "are both")
    missing = bisect("--bad", "HEAD~1", "--metric", "nosuch", count=4, check=125)
    contains(missing.stderr, "they have wall")
    assay("bisect", "--abort", check=0)
    failing = assay("bisect", "--good", "HEAD~4", "--run", "sh -c 'echo why >&2; exit 9'", check=125)
    contains(failing.stderr, "exit code 9")
    contains(failing.stderr, "why")
    assay("bisect", "--abort", check=0)
    assay("bisect", "--run", "true", check=2)
    assay("bisect", "--good", "HEAD~1", check=2)
    assay("bisect", "--good", "HEAD~1", "--run", "true", "--error", "x", check=2)
    assay("bisect", "--continue", "--good", "HEAD", check=2)
    contains(assay("bisect", "--good", "HEAD", "--run", "true", check=125, cwd="/").stderr,
             "needs a git repository")


main()
