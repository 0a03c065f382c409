# SPDX-License-Identifier: MIT
"""Kernels that `assay vm fetch` has brought into the cache."""
import dataclasses
import os
import pathlib

# Which of Debian's kernels the tests run under: the newest that the host's sources have, or another
# one that was fetched (linux-image-6.1.0-50-arm64 is the one without the security archive).
DEFAULT_PACKAGE = os.environ.get("ASSAY_TEST_KERNEL") or "linux-image-arm64"


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
