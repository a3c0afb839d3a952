# SPDX-License-Identifier: GPL-3.0-or-later
"""The referee on the running machine, as its unit starts it: without --root, but in a mount namespace
whose /boot, /etc/systemd/system, /run, /dev and block devices are those of a machine made of files,
and with a PATH whose systemctl, loginctl and wall do as the test says."""
import datetime
import json
import os
import re
import struct
import subprocess
import time

import pytest

from storemachine import RECOUNT, Machine, attempt, campaign_id

# What is compared must lie where the namespace has it.
TOOLS = ("boot/gcc", "boot/make")

SCRIPTS = {
    "systemctl": 'echo "$@" >>$D/systemctl.log\n[ "$1" != reboot ] || exit $(cat $D/refuse)\n',
    "modprobe": 'echo "$@" >>$D/modprobe.log\nexit 1\n',
    "wall": 'echo "$1" >>$D/wall.log; cp /run/motd.d/recount $D/motd\n',
    "loginctl": """[ ! -e $D/no-logind ] || exit 1
case "$*" in
list-sessions*) cat $D/sessions ;;
*--property=BlockInhibited) echo "BlockInhibited=$(cat $D/inhibited)" ;;
*) for id; do :; done; cat $D/session-$id ;;
esac
""",
}

ENTER = """set -e
mount --make-rprivate /
mount --bind "$ROOT/boot" /boot
mount --bind "$ROOT/etc/systemd/system" /etc/systemd/system
mount --bind "$ROOT/sys/class/block" /sys/class/block
mount --bind "$D/run" /run
mount -t tmpfs dev /dev
mknod -m 666 /dev/null c 1 3
mknod /dev/sdb1 b $LOOP
exec "$@"
"""


class Referee:
    """One run of it, with everything it asks of the machine's other programs."""

    def __init__(self, machine, folder):
        self.machine, self.folder, self.process = machine, folder, None
        self.path = f"{folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        (folder / "bin").mkdir(parents=True)
        (folder / "run").mkdir()
        for name, text in SCRIPTS.items():
            script = folder / "bin" / name
            script.write_text(f"#!/bin/sh\nD={folder}\n{text}")
            script.chmod(0o755)
        for name, text in {"sessions": "", "inhibited": "", "refuse": "0"}.items():
            (folder / name).write_text(text)

    def session(self, number, **properties):
        """Somebody, or something, has a session."""
        (self.folder / f"session-{number}").write_text(
            "".join(f"{key}={value}\n" for key, value in properties.items()))
        with open(self.folder / "sessions", "a", encoding="ascii") as f:
            f.write(f"{number:>7} 1000 ann seat0 tty1\n")

    def logout(self):
        (self.folder / "sessions").write_text("")

    def start(self, *words, uptime_s=None):
        """@uptime_s: since this machine's kernel started."""
        clock = []
        if uptime_s is not None:
            shift_s = uptime_s - int(time.clock_gettime(time.CLOCK_BOOTTIME))
            clock = ["--time", f"--boottime={shift_s}", "--fork", "--kill-child"]
        device = os.stat(self.machine.loop).st_rdev
        env = {**os.environ, "D": str(self.folder), "ROOT": str(self.machine.root),
               "LOOP": f"{os.major(device)} {os.minor(device)}",
               "PATH": self.path}
        self.process = subprocess.Popen(
            ["unshare", *clock, "--mount", "sh", "-c", ENTER, "sh", RECOUNT,
             "referee", *words], env=env, stdin=subprocess.DEVNULL,
            stdout=open(self.folder / "out", "wb"), stderr=subprocess.STDOUT)

    def beside(self, *words):
        """Another verb in the same place: (exit code, what it says)."""
        inside = re.search(r"\d+", subprocess.run(["pgrep", "-P", str(self.process.pid)], check=True,
                                                  capture_output=True, text=True).stdout)[0]
        done = subprocess.run(["nsenter", "--target", inside, "--mount", "--time", RECOUNT, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              check=False, env={**os.environ, "PATH": self.path})
        return done.returncode, done.stdout

    def said(self):
        return (self.folder / "out").read_text()

    def read(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def wait(self, words, timeout_s=120):
        deadline = time.monotonic() + timeout_s
        while words not in self.said():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.1)

    def end(self, timeout_s=120):
        return self.process.wait(timeout_s)

    def reboots(self):
        return self.read("systemctl.log").splitlines().count("reboot")

    @property
    def motd(self):
        path = self.folder / "run/motd.d/recount"
        return path.read_text() if path.exists() else None


@pytest.fixture
def machine(tmp_path):
    m = Machine(tmp_path / "machine", TOOLS)
    yield m
    m.detach()


@pytest.fixture
def referee(machine, tmp_path):
    """A machine that waits for its referee to arm the canary, which GRUB never took."""
    if subprocess.run(["unshare", "--mount", "--time", "true"], check=False).returncode:
        pytest.skip("no mount and time namespaces")
    machine.start()
    one = Referee(machine, tmp_path / "world")
    yield one
    if one.process and one.process.poll() is None:
        one.process.kill()
        one.process.wait()


def armed(machine):
    return machine.keys().get("next_entry")


def stop(referee):
    """`recount stop`, by somebody at the machine; the referee ends and does nothing more."""
    referee.machine.recount("stop")
    assert referee.end(120) == 0
    assert "was stopped; nothing is armed" in referee.said()
    assert referee.reboots() == 0 and not armed(referee.machine)
    assert referee.motd is None


def test_reboots_after_its_notice_when_nobody_minds(referee):
    begun = time.monotonic()
    referee.start("--notice", "3")
    assert referee.end() == 0, referee.said()
    assert time.monotonic() - begun >= 3
    notice = f"recount {campaign_id()}: boot 0 of 4 (6.1.0-9, attempt 1) begins in 3 s"
    assert notice in referee.said()
    assert notice in referee.read("wall.log") and notice in referee.read("motd")
    assert referee.read("systemctl.log").splitlines() == [
        "stop apt-daily.timer", "stop apt-daily-upgrade.timer", "stop fstrim.timer", "reboot"]
    assert armed(referee.machine)


def test_waits_until_nobody_is_logged_in(referee):
    referee.session("c1", Name="ann", Class="user", State="active", TTY="tty1")
    referee.start("--notice", "1")
    referee.wait("waits until nobody is logged in: ann on tty1")
    # A person who reboots now gets the machine's default.
    assert not armed(referee.machine)
    for text in (referee.read("wall.log"), referee.motd):
        assert "ann on tty1" in text and "recount stop" in text
    time.sleep(32)
    assert referee.process.poll() is None
    assert referee.said().count("waits until") == 1
    referee.logout()
    assert referee.end(120) == 0, referee.said()
    assert referee.reboots() == 1 and armed(referee.machine)


def test_stop_ends_the_wait(referee):
    referee.session("c1", Name="ann", Class="user", State="online", TTY="pts/0")
    referee.start()
    referee.wait("ann on pts/0")
    stop(referee)


def test_stop_ends_the_notice(referee):
    referee.start("--notice", "60")
    referee.wait("begins in 60 s")
    assert "begins in 60 s" in referee.motd
    stop(referee)


def test_who_logs_in_during_the_notice_is_waited_for(referee):
    referee.start("--notice", "60")
    referee.wait("begins in 60 s")
    referee.session("c9", Name="bob", Class="user", State="active", TTY="pts/3")
    referee.wait("waits until nobody is logged in: bob on pts/3")
    assert "bob" in referee.motd and not armed(referee.machine)
    stop(referee)


def bmc_was_armed(m):
    """Before the boot that brought the machine home, for 20 minutes."""
    plan = m.plan()
    plan["entries"][0]["bmc_s"] = 1200
    m.put(m.tmp, f"campaigns/{campaign_id()}/plan.json", json.dumps(plan).encode())
    m.put_record(0, "attempt-1.json", {**attempt(m, 0, 1), "bmc_s": 1200})


def test_bmc_that_does_not_answer_is_outlasted(referee):
    """Its time, and half a minute more for two clocks; then the campaign goes on."""
    bmc_was_armed(referee.machine)
    begun = time.monotonic()
    referee.start("--bmc", "--notice", "1", uptime_s=1190)
    referee.wait("its watchdog may reset this machine until ")
    assert set(referee.read("modprobe.log").splitlines()) == {"-a ipmi_si ipmi_devintf"}
    assert referee.end() == 0 and referee.reboots() == 1 and armed(referee.machine)
    assert 38 < time.monotonic() - begun < 90
    assert referee.said().index("until") < referee.said().index("begins in 1 s")


def test_bmc_that_does_not_answer_is_named_by_all_that_come(referee):
    """While its timer may be counting: stop, twice, says so and fails, start is refused."""
    bmc_was_armed(referee.machine)
    referee.start("--bmc", "--notice", "60", uptime_s=300)
    referee.wait("its watchdog may reset this machine until ")
    until = re.search(r"until ([-\d]+ [:\d]+)", referee.said())[1]
    left_s = (datetime.datetime.fromisoformat(until) - datetime.datetime.now()).seconds
    assert 840 < left_s <= 900
    code, said = referee.beside("start", "--yes")
    assert code == 3 and "refused; nothing was changed: the BMC's watchdog may be counting" in said
    for first in (True, False):
        code, said = referee.beside("stop")
        assert code == 1 and re.search(r"but the BMC's watchdog may reset this machine within [89]\d\d s", said)
        assert (f"campaign {campaign_id()} is stopped" in said) == first
    assert referee.end() == 0 and referee.reboots() == 0 and not armed(referee.machine)
    # True all the same.
    assert until in referee.read("wall.log") and until in referee.read("run/motd.d/recount-bmc")


def test_waits_for_an_inhibitor(referee):
    (referee.folder / "inhibited").write_text("sleep:shutdown")
    referee.start()
    referee.wait("waits for a program that holds off a shutdown")
    assert not armed(referee.machine)
    stop(referee)


def test_what_is_no_person_is_not_waited_for(referee):
    """A greeter, the service manager of a user, a cron job, a session that is over but for a
    detached tmux; and an inhibitor of sleep."""
    for number, name in enumerate(("greeter", "manager", "background", "lock-screen")):
        referee.session(number, Name="x", Class=name, State="active")
    referee.session(9, Name="ann", Class="user", State="closing", TTY="pts/1")
    (referee.folder / "inhibited").write_text("sleep:idle:handle-lid-switch")
    referee.start("--notice", "0")
    assert referee.end() == 0, referee.said()
    assert referee.reboots() == 1 and "waits" not in referee.said()


def utmp(kind, pid, line, user):
    """An entry of utmp(5) on x86-64."""
    return struct.pack("<h2xi32s4s32s256shhiii16s20x", kind, pid, line, b"x", user, b"", 0, 0, 0, 0,
                       0, b"")


def test_without_logind_utmp_tells(referee):
    (referee.folder / "no-logind").touch()
    dead = subprocess.Popen(["true"])
    dead.wait()
    (referee.folder / "run/utmp").write_bytes(
        utmp(6, os.getpid(), b"tty1", b"LOGIN")  # a getty that waits for a name
        + utmp(7, dead.pid, b"pts/4", b"carl")  # a session whose end nobody wrote down
        + utmp(7, os.getpid(), b"ttyS0", b"root"))  # a console that logged in by itself
    referee.start()
    referee.wait("waits until nobody is logged in: root on ttyS0")
    assert "LOGIN" not in referee.said() and "carl" not in referee.said()
    stop(referee)


def test_a_reboot_that_is_refused_leaves_nothing_armed(referee):
    (referee.folder / "refuse").write_text("1")
    referee.start("--notice", "0")
    referee.wait("it is tried again in 60 s")
    assert referee.reboots() == 1
    assert not armed(referee.machine)
    assert referee.machine.active() == campaign_id()


def test_what_it_tells_does_not_outlive_it(referee):
    referee.start("--notice", "60")
    referee.wait("begins in 60 s")
    assert referee.motd
    referee.process.terminate()
    referee.end(120)
    assert referee.motd is None and not armed(referee.machine)
