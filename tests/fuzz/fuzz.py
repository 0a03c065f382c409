# SPDX-License-Identifier: MIT
"""fuzz.py FUZZER CORPUS: runs one fuzzer over its corpus and on for FUZZ_SECONDS (default 5).

New inputs that reach new code are kept beside the fuzzer, so that a longer run goes on from them."""
import os
import pathlib
import subprocess
import sys

fuzzer, corpus = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
seconds = os.environ.get("FUZZ_SECONDS", "5")
found = fuzzer.parent / f"{fuzzer.name}.corpus"
crashes = fuzzer.parent / f"{fuzzer.name}.crashes"
for folder in (found, crashes):
    folder.mkdir(exist_ok=True)
result = subprocess.run([fuzzer, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
                         "-max_len=65536", "-print_final_stats=1", f"-artifact_prefix={crashes}/",
                         found, corpus], text=True, errors="replace", capture_output=True)
if result.returncode:
    print("\n".join("# " + line for line in result.stderr.splitlines()[-60:]))
for line in result.stderr.splitlines():
    if line.startswith("stat::number_of_executed_units"):
        print("#", fuzzer.name, line)
print("not ok" if result.returncode else "ok", 1, fuzzer.name)
print("1..1")
sys.exit(1 if result.returncode else 0)
