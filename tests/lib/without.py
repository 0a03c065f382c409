#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds assay without each of its optional libraries, and without all of them, and asks each build for
what it cannot do: it must say so in a sentence that names the library, and do the rest.

    without.py [LIBRARY…]

The names are the options of meson_options.txt, or "all".  The build directory is build-without.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-without"
ASSAY = BUILD / "src/cmd/assay"
MOVE = BUILD / "workloads/move/assay-move"
VR = BUILD / "workloads/vr/assay-vr"

# By library: the commands that miss it, and the words of their answer; {dir} has a recording, a spec and
# results.  Where the work is done all the same, only less well, the words are "".
ASKED = {
    "libelf": [],
    "libdw": [],
    "libzstd": [([ASSAY, "record", "-z", "-o", "{dir}/z.data", "--", "true"], "built without zstd")],
    "zlib": [([ASSAY, "export", "--to", "pprof", "-i", "{dir}/perf.data", "-o", "{dir}/x.pb"], ""),
             ([ASSAY, "html", "{dir}/perf.data", "-o", "{dir}/profile.html"], "")],
    "capstone": [([ASSAY, "annotate", "main", "{dir}/perf.data"], "built without capstone")],
    "ncurses": [(["script", "-qec", f"{ASSAY} report -i {{dir}}/perf.data", "/dev/null"],
                 "built without ncurses")],
    "debuginfod": [(["env", "DEBUGINFOD_URLS=http://127.0.0.1:1/", "HOME={dir}", str(ASSAY), "report", "--stdio",
                     "-i", "{dir}/stripped.data"], "built without libdebuginfod")],
    "libiberty": [([ASSAY, "report", "--stdio", "-i", "{dir}/perf.data"], "")],
    "sqlite": [([ASSAY, "list"], "built without SQLite")],
    "libpq": [([ASSAY, "list", "--db", "postgresql://127.0.0.1:1/x"], "built without libpq")],
    "yaml": [([ASSAY, "run", "{dir}/spec.yaml"], "built without libyaml")],
    "jansson": [([ASSAY, "html", "{dir}/ab.json", "-o", "{dir}/ab.html"], "built without jansson"),
                ([ASSAY, "import", "--dry-run", "--format", "hyperfine", "{dir}/hyperfine.json"], "built without jansson")],
    "liburing": [([MOVE, "--variant", "uring-send", "--seconds", "0.1"], "built without liburing"),
                 ([VR, "bench", "--in-memory", "--transport", "uring"], "built without liburing")],
    "libbpf": [([MOVE, "--prove=bpf", "--variant", "send", "--seconds", "0.1"], "built without libbpf")],
    "microhttpd": [([ASSAY, "serve"], "built without libmicrohttpd")],
}
# What every build does.
ALWAYS = [
    ([ASSAY, "doctor", "--seconds", "1"], "software events"),
    ([ASSAY, "stat", "--", "true"], "task-clock"),
    ([ASSAY, "ab", "--rounds", "5", "sleep 0.01", "sleep 0.02"], "the reference"),
    ([ASSAY, "report", "--stdio", "-i", "{dir}/perf.data"], "Samples: "),
    ([MOVE, "--variant", "send", "--seconds", "0.1"], "send"),
]


def options():
    text = (ROOT / "meson_options.txt").read_text()
    return re.findall(r"^option\('(\w+)', type: 'feature'", text, flags=re.M)


def build(left_out):
    words = [f"-D{name}={'disabled' if name in left_out else 'enabled'}" for name in options()]
    setup = ["meson", "setup", BUILD, *words, "-Dtests=false", "-Dwerror=true", "-Doptimization=0",
             "-Dc_args=-Wno-format-truncation"]  # which needs the optimiser to be right
    if (BUILD / "build.ninja").exists():
        setup.insert(2, "--reconfigure")
    run([*setup], cwd=ROOT)
    run(["ninja", "-C", BUILD, "--quiet"])


def run(words, **kwargs):
    result = subprocess.run(list(map(str, words)), text=True, errors="replace", stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, **kwargs)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {result.returncode}\n{result.stdout[-4000:]}")


def ask(words, wanted, folder, missing):
    """Why the answer is not what it should be, or None."""
    words = [str(word).format(dir=folder) for word in words]
    result = subprocess.run(words, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, cwd=folder, timeout=120, check=False)
    line = " ".join(words).replace(str(BUILD) + "/", "")
    if result.returncode < 0 or result.returncode > 128:
        return f"'{line}' crashed ({result.returncode}):\n{result.stdout}"
    if wanted not in result.stdout:
        return f"'{line}' does not say '{wanted}' (exit {result.returncode}):\n{result.stdout[-1500:]}"
    if not missing and result.returncode != 0:
        return f"'{line}' failed ({result.returncode}):\n{result.stdout[-1500:]}"
    return None


def prepare(folder):
    """A recording, a spec and results, made by a build that has everything."""
    assay = ROOT / "build/src/cmd/assay"
    source = pathlib.Path(folder, "spin.c")
    source.write_text("int main(void) { for (volatile long i = 0; i < 200000000; i++) {} return 0; }\n")
    run(["cc", "-g", "-o", f"{folder}/spin", source])
    run(["cc", "-s", "-Wl,--build-id", "-o", f"{folder}/stripped", source])
    for name, output in ("spin", "perf.data"), ("stripped", "stripped.data"):
        run([assay, "record", "-q", "-o", f"{folder}/{output}", "--", f"{folder}/{name}"])
    pathlib.Path(folder, "spec.yaml").write_text("name: s\ncommand: 'true'\nrounds: 1\n")
    run([assay, "ab", "--rounds", "3", f"--json={folder}/ab.json", "--export-hyperfine", f"{folder}/hyperfine.json",
         "true", "true"])


def check(left_out, folder):
    """Builds, asks, and returns what is wrong."""
    build(left_out)
    wrong = [ask(words, wanted, folder, False) for words, wanted in ALWAYS]
    for name in left_out:
        wrong += [ask(words, wanted, folder, wanted != "") for words, wanted in ASKED[name]
                  if shutil.which(str(words[0]))]
    said = subprocess.run([ASSAY, "--version"], text=True, capture_output=True, check=True).stdout
    without = next((line for line in said.splitlines() if line.startswith("without ")), "")
    for name in set(left_out) - {"liburing", "libbpf"}:  # which assay itself does not use
        if name.removeprefix("lib")[:4] not in without:
            wrong.append(f"--version does not say that {name} is left out: {said}")
    return [text for text in wrong if text]


def main():
    names = options()
    if set(names) != set(ASKED):
        sys.exit(f"without.py does not know these libraries: {set(names) ^ set(ASKED)}")
    wanted = sys.argv[1:] or [*names, "all"]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="assay-without-") as folder:
        prepare(folder)
        os.environ["ASSAY_DB"] = f"{folder}/assay.db"
        for name in wanted:
            begun = time.monotonic()
            wrong = check(names if name == "all" else [name], folder)
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok':7}without {name} ({time.monotonic() - begun:.0f} s)", *wrong,
                  sep="\n  " if wrong else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
