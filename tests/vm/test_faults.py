# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels and boots that fail, each brought about from outside: by words on an entry's command line,
by a tree whose build misbehaves, by keys on the console, by damaged files. Several in one campaign,
since each visit costs half a minute.
"""
import json
import re
import socket
import struct
import time

import campaign
import pytest
from image import Disk, extract_store

# What the build does when the kernel's command line has the word.
FAULTS = r"""
words := $(shell cat /proc/cmdline)
daemon = setsid sh -c 'trap "" HUP INT TERM; exec 9>leftover.$$$$; while :; do sleep 5; done' \
	</dev/null >/dev/null 2>&1 &
ifneq (,$(filter fault=orphans,$(words)))
all: orphans
endif
ifneq (,$(filter fault=never-ends,$(words)))
all: never-ends
endif
orphans:
	@for i in $$(seq 200); do setsid sleep 1000 9>leftover.$$i </dev/null >/dev/null 2>&1 & done
never-ends:
	@$(daemon)
	@$(daemon)
	@while :; do sleep 5; done
clean: clean-leftovers
clean-leftovers:
	@rm -f leftover.*
"""


@pytest.fixture(name="home")
def _home(base_disk, new_disk, machine, tmp_path):
    """Function: a machine at home with its tree prepared, and the label of its own kernel."""
    def make(**options):
        guest = machine(new_disk(base_disk), **options)
        guest.start()
        guest.wait_shell(300)
        guest.run("mount LABEL=RECOUNT-ARENA /mnt && cat >>/mnt/tiny/Makefile && umount /mnt",
                  stdin=FAULTS.encode())
        campaign.prepare(guest, *campaign.TREE_TINY)
        label = re.search(r"^ +(6\.12\S+)", guest.run("recount kernels").out, re.M)[1]
        return guest, label
    return make


def erst(tmp_path):
    """QEMU's words for a firmware that keeps a panic's text."""
    return ["-object", f"memory-backend-file,id=erst,mem-path={tmp_path / 'erst'},size=1M,share=on",
            "-device", "acpi-erst,memdev=erst"]


def start_held(guest, label, *appends, loads="none", options="", **limits):
    """Plans and arms without a reboot: the kernel alone and with each of the words."""
    appended = " ".join(f"--append '{label}={words}'" for words in appends)
    guest.run(f"recount start --yes --no-reboot --notice 2 --rounds 1 --loads {loads} "
              f"--kernels {label} --seed 7 {options} {appended}", 120)
    if limits:
        campaign.change_limits(guest, **limits)


def statuses(store):
    """{(boot, trial, attempt): status}, canary apart."""
    return {key: r["status"] for key, r in campaign.records(store).items() if key[0]}


@pytest.mark.long
def test_cases_48_57_and_hang_before_pid_1(home, tmp_path):
    """A panic, a hang and an ordinary system where recount-init should have been; a wrong entry."""
    guest, label = home(extra=erst(tmp_path))
    start_held(guest, label,
               # No rdinit, so that the kernel wants a root: one that is not there, …
               "rdinit=/nope root=/dev/nope pstore.kmsg_bytes=200000",
               # … one that it waits for without end, …
               "rdinit=/nope root=/dev/nope rootwait",
               # … and the real one.
               "rdinit=/nope root=/dev/nvme0n1p1 fault=home",
               "fault=wrong", retries=1)
    guest.run("sed -i \"s/ 'fault=wrong'//\" /boot/grub/custom.cfg")
    guest.send("systemctl reboot")
    campaign.react(guest, 1200, {
        # The person at the button, within the boot's time.
        r"Waiting for root device /dev/nope": lambda _: guest.reset(),
    })
    store = campaign.take_store(guest, tmp_path / "store")

    boots = {word: campaign.boot_of(store, word) for word in
             ("pstore.kmsg_bytes=200000", "rootwait", "fault=home", "fault=wrong")}
    assert {key: f["reason"] for key, f in campaign.failures(store).items()} == {
        (boots["pstore.kmsg_bytes=200000"], 1): "panic",
        (boots["rootwait"], 1): "not-reached",
        (boots["fault=home"], 1): "init-not-reached",
        (boots["fault=wrong"], 1): "wrong-entry",
    }
    dead = boots["pstore.kmsg_bytes=200000"]
    assert campaign.failures(store)[dead, 1]["evidence"] == "panic-1.txt"
    text = campaign.files(store, dead)["panic-1.txt"]
    assert "VFS: Unable to mount root fs" in text
    assert f"recount.token={campaign.token_of(store, dead, 1)}" in text
    wrong = campaign.files(store, boots["fault=wrong"])
    assert "fault=wrong" not in json.loads(wrong["reached-1.json"])["cmdline"]
    assert campaign.token_of(store, boots["fault=wrong"], 1) in wrong["dmesg-1.txt"]
    # The kernel's own entry was not disturbed.
    [sane] = set(range(1, 6)) - set(boots.values())
    assert statuses(store) == {(sane, 1, 1): "ok"}


@pytest.mark.long
def test_cases_51_57_faults_in_a_trial(home, tmp_path):
    """Daemons without end, 200 orphans, a worker that is killed, a panic: the campaign goes on."""
    guest, label = home(extra=erst(tmp_path))
    start_held(guest, label, "fault=never-ends", "fault=orphans",
               "sysrq_always_enabled fault=never-ends", trial_timeout_ms=20000)
    # All entries get what the kernel hands to its init (case 50).
    guest.run("sed -i \"/if linux/s/; then$/ 'splash' 'foo=bar' '--' '--help'; then/\""
              " /boot/grub/custom.cfg && grep -c \"'--help'\" /boot/grub/custom.cfg")
    guest.send("systemctl reboot")
    now = {}

    def begins(match):
        if "sysrq" not in now["entry"]:
            return
        # In the build, which does not end.
        time.sleep(8)
        guest.sysrq("i" if now["attempt"] == "1" else "c")

    campaign.react(guest, 1500, {
        r"attempt (\d+): kernel (\S+)": lambda m: now.update(attempt=m[1], entry=m[2]),
        r"-j\d+ +begins": begins,
    })
    store = campaign.take_store(guest, tmp_path / "store")

    dying = campaign.boot_of(store, "sysrq_always_enabled")
    endless = campaign.boot_of(store, "fault=never-ends", but="sysrq_always_enabled")
    orphans = campaign.boot_of(store, "fault=orphans")
    [sane] = set(range(1, 5)) - {endless, orphans, dying}
    # Reached its end twice; the daemons of the build are gone, or the arena could not be unmounted.
    assert statuses(store) == {(endless, 1, 1): "timeout", (endless, 1, 2): "timeout",
                               (orphans, 1, 1): "ok", (sane, 1, 1): "ok"}
    console = guest.console()
    assert "the arena will have to be checked" not in console
    assert "Attempted to kill init" not in console
    # The worker dies of signal 9, which PID 1 survives and writes down; then the kernel dies.
    assert {key: f["reason"] for key, f in campaign.failures(store).items()} == {
        (dying, 1): "worker-died", (dying, 2): "panic"}
    files = campaign.files(store, dying)
    assert "the worker was ended by signal 9" in files["dmesg-1.txt"]
    assert campaign.token_of(store, dying, 1) in files["dmesg-1.txt"]
    assert "sysrq triggered crash" in files["panic-2.txt"]
    assert campaign.token_of(store, dying, 2) in files["panic-2.txt"]
    for boot in (endless, orphans, sane):
        assert "dmesg-1.txt" in campaign.files(store, boot)
    assert "softdog stands in" in console and "watchdog armed, 300 s" in console
    reached = json.loads(campaign.files(store, sane)["reached-1.json"])
    assert reached["cmdline"].endswith(" splash foo=bar -- --help")


@pytest.mark.long
def test_key_h_brings_the_machine_home(home, tmp_path):
    """h between two trials: the machine goes home and waits; nothing is lost when it goes on."""
    guest, label = home()
    start_held(guest, label, loads="none,process")
    guest.send("systemctl reboot")
    campaign.react(guest, 400, {}, until=r"boot 1 of 1[\s\S]*-j\d+ +begins")
    guest.type_keys("h")
    guest.wait("the machine goes home and waits for recount resume", 120)
    guest.wait(r"waits: .*recount resume goes on", 300)
    campaign.wait_idle_shell(guest, 120)
    assert "active" in guest.run("recount status").out
    grubenv = guest.run("mount -o ro LABEL=RECOUNT /mnt && cat /mnt/grub/grubenv; umount /mnt").out
    assert re.search(r"^next_entry=$", grubenv, re.M) or "next_entry" not in grubenv
    guest.send("recount resume --yes --notice 2 >/dev/console 2>&1")
    campaign.follow(guest, 400)
    store = campaign.take_store(guest, tmp_path / "store")
    assert {key: f["reason"] for key, f in campaign.failures(store).items()} == {(1, 1): "held"}
    assert statuses(store) == {(1, 1, 1): "ok", (1, 2, 2): "ok"}
    assert campaign.token_of(store, 1, 1) in campaign.files(store, 1)["dmesg-1.txt"]


@pytest.mark.long
def test_case_64_full_store(home, tmp_path):
    """No room for a record: it is shown on the console, the default boots, nothing stays armed."""
    guest, label = home()
    start_held(guest, label)
    guest.run("mount LABEL=RECOUNT /mnt && { dd if=/dev/zero of=/mnt/full bs=4k 2>/dev/null;"
              " sync; dd if=/dev/zero of=/mnt/full bs=1k oflag=append conv=notrunc 2>/dev/null;"
              # One block for reached-1.json.
              " truncate -s $(( $(stat -c %s /mnt/full) / 4096 * 4096 - 4096 )) /mnt/full; sync;"
              " df -k /mnt; umount /mnt; }")
    guest.send("systemctl reboot")
    guest.wait("this record could not be written", 300)
    guest.wait(r'recount: +"wall_ns":\s*\d+', 60)
    guest.wait("this boot ends without a result; the machine goes home", 60)
    # The referee cannot write either: nothing is armed, and the machine stays at home.
    guest.wait("write .*No space left on device", 300)
    campaign.wait_idle_shell(guest, 300)
    time.sleep(10)
    assert guest.run("uname -r").out.strip()
    guest.run("recount stop")
    store = campaign.take_store(guest, tmp_path / "store")
    names = set(campaign.files(store, 0))
    assert "reached-1.json" in names and not {n for n in names if n.startswith("trial-")}
    assert b"next_entry=recount" not in (store / "grub/grubenv").read_bytes()


def hang(path):
    """Hangs the machine's one CPU for good, interrupts off, through QEMU's debugger port at PATH."""
    with socket.socket(socket.AF_UNIX) as port:
        port.settimeout(30)
        port.connect(str(path))

        def ask(text):
            port.sendall(f"${text}#{sum(text.encode()) % 256:02x}".encode())
            return answer()

        def answer():
            data = b""
            while not re.search(rb"#[0-9a-f]{2}$", data):
                data += port.recv(65536)
            port.sendall(b"+")
            return re.search(rb"\$(.*)#", data)[1].decode()

        for _ in range(200):
            registers = bytes.fromhex(ask("g"))
            # 16 general registers, rip, eflags, cs.
            rip, cs = struct.unpack_from("<Q", registers, 128)[0], registers[140]
            if cs & 3 == 0:
                break
            # User code may not switch interrupts off: let it run on a little.
            port.sendall(b"$c#63")
            time.sleep(0.05)
            port.sendall(b"\x03")
            answer()
        assert cs & 3 == 0
        # cli; jmp to itself
        assert ask(f"M{rip:x},3:faebfe") == "OK"
        assert ask("D") == "OK"


@pytest.mark.long
def test_case_66_hardware_watchdog_ends_a_hang(home, tmp_path):
    """The whole machine hangs in a trial: i6300esb resets it after its 300 s, the default boots."""
    port = tmp_path / "gdb"
    guest, label = home(extra=["-device", "i6300esb", "-action", "watchdog=reset",
                               "-gdb", f"unix:{port},server=on,wait=off"])
    start_held(guest, label, "fault=never-ends")
    guest.send("systemctl reboot")
    hung = {}

    def begins(_):
        if "never-ends" in hung["entry"] and "at_s" not in hung:
            time.sleep(5)
            hang(port)
            hung["at_s"] = time.monotonic()

    campaign.react(guest, 1500, {
        r"attempt \d+: kernel (\S+)": lambda m: hung.update(entry=m[1]),
        r"-j\d+ +begins": begins,
        r"attempt 2: kernel": lambda _: None,
    }, until=r"attempt 2: kernel")
    guest.kill()
    store = extract_store(Disk.load(guest.disk), tmp_path / "store")
    boot = campaign.boot_of(store, "fault=never-ends")
    assert campaign.failures(store)[boot, 1]["reason"] == "no-answer"
    back_s = min(s for s in guest.boots_s if s > hung["at_s"])
    assert 200 < back_s - hung["at_s"] < 330
    assert "watchdog armed, 300 s" in guest.console()
    assert "softdog stands in" not in guest.console()


@pytest.mark.long
def test_thrashing_kernel_is_slow_not_dead(home, tmp_path):
    """A load of 150 % of an entry's memory: the build runs into its timeout, not into a watchdog."""
    guest, label = home()
    start_held(guest, label, "mem=375M fault=never-ends", loads="mem", options="--swap /dev/nvme0n1p4",
               trial_timeout_ms=60000)
    guest.send("systemctl reboot")
    campaign.follow(guest, 2400)
    store = campaign.take_store(guest, tmp_path / "store")
    small = campaign.boot_of(store, "mem=375M")
    assert statuses(store)[small, 1, 1] == "timeout"
    record = campaign.records(store)[small, 1, 1]
    plan = json.loads((campaign.newest(store) / "plan.json").read_text())
    [load] = [load for load in plan["loads"] if load["name"] == "mem"]
    assert load["bytes"] > 1.4 * record["memtotal_bytes"]
    assert record["swap_out_bytes"] > 0 and record["load_result"]["work"] > 0
    assert not campaign.failures(store)


@pytest.mark.long
def test_missing_archive_and_foreign_token(home, tmp_path):
    """recount.cpio is gone: not-reached. Case 24: with another attempt's token nothing is run."""
    guest, label = home()
    start_held(guest, label)
    store = "mount LABEL=RECOUNT /mnt && {} && umount /mnt"
    guest.run(store.format("mv /mnt/recount.cpio /mnt/away"))
    guest.send("systemctl reboot")
    guest.wait("this entry cannot be booted; rebooting", 120)
    campaign.wait_idle_shell(guest, 300)
    guest.wait("not-reached; to be tried again", 120)
    guest.run("recount stop")
    guest.run(store.format("mv /mnt/away /mnt/recount.cpio"))
    guest.run("recount resume --yes --no-reboot --notice 2", 120)
    guest.run(store.format("grub-editenv /mnt/grub/grubenv set recount_token=2020-01-01-a-0000-1-0"))
    guest.send("systemctl reboot")
    guest.wait("is armed, so nothing is run", 300)
    guest.wait("GRUB never took it", 300)
    campaign.follow(guest, 900)
    store = campaign.take_store(guest, tmp_path / "store")
    assert {key: f["reason"] for key, f in campaign.failures(store).items()} == {(0, 1): "not-reached"}
    assert statuses(store) == {(1, 1, 1): "ok"}


@pytest.mark.long
def test_case_66_disk_that_stops_answering(home, tmp_path):
    """Nothing that waits for the disk ever returns: PID 1 reboots over the worker's head."""
    guest, label = home()
    start_held(guest, label, "nvme_core.io_timeout=1000000", trial_timeout_ms=20000)
    guest.send("systemctl reboot")
    stuck = {}

    def begins(_):
        if "io_timeout" in stuck["entry"] and "at_s" not in stuck:
            guest.qmp("block_set_io_throttle", device="disk", bps=1, bps_rd=0, bps_wr=0, iops=0,
                      iops_rd=0, iops_wr=0)
            stuck["at_s"] = time.monotonic()

    campaign.react(guest, 1500, {
        r"attempt \d+: kernel (\S+)": lambda m: stuck.update(entry=m[1]),
        r"-j\d+ +begins": begins,
    })
    assert "the worker does not answer: rebooting over its head" in guest.console()
    back_s = min(s for s in guest.boots_s if s > stuck["at_s"])
    assert 150 < back_s - stuck["at_s"] < 400
    store = campaign.take_store(guest, tmp_path / "store")
    boot = campaign.boot_of(store, "nvme_core.io_timeout=1000000")
    assert {key: f["reason"] for key, f in campaign.failures(store).items()} == {(boot, 1): "no-answer"}
    assert statuses(store)[boot, 1, 2] == "ok"
    assert campaign.records(store)[boot, 1, 2]["arena_restore"] == "checked"
