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
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


class Network:
    """Host i has the address 10.77.0.(i + 1) on its device "net"; names[-1] is the hub, 10.77.0.100,
    whose devices "to0", "to1" … are the other ends."""

    def __init__(self, count):
        self.names = [f"vr{os.getpid()}-{i}" for i in range(count + 1)]
        self.hub = self.names[-1]

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)

    def __enter__(self):
        try:
            for name in self.names:
                self.ip("netns", "add", name)
                self.ip("-n", name, "link", "set", "lo", "up")
            self.ip("-n", self.hub, "link", "add", "hub", "type", "bridge")
            self.ip("-n", self.hub, "addr", "add", "10.77.0.100/24", "dev", "hub")
            self.ip("-n", self.hub, "link", "set", "hub", "up")
            for i, name in enumerate(self.names[:-1]):
                self.ip("-n", name, "link", "add", "net", "type", "veth", "peer", "name",
                        f"to{i}", "netns", self.hub)
                self.ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "net")
                self.ip("-n", name, "link", "set", "net", "up")
                self.ip("-n", self.hub, "link", "set", f"to{i}", "master", "hub", "up")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise OSError("no network of namespaces: " +
                          error.stderr.decode(errors="replace").strip()) from error
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self, index, state):
        self.ip("-n", self.hub, "link", "set", f"to{index}", state)

    def command(self, index, *words):
        """The words as a command in the namespace."""
        return ["ip", "netns", "exec", self.names[index], *map(str, words)]

    def output(self, index, *words):
        return subprocess.run(self.command(index, *words), check=True, capture_output=True, text=True,
                              timeout=30).stdout

    def datagrams(self, index):
        """What has happened in the namespace: (datagrams that its sockets sent, that they received, those
        with a wrong checksum, packets that its device sent)."""
        lines = [line.split() for line in self.output(index, "cat", "/proc/net/snmp").splitlines()
                 if line.startswith("Udp:")]
        udp = dict(zip(lines[0][1:], map(int, lines[1][1:])))
        device = self.output(index, "cat", "/sys/class/net/net/statistics/tx_packets")
        return udp["OutDatagrams"], udp["InDatagrams"], udp["InCsumErrors"], int(device)

    def sum_in_software(self, index, device):
        """Checksums are finished before a packet leaves by the device, and so looked at by who receives it."""
        self.output(index, sys.executable, "-c", CHECKSUMS_OFF, device)
