# SPDX-License-Identifier: MIT
"""The file system that an emulated machine starts from: a cpio archive in the newc format, as
the kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes it."""
import pathlib
import stat


class Initramfs:
    def __init__(self):
        self.archive = bytearray()
        self.paths = set()
        self.inode = 0

    def folder(self, path):
        path = pathlib.PurePosixPath("/") / path
        for parent in [*reversed(path.parents), path]:
            if str(parent) != "/" and str(parent) not in self.paths:
                self.entry(str(parent), stat.S_IFDIR | 0o755, b"")

    def file(self, path, content, mode=0o755):
        self.folder(pathlib.PurePosixPath(path).parent)
        self.entry(path, stat.S_IFREG | mode, content)

    def entry(self, path, mode, content):
        self.paths.add(path)
        self.inode += 1
        self.append(path.lstrip("/"), self.inode, mode, content)

    def append(self, name, inode, mode, content):
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = [inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        self.archive += b"070701" + "".join(f"{field:08x}" for field in fields).encode()
        self.archive += name.encode() + b"\0"
        self.pad()
        self.archive += content
        self.pad()

    def pad(self):
        self.archive += b"\0" * (-len(self.archive) % 4)

    def finish(self):
        self.append("TRAILER!!!", 0, 0, b"")
        return bytes(self.archive)
