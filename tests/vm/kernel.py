# SPDX-License-Identifier: MIT
"""Kernels that `assay vm fetch` has brought into the cache."""
import dataclasses
import os
import pathlib

DEFAULT_PACKAGE = "linux-image-arm64"


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
