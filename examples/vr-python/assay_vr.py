# SPDX-License-Identifier: MIT
"""The replicated store from Python, by ctypes.  include/assay_vr.h says what each function does.

    python3 assay_vr.py cluster.conf

LIBRARY in the environment names the library; by default it is found where the system has it."""
import ctypes
import os
import sys

NOT_FOUND, CONFLICT = 1, 2
DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
PAIR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t,
                        ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
library = ctypes.CDLL(os.environ.get("LIBRARY", "libassay-vr.so.0"))
library.assay_vr_error.restype = library.assay_vr_result_name.restype = ctypes.c_char_p
TEXT, SIZE, STORE = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
for name, arguments in {"open": [ctypes.POINTER(STORE), TEXT], "close": [STORE],
                        "set_timeout": [STORE, ctypes.c_uint],
                        "get": [STORE, TEXT, SIZE, TEXT, ctypes.POINTER(SIZE)],
                        "put": [STORE, TEXT, SIZE, TEXT, SIZE], "delete": [STORE, TEXT, SIZE],
                        "cas": [STORE, TEXT, SIZE, TEXT, SIZE, TEXT, SIZE, TEXT, ctypes.POINTER(SIZE)],
                        "scan": [STORE, TEXT, SIZE, PAIR, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint)],
                        "begin_put": [STORE, TEXT, SIZE, TEXT, SIZE, DONE, ctypes.c_void_p],
                        "begin_get": [STORE, TEXT, SIZE, DONE, ctypes.c_void_p],
                        "turn": [STORE, ctypes.c_int], "fd": [STORE], "wait": [STORE],
                        "pending": [STORE]}.items():
    getattr(library, f"assay_vr_{name}").argtypes = arguments


class Failed(Exception):
    """result: a negative errno, or a result of the store that is not the one that was hoped for."""

    def __init__(self, result):
        words = library.assay_vr_error() if result < 0 else library.assay_vr_result_name(result)
        super().__init__(words.decode())
        self.result = result


def check(result, *allowed):
    if result and result not in allowed:
        raise Failed(result)
    return result


def behind(key):
    """The least key behind this one; empty: there is none."""
    if len(key) < 64:
        return key + b"\0"
    key = key.rstrip(b"\xff")
    return key and key[:-1] + bytes([key[-1] + 1])


class Store:
    def __init__(self, config, timeout=5):
        self.store = STORE()
        check(library.assay_vr_open(ctypes.byref(self.store), os.fsencode(config)))
        library.assay_vr_set_timeout(self.store, int(timeout * 1000))
        self.callbacks = {}  # of operations that are under way: ctypes keeps no reference

    def close(self):
        library.assay_vr_close(self.store)
        self.store = STORE()

    def get(self, key):
        """None: there is no such key."""
        value, size = ctypes.create_string_buffer(512), SIZE(512)
        result = check(library.assay_vr_get(self.store, key, len(key), value, ctypes.byref(size)), NOT_FOUND)
        return None if result else value.raw[:size.value]

    def put(self, key, value):
        check(library.assay_vr_put(self.store, key, len(key), value, len(value)))

    def cas(self, key, expect, value):
        """Whether the key had the value expected (b"": was not there) and has the new one now."""
        return check(library.assay_vr_cas(self.store, key, len(key), expect, len(expect), value, len(value),
                                          None, None), NOT_FOUND, CONFLICT) == 0

    def delete(self, key):
        return check(library.assay_vr_delete(self.store, key, len(key)), NOT_FOUND) == 0

    def scan(self, start=b""):
        """All pairs from a key on, in order."""
        while True:
            pairs, count = [], ctypes.c_uint()
            take = PAIR(lambda _, key, key_size, value, size: pairs.append((key[:key_size], value[:size])))
            check(library.assay_vr_scan(self.store, start, len(start), take, None, ctypes.byref(count)))
            if not count.value:
                return
            yield from pairs
            start = behind(pairs[-1][0])
            if not start:
                return

    def begin_put(self, key, value, done):
        """done(result) is called by turn(); False: too many are under way."""
        number = object()

        def ended(_context, result, _value, _size):
            del self.callbacks[number]
            done(result)
        self.callbacks[number] = DONE(ended)
        result = library.assay_vr_begin_put(self.store, key, len(key), value, len(value),
                                            self.callbacks[number], None)
        if result:
            del self.callbacks[number]
            if result != -11:  # EAGAIN
                raise Failed(result)
        return result == 0

    def turn(self, milliseconds=-1):
        return library.assay_vr_turn(self.store, milliseconds)

    def pending(self):
        return library.assay_vr_pending(self.store)


def main():
    store = Store(sys.argv[1], timeout=60)
    store.put(b"colour", b"green")
    print("colour", store.get(b"colour").decode(), "changed", store.cas(b"colour", b"green", b"blue"),
          store.cas(b"colour", b"green", b"red"), "now", store.get(b"colour").decode())
    ended = []
    for number in range(100):
        while not store.begin_put(b"python-%03d" % number, b"x", ended.append):
            store.turn()
    while store.pending():
        store.turn()
    print(len(ended), "ended,", sum(result != 0 for result in ended), "failed,",
          sum(1 for key, _ in store.scan(b"python-") if key.startswith(b"python-")), "found")
    store.close()


if __name__ == "__main__":
    main()
