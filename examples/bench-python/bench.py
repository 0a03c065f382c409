#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Benchmarks in Python, through ctypes and the binary interface of assay.h.

    cc -O2 -shared -fPIC $(pkg-config --cflags assay) shim.c -o shim.so && assay bench ./bench.py
"""
import ctypes
import itertools
import json
import pathlib
import sys


class Run(ctypes.Structure):  # struct assay_run
    pass


RUN = ctypes.POINTER(Run)
Body = ctypes.CFUNCTYPE(None, RUN)
Text = ctypes.c_char_p
Run._fields_ = [("next", ctypes.CFUNCTYPE(ctypes.c_uint64, RUN)),
                ("pause", Body), ("resume", Body),
                ("report", ctypes.CFUNCTYPE(None, RUN, Text, ctypes.c_double, Text)),
                ("grows", ctypes.CFUNCTYPE(None, RUN, ctypes.c_double, Text)),
                ("fail", ctypes.CFUNCTYPE(None, RUN, Text)), ("skip", ctypes.CFUNCTYPE(None, RUN, Text)),
                ("values", ctypes.POINTER(ctypes.c_int64)),
                ("thread", ctypes.c_uint32), ("thread_count", ctypes.c_uint32)]


class Parameter(ctypes.Structure):
    _fields_ = [("name", Text), ("kind", ctypes.c_int32), ("count", ctypes.c_uint32), ("values", ctypes.c_int64 * 32)]


class Benchmark(ctypes.Structure):
    _fields_ = [("name", Text), ("file", Text), ("run", Body), ("line", ctypes.c_uint32),
                ("parameter_count", ctypes.c_uint32), ("parameters", Parameter * 4)]


class Registry(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("first", ctypes.c_void_p), ("end", ctypes.c_void_p)]


benchmarks = []


def bench(function):
    """A generator function: what stands before its yield is set-up, and what it yields is timed."""
    def run(pointer):
        call = next(function())
        asked = pointer.contents.next
        for count in iter(lambda: asked(pointer), 0):
            for _ in itertools.repeat(None, count):
                call()
    line = function.__code__.co_firstlineno
    benchmarks.append(Benchmark(function.__name__.encode(), b"bench.py", Body(run), line, 0))
    return function


@bench
def loads():
    text = json.dumps({"numbers": list(range(100))})
    yield lambda: json.loads(text)


@bench
def sorts():
    data = [i * 7919 % 1000 for i in range(1000)]
    yield lambda: sorted(data)


def main():
    count = len(benchmarks)
    pointers = (ctypes.POINTER(Benchmark) * count)(*map(ctypes.pointer, benchmarks))
    start = ctypes.addressof(pointers)
    registry = Registry(1, ctypes.sizeof(Benchmark), start, start + ctypes.sizeof(pointers))
    shim = ctypes.CDLL(str(pathlib.Path(__file__).resolve().with_name("shim.so")))
    argv = (Text * (len(sys.argv) + 1))(*[word.encode() for word in sys.argv], None)
    return shim.serve(ctypes.byref(registry), len(sys.argv), argv)


sys.exit(main())
