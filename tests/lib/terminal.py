# SPDX-License-Identifier: MIT
"""A terminal for tests: runs a program on one, types keys, and waits for what it shows."""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

TIMEOUT = 240


class Terminal:
    def __init__(self, arguments, columns=80, lines=24):
        self.output = ""
        # A read may end in the middle of a character.
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.seen = 0
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.environ.pop("COLUMNS", None)
            # The size must stand before the program looks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvp(arguments[0], arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, seconds):
        """Takes in what comes within that time; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.output += self.decoder.decode(data)
        return bool(data)

    def plain(self, start=0):
        """What was written, without the terminal's control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]|[\r\a]", "",
                      self.output[start:])

    def expect(self, text):
        """Waits until the text appears among what was shown since the last keys."""
        end = time.monotonic() + TIMEOUT
        alive = True
        while text not in self.plain(self.seen):
            if not alive or time.monotonic() > end:
                raise AssertionError(f"{text!r} did not appear in:\n{self.plain(self.seen)}")
            alive = self.read(0.2)

    def send(self, keys):
        self.seen = len(self.output)
        os.write(self.fd, keys.encode())
        end = time.monotonic() + 0.4
        while time.monotonic() < end and self.read(0.1):
            pass

    def resize(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def finish(self):
        """Everything until the program ends."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and self.read(1):
            pass
        self.exit_code()
        return self.plain()

    def exit_code(self):
        if self.status is None:
            end = time.monotonic() + TIMEOUT
            while self.read(0.1) and time.monotonic() < end:
                pass
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status
