# SPDX-License-Identifier: MIT
"""The emulated machine as the tests use it: booted at the first command, shared by all tests of
a file, booted again when one of them broke it."""
import atexit
import json
import os

import kernel
import machine
from harness import skip

_booted = []


def guest():
    """The running machine.  Skips the test where there can be none."""
    if _booted and _booted[-1].alive():
        return _booted[-1]
    missing = os.environ.get("ASSAY_VM_MISSING") or machine.missing()
    if missing:
        skip(missing)
    close()
    _booted.append(machine.Machine(kernel.find()))
    return _booted[-1]


@atexit.register
def close():
    while _booted:
        _booted.pop().close()


def run(*argv, check=0, **options):
    """Runs a command in the machine; check is the expected exit code, None for any."""
    result = guest().run(*argv, **options)
    if check is not None and result.returncode != check:
        raise AssertionError(f"{' '.join(result.argv)}: exit {result.returncode}, not {check}\n"
                             f"{result.text()}\n{result.error_text()}")
    return result


def run_json(*argv, **options):
    """Runs a command that writes JSON to its standard output."""
    return json.loads(run(*argv, **options).text())


def stat_json(*arguments, before=(), uid=0):
    """What assay stat --json says with these arguments; before stands in front of assay."""
    path = f"/tmp/stat-{uid}.json"
    run(*before, "assay", "stat", "--json", "-o", path, *arguments, uid=uid)
    return json.loads(guest().get(path))
