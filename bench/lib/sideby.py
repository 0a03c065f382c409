# SPDX-License-Identifier: MIT
"""Side-by-side runs: every candidate once in each round, in a shuffled order, so that drift and
neighbours hit all alike.  Ratios are taken within a round; their median is printed."""
import random
import statistics
import subprocess
import time


def wall(command, **kwargs):
    """Seconds that a command takes; it must succeed."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.DEVNULL)
    kwargs.setdefault("stderr", subprocess.DEVNULL)
    started = time.perf_counter()
    subprocess.run(command, check=True, **kwargs)
    return time.perf_counter() - started


def rounds(candidates, count, seed=1, measure=wall):
    """candidates: {name: command}.  Returns {name: [value of each round]}."""
    order = random.Random(seed)
    values = {name: [] for name in candidates}
    for _ in range(count):
        names = list(candidates)
        order.shuffle(names)
        for name in names:
            values[name].append(measure(candidates[name]))
    return values


def ratio(values, name, base):
    """Median over the rounds of name's value over base's."""
    return statistics.median(a / b for a, b in zip(values[name], values[base]))


def table(heads, rows):
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))))
