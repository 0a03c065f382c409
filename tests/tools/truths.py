#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./dev truths [--times N] [--only WORD] [--source WORD] [OPTION OF assay explain …]

Explains each pair of tests/targets/pairs N times (1) and prints what is true, what was told, and
whether that is right, undecided or wrong; at the end how often the interval of the told change held
the true one.  Fails when anything is wrong.
"""
import argparse
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import truths  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    parser.add_argument("--source", default="", help="pairs whose source contains this")
    parser.add_argument("--exactly", default="", help="the pair of this name")
    options, others = parser.parse_known_args()
    assay = os.environ.get("ASSAY", str(ROOT / "build/src/cmd/assay"))
    counts = dict.fromkeys(("right", "undecided", "wrong"), 0)
    sized = covered = 0
    print(f"{'pair':22} {'truth':>9} {'told':>16}  verdict    words")
    for pair in truths.PAIRS:
        if (options.only not in pair.name or options.exactly not in ("", pair.name) or
                options.source not in pair.source):
            continue
        if truths.missing(pair):
            print(f"{pair.name:22} skipped: {truths.missing(pair)}")
            continue
        for _ in range(options.times):
            with tempfile.TemporaryDirectory(prefix="assay-truths-") as folder:
                told, _ = truths.try_pair(pair, assay, folder, *others)
            counts[told.verdict] += 1
            size = ""
            if told.told_ms == told.told_ms:
                size = f"{told.told_ms:+.1f} ±{told.half_ms:.1f}"
                sized += 1
                covered += told.covers()
            print(f"{pair.name:22} {told.truth_ms:+9.1f} {size:>16}  {told.verdict:9}  {told.words}",
                  flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    if sized:
        print(f"the interval held the truth in {covered} of {sized} ({100 * covered / sized:.0f} %)")
    sys.exit(1 if counts["wrong"] else 0)


main()
