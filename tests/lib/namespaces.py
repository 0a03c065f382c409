# SPDX-License-Identifier: MIT
"""A network in one machine: a namespace for each host, joined by a bridge in one more."""
import os
import shutil
import subprocess
import sys

# ETHTOOL_STXCSUM by SIOCETHTOOL: not every machine has the program ethtool.
CHECKSUMS_OFF = """
import array, fcntl, socket, struct, sys
value = array.array("B", struct.pack("II", 0x17, 0))
request = struct.pack("16sQQ", sys.argv[1].encode(), value.buffer_info()[0], 0)
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, request)
"""


def possible():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"vr-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    entered = made and subprocess.run(inside(name, "true"), capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return entered


def inside(name, *words):
    """The words as a command in the namespace.  "ip netns exec" and "ip -n" would also make a
    namespace of mounts, which is refused in a chroot whose root is no mount point."""
    return ["nsenter", f"--net=/var/run/netns/{name}", "--", *map(str, words)]


def ip(*words):
    """ip with these words, where "-n NAME" in front means inside that namespace."""
    command = inside(words[1], "ip", *words[2:]) if words[0] == "-n" else ["ip", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)


class Network:
    """Host i has the address 10.77.0.(i + 1) on its device "net"; names[-1] is the hub, 10.77.0.100,
    whose devices "to0", "to1" … are the other ends."""

    def __init__(self, count):
        self.names = [f"vr{os.getpid()}-{i}" for i in range(count + 1)]
        self.hub = self.names[-1]

    def __enter__(self):
        try:
            for name in self.names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self.hub, "link", "add", "hub", "type", "bridge")
            ip("-n", self.hub, "addr", "add", "10.77.0.100/24", "dev", "hub")
            ip("-n", self.hub, "link", "set", "hub", "up")
            for i, name in enumerate(self.names[:-1]):
                ip("-n", name, "link", "add", "net", "type", "veth", "peer", "name",
                        f"to{i}", "netns", self.hub)
                ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "net")
                ip("-n", name, "link", "set", "net", "up")
                ip("-n", self.hub, "link", "set", f"to{i}", "master", "hub", "up")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise OSError("no network of namespaces: " +
                          error.stderr.strip()) from error
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self, index, state):
        ip("-n", self.hub, "link", "set", f"to{index}", state)

    def command(self, index, *words):
        """The words as a command in the namespace."""
        return inside(self.names[index], *words)

    def output(self, index, *words):
        return subprocess.run(self.command(index, *words), check=True, capture_output=True, text=True,
                              timeout=240).stdout

    def datagrams(self, index):
        """What has happened in the namespace: (datagrams that its sockets sent, that they received, those
        with a wrong checksum, packets that its device sent)."""
        lines = [line.split() for line in self.output(index, "cat", "/proc/net/snmp").splitlines()
                 if line.startswith("Udp:")]
        udp = dict(zip(lines[0][1:], map(int, lines[1][1:])))
        devices = dict(line.split(":", 1) for line in
                       self.output(index, "cat", "/proc/net/dev").splitlines()[2:])
        sent = {name.strip(): int(values.split()[9]) for name, values in devices.items()}
        return udp["OutDatagrams"], udp["InDatagrams"], udp["InCsumErrors"], sent["net"]

    def sum_in_software(self, index, device):
        """Checksums are finished before a packet leaves by the device, and so looked at by who receives it."""
        self.output(index, sys.executable, "-c", CHECKSUMS_OFF, device)
