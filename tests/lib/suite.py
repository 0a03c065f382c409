# SPDX-License-Identifier: MIT
"""The tests that meson knows (meson introspect), run one by one; each prints TAP.  run.py and
flakes.py share this."""
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

# A shell starts what it puts into the background with these ignored, and nohup the last; so would
# all tests be.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

LINE = re.compile(r"^(not )?ok\s+\d+\s*-?\s*(.*?)(?:\s*#\s*SKIP\s*(.*))?$", re.IGNORECASE)
TOOK = re.compile(r"^# took ([\d.]+) s$")
running = set()  # the processes of jobs under way
changing = threading.Lock()
stopped = threading.Event()
PATIENCE = 4  # a time limit ends what hangs; on a busy machine it must decide nothing


class Stopped(Exception):
    """stop() ended it: nothing can be said of it."""


@dataclasses.dataclass
class Job:
    """One test program of one build folder."""
    label: str   # "gcc": whose build it is
    folder: str
    test: dict   # as meson tells of it
    cases: tuple = ()  # only these of its tests

    @property
    def name(self):
        return self.test["name"]

    def alone(self):
        """Whether it measures, and has the machine to itself, as its users would."""
        return "alone" in (suite.split(":")[-1] for suite in self.test["suite"])

    def again(self, case=None):
        """The one command that repeats it."""
        only = f" --case {case}" if case else ""
        return (f"python3 tests/lib/run.py --exactly {self.name}{only} "
                f"{self.label}={os.path.relpath(self.folder)}")


@dataclasses.dataclass
class Case:
    name: str
    state: str  # passed, failed, skipped
    reason: str = ""  # of a skip
    seconds: float = 0


@dataclasses.dataclass
class Outcome:
    job: Job
    cases: list
    broken: str  # why the program failed as a whole, whatever it printed; else ""
    output: str
    seconds: float

    def count(self, state):
        return sum(case.state == state for case in self.cases)

    def words(self, case):
        """What the program printed for this case: TAP's comments, behind its line or before it."""
        lines = self.output.splitlines(keepends=True)
        at = [index for index, line in enumerate(lines)
              if (match := LINE.match(line)) and match[2] == case.name]
        if not at:
            return ""
        others = [index for index, line in enumerate(lines) if LINE.match(line)]
        before = max((index for index in others if index < at[0]), default=-1)
        after = min((index for index in others if index > at[0]), default=len(lines))
        return "".join(lines[before + 1:after])

    @property
    def failed(self):
        return self.count("failed") + bool(self.broken)


def load(entry):
    """The jobs of LABEL=BUILD_DIR[:SUITE[,SUITE…]]."""
    label, _, rest = entry.partition("=")
    folder, _, suites = rest.partition(":")
    wanted = set(filter(None, suites.split(",")))
    info = json.loads((pathlib.Path(folder) / "meson-info" / "intro-tests.json").read_text())
    for test in info:
        names = {suite.split(":")[-1] for suite in test["suite"]}
        if not wanted or wanted & names:
            yield Job(label, folder, test)


def variables(job):
    """What a test program needs to know of its build."""
    ours = {"ASSAY": os.path.abspath(f"{job.folder}/src/cmd/assay"),
            "TARGETS": os.path.abspath(f"{job.folder}/tests/targets"),
            "BUILD": os.path.abspath(job.folder)}
    ours.update(job.test.get("env") or {})
    if job.label == "asan":
        ours["ASSAY_SANITIZED"] = "1"
        ours["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=0:exitcode=99"
        ours["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    return ours


@functools.cache
def steady_addresses():
    """Words before a program with sanitizers.  AddressSanitizer of gcc 12 and clang 14 dies now and then
    where the kernel lays addresses out at random by more bits (vm.mmap_rnd_bits of some is 32) than it
    knows of; an ordinary user cannot read how many there are."""
    try:
        if int(pathlib.Path("/proc/sys/vm/mmap_rnd_bits").read_text()) <= 28:
            return ()
    except (OSError, ValueError):
        pass
    fixed = ("setarch", "-R")
    works = shutil.which(fixed[0]) and not subprocess.run([*fixed, "true"], stderr=subprocess.DEVNULL,
                                                          check=False).returncode
    return fixed if works else ()


def read_tap(output):
    """The cases, and how many were announced (None: no word of it)."""
    cases, planned = [], None
    for line in output.splitlines():
        plan = re.match(r"^1\.\.(\d+)", line)
        if plan:
            planned = int(plan[1])
        took = TOOK.match(line)
        if took and cases:
            cases[-1].seconds = float(took[1])
        match = LINE.match(line)
        if match:
            state = "failed" if match[1] else "passed" if match[3] is None else "skipped"
            cases.append(Case(match[2], state, match[3] or ""))
    return cases, planned


def run(job, environment=None, before=()):
    """Runs a job, in this environment instead of ours and behind the words of `before`."""
    environment = dict(os.environ if environment is None else environment, **variables(job))
    started = time.monotonic()
    if job.label in ("asan", "fuzz"):
        before = (*before, *steady_addresses())
    # Paths in meson's commands are relative to the build folder.
    process = subprocess.Popen([*before, *job.test["cmd"], *job.cases], cwd=job.folder,
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, encoding="utf-8",
                               errors="replace", start_new_session=True)
    with changing:
        running.add(process.pid)
    timed_out = False
    try:
        output, _ = process.communicate(timeout=PATIENCE * job.test["timeout"])
    except BaseException as reason:  # a time limit, Ctrl-C: nothing is left behind
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if not isinstance(reason, subprocess.TimeoutExpired):
            raise
        timed_out = True
    finally:
        with changing:
            running.discard(process.pid)
    if stopped.is_set():
        raise Stopped
    cases, planned = read_tap(output)
    failed = any(case.state == "failed" for case in cases)
    broken = ("ran out of time" if timed_out else
              "announced no tests" if not planned else
              f"announced {planned} tests and had {len(cases)}" if planned != len(cases) else
              f"exit code {process.returncode}" if process.returncode and not failed else "")
    return Outcome(job, cases, broken, output, time.monotonic() - started)


def stop():
    """Ends the jobs that other threads are running: they are in sessions of their own."""
    stopped.set()
    with changing:
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
