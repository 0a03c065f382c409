# SPDX-License-Identifier: MIT
"""Reports in a real browser: makes them and lets web/tests/*.mjs look at them with chromium."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness
import pages


def missing():
    if os.environ.get("ASSAY_BROWSER_MISSING"):
        return os.environ["ASSAY_BROWSER_MISSING"]
    if not shutil.which(os.environ.get("CHROMIUM", "chromium")):
        return "chromium is not installed (./dev test installs it)"
    if not shutil.which("node"):
        return "node is not installed (./dev test installs it)"
    if not (harness.ROOT / "web/node_modules/playwright-core").exists():
        return "playwright-core is not installed (./dev test does it with npm ci)"
    if harness.SANITIZED:
        return "the pages are the same in every build; the others look at them"
    return None


reason = missing()
if reason:
    print(f"ok 1 browser # SKIP {reason}\n1..1")
    sys.exit(0)
with tempfile.TemporaryDirectory(prefix="assay-browser-") as folder:
    os.chdir(folder)
    try:
        pages.all_pages()
    except harness.Skip as why:
        print(f"ok 1 browser # SKIP {why}\n1..1")
        sys.exit(0)
    server = subprocess.Popen([harness.ASSAY, "serve"], stdout=subprocess.PIPE, text=True)
    environment = dict(os.environ, PAGES=folder, ASSAY=str(harness.ASSAY), SERVER=server.stdout.readline().strip(),
                       PDFTOTEXT=shutil.which("pdftotext") or "",
                       CHROMIUM=shutil.which(os.environ.get("CHROMIUM", "chromium")))
    result = subprocess.run(["node", harness.ROOT / "web/tests/report.mjs"], env=environment,
                            text=True, capture_output=True)
    print(result.stdout, end="")
    for line in result.stderr.splitlines():
        print("#", line)
    server.terminate()
    server.wait()
    os.chdir(pathlib.Path(folder).parent)
sys.exit(result.returncode)
