# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives one QEMU machine: firmware, GRUB, kernel, every time; console, root shell, QMP.

The first serial port is the console: logged, timed and searched by wait(). The second carries the
bench's root shell: run(), put(), get(). A guest's reboot goes through firmware and GRUB again;
kill() is a power cut, start() switches the same disk on again.
"""
import base64
import collections
import functools
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from packages import BenchError, cache_dir, log

QEMU = "qemu-system-x86_64"
KVM_TRIAL_S = 15
OVMF = pathlib.Path("/usr/share/OVMF")
# {firmware: (code, what its variables are at first)}
FIRMWARE = {"bios": None,
            "uefi": ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
            "secure": ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd")}
# Why QEMU ended, where a real machine would start its firmware again.
REBOOT_REASONS = ("guest-reset", "host-qmp-system-reset", "subsystem-reset", "guest-panic")
# Cursor and colour sequences of GRUB and systemd, which wait() shall not see.
# A cursor jump starts a line: that keeps GRUB's menu readable.
_JUMP = re.compile(r"\x1b\[[0-9;]*[Hf]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?=]*[A-Za-z]|[()][A-Za-z0-9]|[=>cM78])|\r|\0")

Line = collections.namedtuple("Line", "at_s text")  # host's monotonic clock at the line's end
Result = collections.namedtuple("Result", "rc out err")


class MachineError(Exception):
    """The guest did not do what was waited for; ends with the last lines of its console."""


def accelerator_options(name):
    if name == "kvm":
        # Nested hosts refuse the arch-capabilities register, and QEMU then aborts.
        return ["-accel", "kvm", "-cpu", "host,-arch-capabilities"]
    # A store into a page that once held translated code walks all of its translations until they
    # are gone. A small buffer forgets them in time: with 512 MB every further build in a boot took
    # 10 to 35 s longer than the first, with 128 MB none does.
    return ["-accel", "tcg,thread=multi,tb-size=128", "-cpu", "max"]


@functools.cache
def accel():
    """"kvm" if an ordinary kernel really boots under it here, else "tcg"; tried once a host."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        log("accelerator: TCG (no usable /dev/kvm)")
        return "tcg"
    version = subprocess.run([QEMU, "--version"], capture_output=True, text=True,
                             check=True).stdout.splitlines()[0]
    cpus = sorted(set(re.findall(r"^model name.*$", pathlib.Path("/proc/cpuinfo").read_text(),
                                 re.M)))
    about = {"kernel": " ".join(os.uname()), "qemu": version, "cpu": cpus}
    kept = cache_dir() / "accel.json"
    try:
        known = json.loads(kept.read_text())
    except (OSError, ValueError):
        known = {}
    if known.get("about") != about:
        known = {"about": about, "accel": "kvm" if _kvm_boots() else "tcg"}
        kept.write_text(json.dumps(known))
    why = "" if known["accel"] == "kvm" else f" (no kernel boots in {KVM_TRIAL_S} s under KVM here)"
    log(f"accelerator: {known['accel'].upper()}{why}")
    return known["accel"]


def _kvm_boots():
    import image
    with tempfile.TemporaryDirectory(prefix="kvm-") as folder:
        layer = image.overlay(image.build_disk(), pathlib.Path(folder) / "trial.qcow2")
        machine = Machine(layer, pathlib.Path(folder) / "console.log", accelerator="kvm")
        try:
            machine.start()
            machine.wait_shell(KVM_TRIAL_S)
            return True
        except (MachineError, BenchError):
            return False
        finally:
            machine.kill()


def _socket_data(end):
    """Pieces of what a socket receives, until the other side is gone."""
    while True:
        try:
            data = end.recv(65536)
        except OSError:
            return
        if not data:
            return
        yield data


def _socket_lines(end):
    rest = b""
    for data in _socket_data(end):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


class Machine:
    """One virtual machine on one disk. As a context manager it always ends its QEMU.

    smp: more than one CPU is quicker, but QEMU 7.2's multi-threaded TCG now and then lets a CPU run
    into a breakpoint of the kernel's own text patching that is gone already ("Oops: int3").
    disk: Disk or path (raw or *.qcow2). bus: "nvme" or "virtio". cache: QEMU's cache mode. The
    default, "none", is honest about a power cut: the guest's flushes reach the host's disk, and
    what it wrote and did not flush sits in no host page cache that would survive our SIGKILL
    (metadata of the qcow2 layer included). It also keeps cold reads cold.
    firmware: "bios", "uefi" or "secure" (UEFI with Secure Boot on, Microsoft's and so Debian's keys
    enrolled). UEFI's variables live as long as the object, beside its console log.
    keep_ram: whether RAM survives a guest's reboot or reset. Without it each of them is a new QEMU
    process on the same disk, because under TCG the next kernel unpacks itself over pages that
    QEMU knows as old code, which costs 10 to 35 s a boot. ramoops needs keep_ram.
    extra: more QEMU words.
    """

    def __init__(self, disk, console_log, *, memory_mb=512, smp=1, bus="nvme", cache="none",
                 firmware="bios", accelerator=None, keep_ram=False, extra=()):
        self.disk = pathlib.Path(getattr(disk, "path", disk))
        self.console_log = pathlib.Path(console_log)
        self.memory_mb, self.smp, self.bus, self.cache = memory_mb, smp, bus, cache
        self.accelerator, self.keep_ram, self.extra = accelerator, keep_ram, list(extra)
        self.firmware = firmware
        self.variables = pathlib.Path(str(console_log) + ".vars")
        self.process = None
        self.started_s = None           # host's monotonic clock at start()
        self.boots_s = []               # the same for each start of the firmware that QEMU told of
        self._on = False                # switched on, also while QEMU starts anew for a reboot
        self._power = threading.RLock()
        self._keeper = None
        self.lines = []                 # every whole console line since the object was made
        self._text = ""                 # the console without escapes
        self._seen = 0                  # where the last wait() stopped in _text
        self._line_start = 0
        self._shell_lines = collections.deque()
        self._hellos = 0                # boots whose shell said hello and nobody waited for yet
        self._uname = None
        self._shell_dead = False
        self._changed = threading.Condition()
        self._sockets = {}
        self._answers = queue.Queue()
        self._end_reason = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.kill()
        if kind:
            log(f"console log: {self.console_log}")

    # -- power --

    def start(self):
        """Switches the machine on (again). Returns at once."""
        if self._on:
            raise BenchError("the machine is already on")
        if not shutil.which(QEMU):
            raise BenchError(f"{QEMU} is missing: install qemu-system-x86")
        self.accelerator = self.accelerator or accel()
        self.started_s = time.monotonic()
        self._on = True
        self._launch()

    def _firmware_words(self):
        """The BIOS is QEMU's own; its console is the screen, which UEFI does without: drawing the
        kernel's messages into a frame buffer takes seconds under TCG."""
        if self.firmware == "bios":
            return ["-device", "VGA"]
        code, variables = (OVMF / name for name in FIRMWARE[self.firmware])
        if not code.exists() or not variables.exists():
            raise BenchError(f"{code} or {variables} is missing: install ovmf")
        if not self.variables.exists():
            shutil.copy(variables, self.variables)
        words = ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={code}",
                 "-drive", f"if=pflash,format=raw,unit=1,file={self.variables}"]
        if self.firmware == "secure":
            # This build keeps its variables from everything but system management mode.
            words += ["-machine", "q35,smm=on",
                      "-global", "driver=cfi.pflash01,property=secure,value=on"]
        return words

    def _argv(self, ends):
        form = "qcow2" if self.disk.suffix == ".qcow2" else "raw"
        devices = {"nvme": "nvme,serial=bench,drive=disk,bootindex=0",
                   "virtio": "virtio-blk-pci,drive=disk,bootindex=0"}
        argv = [QEMU, *accelerator_options(self.accelerator), "-m", str(self.memory_mb),
                "-smp", str(self.smp), "-nodefaults", "-no-user-config", "-display", "none",
                *self._firmware_words(), "-rtc", "base=utc",
                "-action", f"reboot={'reset' if self.keep_ram else 'shutdown'}",
                "-drive", f"file={self.disk},format={form},if=none,id=disk,cache={self.cache}",
                "-device", devices[self.bus]]
        for name, end in ends.items():
            argv += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
        return argv + ["-serial", "chardev:console", "-serial", "chardev:shell",
                       "-mon", "chardev=qmp,mode=control", *self.extra]

    def _launch(self):
        pairs = {name: socket.socketpair() for name in ("console", "shell", "qmp")}
        self._sockets = {name: ours for name, (ours, _) in pairs.items()}
        theirs = {name: end for name, (_, end) in pairs.items()}
        self._hellos, self._shell_dead, self._end_reason = 0, False, None
        with open(str(self.console_log) + ".qemu", "ab") as errors:
            self.boots_s.append(time.monotonic())
            self.process = subprocess.Popen(self._argv(theirs), stdin=subprocess.DEVNULL,
                                            stdout=errors, stderr=errors,
                                            pass_fds=[end.fileno() for end in theirs.values()])
        for end in theirs.values():
            end.close()
        self._answers = queue.Queue()
        readers = [threading.Thread(target=target, args=(self._sockets[name],), daemon=True)
                   for name, target in (("console", self._read_console),
                                        ("shell", self._read_shell), ("qmp", self._read_qmp))]
        for thread in readers:
            thread.start()
        self._keeper = threading.Thread(target=self._keep, args=(self.process, readers),
                                        daemon=True)
        self._keeper.start()
        try:
            self.qmp("qmp_capabilities")
        except BenchError as error:
            self.kill()
            text = pathlib.Path(str(self.console_log) + ".qemu").read_text(errors="replace")
            raise BenchError(f"QEMU did not start: {text[-2000:]}") from error

    def _keep(self, process, readers):
        """Waits for one QEMU's end; starts the next when the guest had asked for a reboot."""
        process.wait()
        for thread in readers:
            thread.join()
        with self._power:
            for end in self._sockets.values():
                end.close()
            if self._on and self._end_reason in REBOOT_REASONS:
                self._launch()
                return
            self._on = False
        with self._changed:
            self._changed.notify_all()

    def running(self):
        """Whether the machine is on; also between a guest's reboot and its next firmware."""
        return self._on

    def kill(self):
        """A power cut: nothing is flushed, nobody is told."""
        with self._power:
            self._on = False
            if self.process is not None:
                self.process.kill()
        if self._keeper is not None and self._keeper is not threading.current_thread():
            self._keeper.join()

    def wait_off(self, timeout_s):
        """Waits until the guest has switched itself off."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._on:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise MachineError(self._failure(f"still on after {timeout_s} s"))
                self._changed.wait(min(left, 5))

    def poweroff(self, timeout_s=60):
        """An orderly shutdown by systemd, asked for through the shell; returns when it is off."""
        self.send("systemctl poweroff")
        self.wait_off(timeout_s)

    # -- QMP --

    def _read_qmp(self, end):
        for line in _socket_lines(end):
            answer = json.loads(line)
            if answer.get("event") == "SHUTDOWN":
                self._end_reason = answer["data"]["reason"]
            elif answer.get("event") == "RESET":
                self.boots_s.append(time.monotonic())
            elif "return" in answer or "error" in answer:
                self._answers.put(answer)
        self._answers.put({"error": "QEMU has ended"})

    def qmp(self, command, **arguments):
        """One QMP command; returns its answer."""
        order = {"execute": command}
        if arguments:
            order["arguments"] = arguments
        try:
            self._sockets["qmp"].sendall(json.dumps(order).encode() + b"\n")
            answer = self._answers.get(timeout=20)
        except (OSError, queue.Empty) as error:
            raise BenchError(f"QMP {command}: {error}") from error
        if "error" in answer:
            raise BenchError(f"QMP {command}: {answer['error']}")
        return answer["return"]

    def nmi(self):
        """The NMI button: a panic where unknown_nmi_panic is on the command line."""
        self.qmp("inject-nmi")

    def reset(self):
        """The reset button."""
        self.qmp("system_reset")

    # -- console --

    def _read_console(self, end):
        with open(self.console_log, "ab", buffering=0) as kept:
            rest = ""
            for data in _socket_data(end):
                kept.write(data)
                raw = rest + data.decode("utf-8", "replace")
                # An escape sequence cut in two waits for its other half.
                cut = raw.rfind("\x1b", max(0, len(raw) - 12))
                whole = cut < 0 or _ESCAPES.match(raw, cut)
                raw, rest = (raw, "") if whole else (raw[:cut], raw[cut:])
                with self._changed:
                    self._add_console(_ESCAPES.sub("", _JUMP.sub("\n", raw)))
            with self._changed:
                self._changed.notify_all()

    def _add_console(self, text):
        now_s = time.monotonic()
        self._text += text
        while (newline := self._text.find("\n", self._line_start)) >= 0:
            if line := self._text[self._line_start:newline].rstrip():
                self.lines.append(Line(now_s, line))
            self._line_start = newline + 1
        self._changed.notify_all()

    def console(self):
        """The whole console text so far, without escape sequences."""
        with self._changed:
            return self._text

    def line_time_s(self, pattern, after_s=0.0):
        """Host's monotonic time of the first console line that matches, after a time; or None."""
        with self._changed:
            for line in self.lines:
                if line.at_s >= after_s and re.search(pattern, line.text):
                    return line.at_s
        return None

    def wait(self, pattern, timeout_s):
        """Waits for a regular expression (re.MULTILINE) after where the last wait() stopped."""
        wanted = re.compile(pattern, re.M)

        def found():
            match = wanted.search(self._text, self._seen)
            if match:
                self._seen = match.end()
            return match

        return self._wait_for(found, timeout_s, f"/{pattern}/ on the console")

    def _wait_for(self, condition, timeout_s, what):
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                value = condition()
                if value:
                    return value
                if not self.running():
                    raise MachineError(self._failure(f"QEMU ended while waiting for {what}"))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise MachineError(self._failure(f"no {what} in {timeout_s} s"))
                self._changed.wait(min(left, 5))

    def _failure(self, text):
        last = "\n".join(self._text.splitlines()[-40:])
        return f"{text}\n--- last lines of {self.console_log}\n{last}"

    # -- shell --

    def _read_shell(self, end):
        for line in _socket_lines(end):
            with self._changed:
                self._add_shell(line.decode("ascii", "replace").strip())
                self._changed.notify_all()

    def _add_shell(self, line):
        hello = re.search(r"#([0-9a-f-]{36}) (\S+)$", line)
        if hello:
            # What an older boot's command still had to say is lost with that boot.
            self._shell_lines.clear()
            self._hellos += 1
            self._uname = hello[2]
            self._shell_dead = True
        elif line[:1] in ("+", "1", "2", "="):
            self._shell_lines.append(line)

    def wait_shell(self, timeout_s):
        """Waits for the next boot that reaches the bench's shell; returns its kernel release."""
        self._wait_for(lambda: self._hellos, timeout_s, "shell on the second port")
        with self._changed:
            self._hellos = 0
            return self._uname

    def _shell_line(self, deadline, what):
        def ready():
            if self._shell_dead:
                raise MachineError(self._failure(f"the guest went away during {what}"))
            return self._shell_lines and self._shell_lines.popleft()
        return self._wait_for(ready, max(0, deadline - time.monotonic()), f"answer to {what}")

    def _send_shell(self, data):
        try:
            self._sockets["shell"].sendall(data)
        except OSError as error:
            raise MachineError(f"the shell's QEMU is gone: {error}") from error

    def _send_pieces(self, mark, data, deadline, what):
        for start in range(0, len(data), 900):
            self._send_shell(mark + base64.b64encode(data[start:start + 900]) + b"\n")
            self._shell_line(deadline, what)

    def run(self, command, timeout_s=60, stdin=b"", check=True):
        """Runs a bash command as root in the guest; returns Result(rc, out, err) as text.

        With check, a status other than 0 raises. Not for commands that end the boot: send().
        """
        result = self._run_bytes(command, timeout_s, stdin)
        result = Result(result.rc, result.out.decode("utf-8", "replace"),
                        result.err.decode("utf-8", "replace"))
        if check and result.rc != 0:
            raise MachineError(f"guest: {command!r} ended with {result.rc}\n"
                               f"{result.out[-2000:]}{result.err[-2000:]}")
        return result

    def _run_bytes(self, command, timeout_s, stdin):
        deadline = time.monotonic() + timeout_s
        streams = {"1": b"", "2": b""}
        with self._changed:
            self._shell_lines.clear()
            self._shell_dead = False
        self._send_pieces(b"+", command.encode(), deadline, command)
        self._send_pieces(b"<", stdin, deadline, command)
        self._send_shell(b"!\n")
        try:
            while True:
                line = self._shell_line(deadline, command)
                if line[0] == "=":
                    return Result(int(line[1:]), streams["1"], streams["2"])
                streams[line[0]] += base64.b64decode(line[1:])
        except MachineError:
            if self.running() and not self._shell_dead:
                self._send_shell(b"k\n")
            raise

    def send(self, command):
        """Starts a command in the guest that may end this boot; waits only until it is taken."""
        self.run(f"systemd-run --quiet --collect -- /bin/bash -c {shlex.quote(command)}", 30)

    def put(self, host_path, guest_path, mode="0644"):
        """Copies a small file into the guest (about 50 KB/s)."""
        data = pathlib.Path(host_path).read_bytes()
        quoted = shlex.quote(str(guest_path))
        self.run(f"cat >{quoted} && chmod {mode} {quoted}", 30 + len(data) // 5000, data)

    def get(self, guest_path, host_path):
        """Copies a small file out of the guest."""
        result = self._run_bytes(f"cat {shlex.quote(str(guest_path))}", 300, b"")
        if result.rc != 0:
            raise MachineError(f"guest: cannot read {guest_path}: {result.err.decode()}")
        pathlib.Path(host_path).write_bytes(result.out)

    # -- keys --

    def type_keys(self, text):
        """A person at the serial console."""
        self._sockets["console"].sendall(text.encode())

    def sysrq(self, letter):
        """Break and a letter on the serial console (Documentation/admin-guide/sysrq.rst)."""
        self.qmp("chardev-send-break", id="console")
        self.type_keys(letter)
