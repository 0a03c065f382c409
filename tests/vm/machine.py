# SPDX-License-Identifier: MIT
"""An emulated arm64 machine with working hardware counters, to run static programs in: what
`assay vm run` does, for tests that send many commands to one machine.

    with Machine(kernel.find(), {"/bin/loop": "build-arm64/tests/vm/vm-loop"}) as machine:
        result = machine.run("loop", "spin", "1000")

QEMU runs with -icount: every instruction takes the same virtual time, and the emulated PMU counts
instructions and virtual cycles exactly.  No network and no disk: programs come in with the
initramfs, requests and results go over a virtio port in the frames that src/vm/frames.h describes; the guest's side is assay itself.
"""
import dataclasses
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import kernel
from initramfs import Initramfs

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-arm64"
QEMU = "qemu-system-aarch64"
BOOT_TIMEOUT_S = 360
PROGRAMS = {
    "/init": BUILD / "src/cmd/assay",
    "/bin/assay": BUILD / "src/cmd/assay",
    "/bin/loop": BUILD / "tests/vm/vm-loop",
    "/bin/probe": BUILD / "tests/vm/vm-probe",
}


class MachineError(Exception):
    """The machine itself failed (a command that fails is a result)."""


@dataclasses.dataclass
class Result:
    argv: tuple
    returncode: int  # negative: the signal that ended it
    stdout: bytes
    stderr: bytes

    def text(self):
        return self.stdout.decode(errors="replace")

    def error_text(self):
        return self.stderr.decode(errors="replace")


def missing():
    """Why no machine can be started here; None when nothing is missing."""
    if not shutil.which(QEMU):
        return f"{QEMU} is not installed (Debian: qemu-system-arm)"
    for path in PROGRAMS.values():
        if not path.exists():
            return f"{path.relative_to(ROOT)} is not built; ./dev test builds it"
    if not kernel.find():
        return f"no arm64 kernel under {kernel.cache_folder()}; ./dev test fetches it"
    return None


class Machine:
    def __init__(self, booted, programs=None, memory_mb=512, cpu="cortex-a57", icount_shift=1):
        """Boots; programs maps paths in the machine to files here."""
        self.scratch = tempfile.TemporaryDirectory(prefix="assay-vm-")
        folder = pathlib.Path(self.scratch.name)
        self.console = folder / "console"
        (folder / "initramfs").write_bytes(initramfs(booted, programs or PROGRAMS))
        self.port, theirs = socket.socketpair()
        self.received = b""
        command = [
            QEMU, "-M", "virt", "-cpu", cpu, "-icount", f"shift={icount_shift}", "-smp", "1",
            "-m", str(memory_mb), "-nodefaults", "-display", "none", "-monitor", "none",
            "-no-reboot", "-serial", f"file:{self.console}",
            "-kernel", str(booted.image), "-initrd", str(folder / "initramfs"),
            "-append", "console=ttyAMA0 loglevel=4 panic=-1",
            "-device", "virtio-serial-device",
            "-chardev", f"socket,id=port,fd={theirs.fileno()}",
            "-device", "virtserialport,chardev=port,name=assay",
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        pass_fds=[theirs.fileno()])
        theirs.close()
        try:
            kind, release = self.frame(time.monotonic() + BOOT_TIMEOUT_S)
            if kind != "ready":
                self.fail(f"greeted with {kind!r}")
            self.release = release.decode().split("\n")[0]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def run(self, *argv, uid=0, timeout_s=240):
        """Runs a command in the machine.  The timeout is of the host's clock and ends the
        machine, not just the command."""
        argv = tuple(map(str, argv))
        payload = b"".join(word.encode() + b"\0" for word in argv)
        return self.request("run", payload, str(uid), argv, timeout_s)

    def put(self, path, content, mode=0o644):
        payload = path.encode() + b"\0" + content
        self.checked(self.request("put", payload, f"0{mode:o}", ("put", path)))

    def get(self, path):
        return self.checked(self.request("get", path.encode(), "", ("get", path))).stdout

    def checked(self, result):
        if result.returncode != 0:
            raise MachineError(result.error_text().strip())
        return result

    def alive(self):
        return self.process.poll() is None

    def request(self, kind, payload, word, argv, timeout_s=240):
        deadline = time.monotonic() + timeout_s
        try:
            self.port.settimeout(timeout_s)
            self.port.sendall(f"{kind} {len(payload)} {word}\n".encode() + payload)
        except OSError as error:
            self.fail(str(error))
        streams = {"out": bytearray(), "err": bytearray()}
        while True:
            kind, content = self.frame(deadline)
            if kind in streams:
                streams[kind] += content
            elif kind == "exit":
                how, number = content.decode().split()
                code = int(number) if how == "exit" else -int(number)
                return Result(argv, code, bytes(streams["out"]), bytes(streams["err"]))
            else:
                self.fail(f"answered with {kind!r}")

    def frame(self, deadline):
        while b"\n" not in self.received:
            self.receive(deadline)
        header, _, self.received = self.received.partition(b"\n")
        kind, length = header.decode().split()
        while len(self.received) < int(length):
            self.receive(deadline)
        content, self.received = self.received[:int(length)], self.received[int(length):]
        return kind, content

    def receive(self, deadline):
        self.port.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            more = self.port.recv(1 << 16)
        except TimeoutError:
            self.fail("did not answer in time")
        except OSError as error:
            self.fail(str(error))
        if not more:
            self.fail("exited on its own")
        self.received += more

    def fail(self, what):
        self.process.kill()
        self.process.wait()
        errors = self.process.stderr.read().decode(errors="replace")
        console = self.console.read_text(errors="replace") if self.console.exists() else ""
        last = "\n".join([*errors.splitlines(), *console.splitlines()][-20:])
        raise MachineError(f"the emulated machine {what}; its last output:\n{last}")

    def close(self):
        """Switches the machine off and waits for its end."""
        if self.alive():
            try:
                self.port.sendall(b"off 0\n")
                self.process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.port.close()
        self.scratch.cleanup()


def initramfs(booted, programs):
    archive = Initramfs()
    for path in ("/proc", "/sys", "/dev", "/tmp", "/etc"):
        archive.folder(path)
    archive.file("/etc/passwd", b"root:x:0:0::/:\nuser:x:1000:1000::/tmp:\n", 0o644)
    for path in booted.modules:
        archive.file(f"/modules/{path.name}", path.read_bytes(), 0o644)
    order = "".join(f"/modules/{path.name}\n" for path in booted.modules)
    archive.file("/modules/order", order.encode(), 0o644)
    for path, source in programs.items():
        archive.file(path, pathlib.Path(source).read_bytes())
    return archive.finish()
