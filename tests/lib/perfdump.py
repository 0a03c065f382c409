# SPDX-License-Identifier: MIT
"""perf.data as perf sees it (perf script -D) and as assay's reader sees it (perfdata-dump), both as
lists that can be compared."""
import os
import pathlib
import re
import shutil
import subprocess

from harness import skip

DUMP = pathlib.Path(os.environ.get("BUILD", "build")).resolve() / "tests/tools/perfdata-dump"


def perf(*args, **kwargs):
    """Runs perf; returns what it printed on standard output and standard error."""
    if not shutil.which("perf"):
        skip("perf (linux-perf) is not installed")
    # perf's own counters are no matter here, nor are the names of users' configurations.
    environment = dict(os.environ, LC_ALL="C", HOME="/nonexistent")
    result = subprocess.run(["perf", *map(str, args)], text=True, errors="replace",
                            capture_output=True, env=environment, stdin=subprocess.DEVNULL,
                            timeout=400, **kwargs)
    return result


class Sample:
    """What both programs tell of a sample."""

    def __init__(self, **fields):
        self.__dict__.update({"chain": (), "stack": None, "comm": None, "event": None}, **fields)

    def key(self):
        return (self.time, self.pid, self.tid, self.ip, self.period, self.chain)

    def __repr__(self):
        return repr(self.__dict__)


# cpu (where samples have it), time, offset, size
HEAD = r"^(?:\S+ )?(\d+) \S+ \[0x[0-9a-f]+\]: PERF_RECORD_"
SAMPLE = re.compile(HEAD + r"SAMPLE\(IP, 0x[0-9a-f]+\): (-?\d+)/(-?\d+): 0x([0-9a-f]+) "
                    r"period: (\d+)")
CHAIN = re.compile(r"^\.\.\.\.\. +\d+: ([0-9a-f]+)$")
THREAD = re.compile(r"^ \.\.\. thread: (.*):(-?\d+)$")
STACK = re.compile(r"^\.\.\. ustack: size (\d+)")
MMAP = re.compile(HEAD + r"MMAP2? (-?\d+)/-?\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ "
                  r"(0x[0-9a-f]+|0)[^\]]*\]: \S+ (.*)$")
OTHER = re.compile(HEAD + r"([A-Z0-9_]+)")


class Dump:
    def __init__(self):
        self.samples, self.maps, self.counts = [], [], {}

    def times(self):
        return [sample.time for sample in self.samples]

    def keys(self):
        """Records of the same time may come in any order."""
        return sorted(sample.key() for sample in self.samples)


def perf_dump(path):
    """The records as perf script -D prints them, in its order."""
    # No field that needs symbols: perf 6.1 now and then smashes its stack over build-ids.
    result = perf("script", "-D", "-F", "time", "-i", path)
    if result.returncode < 0:
        skip(f"perf script itself died of signal {-result.returncode}: {result.stderr.strip()}")
    if "failed to process type: 17" in result.stderr:
        # Seen with perf 6.1 when another test's BPF program came or went during the recording.
        skip("perf script gave up at a KSYMBOL record")
    dump, sample = Dump(), None
    for line in result.stdout.splitlines():
        match = SAMPLE.match(line)
        if match:
            time, pid, tid, ip, period = match.groups()
            sample = Sample(time=int(time), pid=int(pid), tid=int(tid), ip=int(ip, 16),
                            period=int(period))
            dump.samples.append(sample)
        elif CHAIN.match(line):
            sample.chain += (int(CHAIN.match(line)[1], 16),)
        elif STACK.match(line):
            sample.stack = int(STACK.match(line)[1])
        elif THREAD.match(line):
            sample.comm = THREAD.match(line)[1]
        elif MMAP.match(line):
            _, pid, start, size, offset, name = MMAP.match(line).groups()
            dump.maps.append((int(pid), int(start, 16), int(size, 16), int(offset, 16), name))
        match = OTHER.match(line)
        if match:
            dump.counts[match[2]] = dump.counts.get(match[2], 0) + 1
    dump.stderr = result.stderr
    return dump


def fields(text):
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def assay_dump(path, *options, stdin=None):
    """The records as assay's reader gives them, in its order, with each thread's name worked out
    from the COMM and FORK records before."""
    result = subprocess.run([DUMP, *options, path], stdin=stdin, text=True, errors="replace",
                            capture_output=True, timeout=400)
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError(result.stderr)
    dump, names = Dump(), {}
    dump.returncode, dump.stderr, dump.waits, dump.events, dump.build_ids = \
        result.returncode, result.stderr, [], [], {}
    for line in result.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "SAMPLE" or kind == "WAIT":
            words = fields(rest)
            chain = words.get("chain", "")
            sample = Sample(time=int(words["time"]), pid=int(words["pid"]), tid=int(words["tid"]),
                            ip=int(words["ip"], 16), period=int(words["period"]),
                            cpu=int(words["cpu"]), event=words["event"],
                            chain=tuple(int(word, 16) for word in chain.split(",") if word),
                            stack=int(words["stack"]) if "stack" in words else None)
            sample.comm = names.get(sample.tid)
            sample.preempted = rest.startswith("preempted")
            (dump.samples if kind == "SAMPLE" else dump.waits).append(sample)
        elif kind in ("MMAP", "MMAP2"):
            words, name = fields(rest.split(" map ")[1]), rest.split(" file=", 1)[1]
            dump.maps.append((int(words["pid"]), int(words["start"], 16), int(words["size"], 16),
                              int(words["pgoff"], 16), name))
        elif kind == "COMM":
            match = re.search(r" comm (-?\d+)/(-?\d+)(?: exec)? (.*)$", rest)
            names[int(match[2])] = match[3]
        elif kind == "FORK":
            match = re.search(r" (-?\d+)/(-?\d+) from (-?\d+)/(-?\d+)$", rest)
            names[int(match[2])] = names.get(int(match[4]))
        elif kind == "losses":
            dump.losses = {name: int(value) for name, value in fields(rest).items()}
        elif kind == "trouble":
            dump.trouble = "" if rest == "-" else rest
        elif kind == "info":
            dump.info = rest
        elif kind == "assay":
            dump.assay = rest
        elif kind == "command":
            dump.command = rest
        elif kind == "event":
            dump.events.append(rest.split()[1])
        elif kind == "build-id":
            _, identity, name = rest.split(" ", 2)
            dump.build_ids[name] = identity
        if "time=" in rest:
            dump.counts[kind] = dump.counts.get(kind, 0) + 1
    return dump
