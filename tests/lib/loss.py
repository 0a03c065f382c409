#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""loss.py PERCENT DEVICE…: drops so many of the packets that come in by the devices, until it is killed.

Eight instructions of eBPF at XDP: not every kernel has netem, and not every machine iptables."""
import ctypes
import os
import platform
import signal
import socket
import struct
import sys

CALL = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE = 5, 28
PROG_TYPE_XDP, ATTACH_XDP, GENERIC = 6, 37, 2
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    room = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = libc.syscall(CALL[platform.machine()], command, room, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def program(percent):
    def instruction(code, to=0, source=0, offset=0, number=0):
        return struct.pack("<BBhi", code, to | source << 4, offset, number)
    code = b"".join([
        instruction(0x85, number=7),                     # a random number of 32 bits in r0
        instruction(0x94, to=0, number=100),             # modulo 100
        instruction(0xa6, to=0, offset=2, number=percent),  # below: two further on
        instruction(0xb7, to=0, number=2),               # XDP_PASS
        instruction(0x95),
        instruction(0xb7, to=0, number=1),               # XDP_DROP
        instruction(0x95),
    ])
    kept = ctypes.create_string_buffer(code, len(code))
    license = ctypes.create_string_buffer(b"MIT")
    return bpf(PROG_LOAD, struct.pack("<IIQQ", PROG_TYPE_XDP, len(code) // 8, ctypes.addressof(kept),
                                      ctypes.addressof(license)))


def main():
    fd = program(int(sys.argv[1]))
    for device in sys.argv[2:]:
        bpf(LINK_CREATE, struct.pack("<IIII", fd, socket.if_nametoindex(device), ATTACH_XDP, GENERIC))
    print("ready", flush=True)
    signal.pause()


main()
