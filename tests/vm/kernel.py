# SPDX-License-Identifier: MIT
"""Debian kernels for emulated machines, fetched through a private apt and kept in a cache.

apt runs with a state, cache and architecture of its own in a folder that is removed afterwards,
but with the host's sources, keys and download settings (a proxy, say): the host's package lists
and dpkg architectures are neither read nor changed, and no root is needed.  apt checks signatures
and sums.  Only what an emulated machine boots from is kept of the package, below
${XDG_CACHE_HOME:-~/.cache}/assay/vm: the kernel, its configuration and the virtio modules.

    kernels/linux-image-6.1.0-54-arm64_6.1.190-1/{vmlinuz,config,modules/order,modules/*.ko}
    kernels/linux-image-arm64 -> linux-image-6.1.0-54-arm64_6.1.190-1
"""
import contextlib
import dataclasses
import fcntl
import gzip
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

DEFAULT_PACKAGE = "linux-image-arm64"
# What the machine of machine.py needs that Debian builds as modules.
MODULES = ["virtio_mmio", "virtio_console"]
ATTEMPTS = 3


class KernelError(Exception):
    """No kernel is to be had, and why."""


@dataclasses.dataclass
class Kernel:
    name: str  # package and version
    image: pathlib.Path
    modules: list  # paths, each after what it depends on


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "assay" / "vm"


def find(package=DEFAULT_PACKAGE):
    """The kernel of a package that was fetched before, or None."""
    folder = cache_folder() / "kernels" / package
    try:
        folder = folder.resolve(strict=True)
        order = (folder / "modules" / "order").read_text().split()
    except OSError:
        return None
    return Kernel(folder.name, folder / "vmlinuz", [folder / "modules" / name for name in order])


def fetch(package=DEFAULT_PACKAGE, architecture="arm64", refresh=False):
    """The kernel of a package, from the cache or else from the host's Debian mirror."""
    try:
        with locked(cache_folder()):
            kernel = None if refresh else find(package)
            if not kernel:
                fetch_into(cache_folder() / "kernels", package, architecture)
                kernel = find(package)
    except OSError as error:
        raise KernelError(f"keeping the kernel: {error}") from error
    return kernel


def fetch_into(folder, package, architecture):
    folder.mkdir(exist_ok=True)
    for tool in ("apt-config", "apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(tool):
            raise KernelError(f"{tool} is not here, and the kernel is one of Debian's packages")
    for left_over in folder.glob("fetching-*"):
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        deb = retried(lambda: download(package, architecture, scratch))
        say(f"unpacking {deb.name}")
        content = scratch / "content"
        unpack(deb, content)
        # The name appears only with everything behind it.
        final = folder / deb.name.rpartition("_")[0].replace("%3a", ":")
        if final.exists():
            shutil.rmtree(final)
        content.rename(final)
        if final.name != package:
            link = scratch / "link"
            link.symlink_to(final.name)
            link.rename(folder / package)


def download(package, architecture, folder):
    """Downloads the package, or the one that it stands for, and returns the file."""
    apt = Apt(folder / "apt", architecture)
    say(f"fetching the {architecture} package lists")
    update = apt.run("apt-get", "-q", "update", show=True)
    concrete = apt.concrete(package)
    if not concrete:
        words = [line for line in update.splitlines() if line[:2] in ("E:", "W:")]
        raise KernelError(f"no package {package} for {architecture} in the host's apt sources" +
                          "".join("; " + word for word in words[:1]))
    say(f"fetching {concrete}")
    apt.run("apt-get", "-q", "download", concrete, show=True, cwd=folder)
    debs = list(folder.glob("*.deb"))
    if not debs:
        raise KernelError(f"apt-get download {concrete} brought nothing")
    return debs[0]


def retried(action):
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except KernelError as error:
            if attempt == ATTEMPTS:
                raise
            say(f"{error}; trying again")
            time.sleep(3 * attempt)


class Apt:
    """apt with a state of its own and the host's sources."""

    def __init__(self, folder, architecture):
        for name in ("state/lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "state/status").touch()
        own = {
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Sandbox::User": "root",  # no other user can write to the cache folder
            "Acquire::Languages": "none",
            "Acquire::Retries": "1",  # retried() tries again as a whole
            "Acquire::http::Timeout": "30",
            "Acquire::https::Timeout": "30",
            "Dir::Cache": folder / "cache",
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "state/status",
            # The host's own settings would bring its hooks with them.
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
        }
        self.configuration = folder / "apt.conf"
        self.configuration.write_text(self.host_settings() +
                                      "".join(f'{key} "{own[key]}";\n' for key in own))

    def host_settings(self):
        """How the host downloads: proxies, certificates, but not which indexes."""
        dump = subprocess.run(["apt-config", "dump"], text=True, capture_output=True).stdout
        return "".join(line + "\n" for line in dump.splitlines()
                       if line.startswith("Acquire::") and
                       not line.startswith(("Acquire::IndexTargets", "Acquire::Languages")))

    def run(self, *command, show=False, cwd=None):
        """Runs an apt tool and returns its output, whatever its exit code: apt fails as a whole
        when one foreign source of many fails, and the caller checks what it came for."""
        environment = dict(os.environ, APT_CONFIG=str(self.configuration), LC_ALL="C.UTF-8")
        process = subprocess.Popen(command, env=environment, text=True, errors="replace", cwd=cwd,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        output = []
        for line in process.stdout:
            output.append(line)
            if show:
                print("    " + line, end="", file=sys.stderr, flush=True)
        process.wait()
        return "".join(output)

    def concrete(self, package):
        """linux-image-arm64 → linux-image-6.1.0-54-arm64=6.1.190-1; None when unknown."""
        record = self.run("apt-cache", "show", "--no-all-versions", package)
        depends = re.search(r"^Depends:.*?(linux-image-[0-9]\S*) \(= ([^)]+)\)", record,
                            re.MULTILINE)
        if depends:
            return f"{depends[1]}={depends[2]}"
        version = re.search(r"^Version: (\S+)", record, re.MULTILINE)
        return f"{package}={version[1]}" if version else None


def unpack(deb, folder):
    """Takes the kernel and the modules out of the package without unpacking the rest."""
    (folder / "modules").mkdir(parents=True)
    modules = {}  # name → bytes, of every virtio module: which are needed is known at the end
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
        for member in tar:
            path = pathlib.PurePosixPath(member.name)
            if not member.isfile():
                continue
            for name in ("vmlinuz", "config"):
                if path.name.startswith(name + "-"):
                    (folder / name).write_bytes(tar.extractfile(member).read())
            if ".ko" in path.suffixes[-2:] and path.name.startswith("virtio"):
                modules[path.name.partition(".")[0].replace("-", "_")] = expanded(
                    tar.extractfile(member).read())
    process.stdout.close()
    if process.wait() != 0 or not (folder / "vmlinuz").exists():
        raise KernelError(f"{deb.name} holds no kernel")
    order = []
    for name in MODULES:
        add_module(name, modules, order)
    for name in order:
        (folder / "modules" / f"{name}.ko").write_bytes(modules[name])
    (folder / "modules" / "order").write_text("".join(f"{name}.ko\n" for name in order))


def add_module(name, modules, order):
    """Appends a module after what it depends on.  What is no module is built in."""
    if name in order or name not in modules:
        return
    depends = re.search(rb"\0depends=([^\0]*)\0", modules[name])
    for other in filter(None, depends[1].decode().split(",") if depends else []):
        add_module(other.replace("-", "_"), modules, order)
    order.append(name)


def expanded(data):
    if data.startswith(b"\xfd7zXZ"):
        return lzma.decompress(data)
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@contextlib.contextmanager
def locked(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text):
    print(f"==> vm: {text}", file=sys.stderr, flush=True)
