# SPDX-License-Identifier: MIT
"""What integration tests share: run the real binary, compare, print TAP.

A test file defines functions marked @test and ends with main().  ASSAY names the binary and
TARGETS the folder of built test programs; both are set by tests/lib/run.py.
"""
import atexit
import ctypes
import errno
import functools
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback


def plain(folder):
    """The folder, or where its path has spaces or the like a link to it that has none: tests put their
    programs into shell commands and specs.  That such paths work is a test of its own (ab, run)."""
    if re.fullmatch(r"[\w./+-]*", str(folder), re.ASCII):
        return pathlib.Path(folder)
    try:
        place = pathlib.Path(tempfile.mkdtemp(prefix="assay-plain-", dir="/tmp"))
    except OSError:
        return pathlib.Path(folder)
    atexit.register(shutil.rmtree, place)
    link = place / pathlib.Path(folder).name
    link.symlink_to(os.path.abspath(folder))
    return link


ASSAY = str(plain(os.path.dirname(os.environ.get("ASSAY", "build/src/cmd/assay"))) / "assay")
TARGETS = plain(os.environ.get("TARGETS", "build/tests/targets"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZED = os.environ.get("ASSAY_SANITIZED") == "1"

# Programs of Debian packages that not every machine has, where nobody could install them.
OPTIONAL = {"cc", "clang", "clang-format", "fish", "g++", "gcc", "git", "go", "ip", "make", "nm", "node", "nsenter", "objdump",
            "perf", "rustc", "shellcheck", "strace", "strip", "unshare", "zsh"}

_tests = []


class Skip(Exception):
    """Raised by skip(): the test cannot run here, and why."""


def skip(reason):
    raise Skip(reason)


def openmetrics_families(text):
    """What Prometheus's own parser reads: (name, samples of (name, labels, value)) of each family.  It runs in
    Debian's Python where this one does not have it; without it anywhere, the test is skipped."""
    program = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
json.dump([(f.name, [(s.name, s.labels, s.value) for s in f.samples])
           for f in text_string_to_metric_families(sys.stdin.read())], sys.stdout)
"""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if not os.access(python, os.X_OK):
            continue
        if subprocess.run([python, "-c", "import prometheus_client.openmetrics.parser"], capture_output=True).returncode:
            continue
        done = subprocess.run([python, "-c", program], input=text, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"not OpenMetrics: {done.stderr}{text}")
        return json.loads(done.stdout)
    skip("needs python3-prometheus-client")


def test(function):
    _tests.append(function)
    return function


def assay(*args, check=None, env=None, **kwargs):
    """Runs assay with text output captured; check is the expected exit code."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("timeout", 400)
    environment = dict(os.environ, LC_ALL="C.UTF-8", **(env or {}))
    result = subprocess.run([ASSAY, *map(str, args)], env=environment, text=True, errors="replace",
                            capture_output=True, **kwargs)
    if check is not None and result.returncode != check:
        raise AssertionError(f"assay {' '.join(map(str, args))}: exit {result.returncode}, not "
                             f"{check}\n{result.stdout}\n{result.stderr}")
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    return result


def target(name):
    return str(TARGETS / name)


def equal(actual, expected, what="value"):
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, not {expected!r}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"{part!r} not in:\n{text}")


def lacks(text, part):
    if part in text:
        raise AssertionError(f"{part!r} must not be in:\n{text}")


def between(value, low, high, what="value"):
    if not low <= value <= high:
        raise AssertionError(f"{what} is {value}, not in [{low}, {high}]")


def processes(parent=None, session=None, words=None):
    """The numbers of processes with this parent, in this session, with these words; from /proc, since
    pgrep is not everywhere."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:  # it has ended meanwhile
            continue
        if (parent in (None, int(stat[1])) and session in (None, int(stat[3])) and
                words in (None, line)):
            found.append(int(folder.name))
    return found


def needs_file_store(why):
    """Skips a test that looks into a store's file when the stores are in PostgreSQL."""
    if os.environ.get("ASSAY_TEST_PG"):
        skip("on PostgreSQL: " + why)


def store_place():
    """The store that assay uses when no option names one."""
    return os.environ.get("ASSAY_DB", "assay.db")


def use_schema(name):
    """With ASSAY_TEST_PG, the address of a database, each test's store is a schema of its own
    there (tests/lab/store.py); else it is assay.db in the test's folder."""
    address = os.environ.get("ASSAY_TEST_PG")
    if address:
        subprocess.run(["psql", "-X", "-q", "-c", f'CREATE SCHEMA "{name}"', address], check=True,
                       stdin=subprocess.DEVNULL)
        os.environ["ASSAY_DB"] = f"{address}?options=-csearch_path%3D{name}"


def lacking(error):
    """Whether a test failed because it starts a program that this machine does not have."""
    return isinstance(error, FileNotFoundError) and error.filename in OPTIONAL


@functools.cache
def perf_events_are_refused():
    """Whether the kernel refuses even an event that counts nothing: to users at
    kernel.perf_event_paranoid 3, and in containers.  It is asked directly, not through assay."""
    numbers = {"x86_64": 298, "aarch64": 241}
    if os.uname().machine not in numbers:
        return False
    software, dummy, disabled, exclude_kernel, exclude_hv = 1, 9, 1 << 0, 1 << 5, 1 << 6
    attr = struct.pack("<IIQQQQQ", software, 64, dummy, 0, 0, 0, disabled | exclude_kernel | exclude_hv)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(numbers[os.uname().machine], attr.ljust(64, b"\0"), 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
    return fd < 0 and ctypes.get_errno() in (errno.EACCES, errno.EPERM, errno.ENOSYS)


def refused(error):
    """Why a test could not be made where perf events are refused; None where that is not the reason."""
    words = ("kernel.perf_event_paranoid is", "forbids perf_event_open", "has no perf_event_open",
             "Access to performance monitoring")
    said = f"{error}\n{getattr(error, 'stderr', '')}\n{getattr(error, 'stdout', '')}"
    line = next((line for line in said.splitlines() if any(word in line for word in words)), None)
    return line.strip() if line and perf_events_are_refused() else None


def main():
    wanted = sys.argv[1:]
    failed = number = 0
    shuffle = os.environ.get("ASSAY_TEST_ORDER")  # a seed
    if shuffle:
        random.Random(shuffle).shuffle(_tests)
    for function in _tests:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        number += 1
        with tempfile.TemporaryDirectory(prefix="assay-test-") as folder:
            before = os.getcwd()
            os.chdir(folder)
            started = time.monotonic()
            try:
                use_schema(name)
                function()
                print(f"ok {number} {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} {name} # SKIP {reason}", flush=True)
            except Exception as error:  # a test's failure of any kind is reported, the rest goes on
                if lacking(error):
                    print(f"ok {number} {name} # SKIP {error.filename} is not installed", flush=True)
                    continue
                if refused(error):
                    print(f"ok {number} {name} # SKIP {refused(error)}", flush=True)
                    continue
                failed += 1
                for line in traceback.format_exc().splitlines():
                    print("# " + line)
                print(f"not ok {number} {name}", flush=True)
            finally:
                os.chdir(before)
                print(f"# took {time.monotonic() - started:.2f} s", flush=True)
    print(f"1..{number}")
    sys.exit(1 if failed else 0)
