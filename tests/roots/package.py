# SPDX-License-Identifier: MIT
"""The packages of this build, in a bare Debian of this machine's release: installed, used as an
ordinary user, upgraded and purged.  './dev roots' tries more, and other releases."""
import os
import subprocess

from harness import *


@test
def the_package_is_installed_used_upgraded_and_purged():
    if os.environ.get("ASSAY_ROOTS_MISSING"):
        skip(os.environ["ASSAY_ROOTS_MISSING"])
    if os.geteuid() != 0:
        skip("debootstrap and chroot need root")
    result = subprocess.run([ROOT / "dev", "roots", "--short"], text=True, errors="replace", check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if result.returncode == 77:
        skip(result.stdout.strip().splitlines()[-1].removeprefix("==> skipped: "))
    equal(result.returncode, 0, result.stdout)
    for line in "smoke: all well", "the package was installed, used, upgraded and purged":
        contains(result.stdout, line)
    print("# " + next(line for line in result.stdout.splitlines() if "to a verdict" in line))


main()
