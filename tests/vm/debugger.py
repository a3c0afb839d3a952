# SPDX-License-Identifier: GPL-3.0-or-later
"""QEMU's debugger port (GDB's remote serial protocol): puts code where the guest's kernel goes on.

Machine(extra=words(path)) opens the port at PATH.
"""
import re
import socket
import struct
import time

from packages import BenchError

HANG = "faf4ebfd"  # cli; hlt, again and again
LOOP = "fbf4ebfd"  # sti; the same: timers still run
# Of the answer to "g": 16 general registers, then rip, eflags, cs.
RIP, CS = 128, 140


def words(path):
    """QEMU's words for a port at PATH."""
    return ["-gdb", f"unix:{path},server=on,wait=off"]


class _Port:
    """The machine stands still while it is open, but in run_for()."""

    def __init__(self, path):
        self.rest = b""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))

    def answer(self, stopped=False):
        """The next packet that tells of a stop, or the next one that does not."""
        while True:
            packet = re.search(rb"\$([^#]*)#[0-9a-f]{2}", self.rest)
            if not packet:
                data = self.socket.recv(65536)
                if not data:
                    raise BenchError("QEMU has closed its debugger port")
                self.rest += data
                continue
            self.rest = self.rest[packet.end():]
            self.socket.sendall(b"+")
            if packet[1].startswith((b"T", b"S")) == stopped:
                return packet[1].decode()

    def send(self, text):
        self.socket.sendall(f"${text}#{sum(text.encode()) % 256:02x}".encode())

    def ask(self, text):
        self.send(text)
        return self.answer()

    def run_for(self, seconds):
        self.send("c")
        time.sleep(seconds)
        self.socket.sendall(b"\x03")
        self.answer(stopped=True)


def _in_kernel(port):
    """Lets the machine go on until its one CPU is in the kernel; its registers then."""
    for _ in range(200):
        registers = bytes.fromhex(port.ask("g"))
        if registers[CS] & 3 == 0:
            return registers
        # Where a program runs, its end would be all that follows.
        port.run_for(0.05)
    raise BenchError("the guest's CPU was never seen in its kernel")


def _change(path, command):
    """COMMAND: function of the registers in the kernel, to the debugger's port; then it goes on."""
    port = _Port(path)
    try:
        if port.ask(command(_in_kernel(port))) != "OK" or port.ask("D") != "OK":
            raise BenchError("the guest's kernel could not be changed through the debugger port")
    finally:
        port.socket.close()


def run_in_kernel(path, code):
    """Lets the machine's one CPU go on with CODE (hex), in the kernel."""
    _change(path, lambda registers: f"M{struct.unpack_from('<Q', registers, RIP)[0]:x},"
                                    f"{len(code) // 2:x}:{code}")


def oops(path):
    """Lets it go on at address 0. Nothing is overwritten that the oops itself may come through."""
    _change(path, lambda registers: "G" + (registers[:RIP] + bytes(8) + registers[RIP + 8:]).hex())
