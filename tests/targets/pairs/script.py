# SPDX-License-Identifier: MIT
"""A pair of scripts: python3 script.py CASE base|new [x]; see pair.c."""
import re
import sys
import time

case, new = sys.argv[1], sys.argv[2] == "new"


def parse():
    return sum(len(str(i)) for i in range(60000))


def search(times):
    text = "a line with words and 12345 numbers " * 400
    return sum(len(re.findall(r"\d+", text)) for _ in range(times))


def pause():
    time.sleep(0.05 if new else 0.005)


parse()
start = time.thread_time() if case != "sleeps" else time.monotonic()
if case == "searches":
    search(300 if new else 100)
elif case == "sleeps":
    pause()
end = time.thread_time() if case != "sleeps" else time.monotonic()
if len(sys.argv) > 3:
    print((end - start) * 1e3)
