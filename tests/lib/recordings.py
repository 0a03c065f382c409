# SPDX-License-Identifier: MIT
"""Recordings for tests of profiles: made once each by the installed perf, kept until the end."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import ASSAY, TARGETS, skip, target

_folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-recordings-"))
atexit.register(shutil.rmtree, _folder, True)


@functools.lru_cache(None)
def perf_version():
    """The version of the perf that writes and reads the files, or None."""
    if not shutil.which("perf"):
        return None
    result = subprocess.run(["perf", "--version"], text=True, capture_output=True)
    return result.stdout.strip() if result.returncode == 0 else None


def need_perf():
    if not perf_version():
        skip("perf is not installed")


def need_target(name):
    if not os.path.exists(target(name)):
        skip(f"tests/targets/{name} was not built (no compiler for it)")
    return target(name)


@functools.lru_cache(None)
def record(*arguments, command, frequency=4000, tool="perf"):
    """Records the command (a tuple of words) with perf or assay; returns the path of the file."""
    path = pathlib.Path(tempfile.mkdtemp(dir=_folder)) / "perf.data"
    program = "perf" if tool == "perf" else ASSAY
    if tool == "perf":
        need_perf()
    words = [program, "record", "-o", str(path)]
    if frequency:
        words += ["-F", str(frequency)]
    for _ in range(4):  # perf crashes when somebody records with build IDs meanwhile
        result = subprocess.run([*words, *arguments, "--", *command], text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=400)
        if result.returncode >= 0 or tool != "perf":
            break
    if not path.exists() or path.stat().st_size == 0:
        skip(f"{tool} record does not work here: {result.stderr.strip()[-200:]}")
    if result.returncode < 0:
        raise AssertionError(f"{tool} record ended with {result.returncode}: {result.stderr}")
    return str(path)


def family(mode, milliseconds=400, *arguments, **keywords):
    return record(*arguments, command=(need_target("family"), mode, str(milliseconds)), **keywords)


def folder():
    return _folder
