# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels and boots that fail, each brought about from outside: by words on an entry's command line,
by a tree whose build misbehaves, by keys and buttons, by the debugger's port. Several in one
campaign, since each visit costs half a minute, and each way home a minute more.
"""
import json
import re
import time

import campaign
import debugger
import pytest
from image import Disk, extract_store


def erst(tmp_path):
    """QEMU's words for a firmware that keeps a panic's text."""
    return ["-object", f"memory-backend-file,id=erst,mem-path={tmp_path / 'erst'},size=1M,share=on",
            "-device", "acpi-erst,memdev=erst"]


def test_cases_48_57_65_and_hang_before_pid_1(home, tmp_path):
    """Cases 48, 57 and 65: where recount-init should have been a panic, a hang, the initrd's shell,
    an ordinary system; and a wrong entry. Each is booked, and the campaign comes to its end."""
    guest, label = home(extra=erst(tmp_path))
    nothing = f"{label}=rdinit=/nope root=/dev/nope"
    campaign.start_held(
        guest, label,
        # No rdinit, so that the kernel wants a root: one that is not there, …
        f"{nothing} pstore.kmsg_bytes=200000",
        # … one that it waits for without end, …
        f"{nothing} rootwait",
        # … and the real one.
        f"{label}=rdinit=/nope root=/dev/nvme0n1p1 fault=home",
        f"{label}=rdinit=/init root=/dev/nope fault=initrd",
        f"{label}=fault=wrong", retries=1)
    guest.run("sed -i \"s/ 'fault=wrong'//\" /boot/grub/custom.cfg")
    guest.send("systemctl reboot")
    campaign.react(guest, 2400, {
        # The person at the button, within the boot's time.
        r"Waiting for root device /dev/nope": lambda _: guest.reset(),
    })
    store = campaign.take_store(guest, tmp_path / "store")

    boots = {word: campaign.boot_of(store, word) for word in
             ("pstore.kmsg_bytes=200000", "rootwait", "fault=home", "fault=initrd", "fault=wrong")}
    assert campaign.failures(store) == {
        (boots["pstore.kmsg_bytes=200000"], 1): "panic",
        (boots["rootwait"], 1): "not-reached",
        (boots["fault=home"], 1): "init-not-reached",
        (boots["fault=initrd"], 1): "not-reached",
        (boots["fault=wrong"], 1): "wrong-entry",
    }
    assert "Rebooting automatically due to panic= boot argument" in guest.console()
    dead = campaign.files(store, boots["pstore.kmsg_bytes=200000"])
    assert json.loads(dead["failed-1.json"])["evidence"] == "panic-1.txt"
    assert "VFS: Unable to mount root fs" in dead["panic-1.txt"]
    assert f"recount.token={json.loads(dead['attempt-1.json'])['token']}" in dead["panic-1.txt"]
    wrong = campaign.files(store, boots["fault=wrong"])
    assert "fault=wrong" not in json.loads(wrong["reached-1.json"])["cmdline"]
    assert campaign.token_of(store, boots["fault=wrong"], 1) in wrong["dmesg-1.txt"]
    # The kernel's own entry was not disturbed.
    [sane] = set(range(1, 7)) - set(boots.values())
    assert campaign.statuses(store) == {(sane, 1, 1): "ok"}


def test_cases_50_51_57_faults_in_a_trial(home, tmp_path):
    """Cases 50, 51 and 57: a build that never ends and leaves daemons (on 5.10, which cannot kill a
    cgroup), 200 orphans, a worker that is killed, a panic: the campaign goes on."""
    guest, label = home(extra=erst(tmp_path))
    older = campaign.label(guest, "5.10")
    campaign.start_held(guest, label, f"{older}=fault=never-ends", f"{label}=fault=orphans",
                        f"{label}=sysrq_always_enabled fault=never-ends", trial_timeout_ms=60000)
    # All entries get what the kernel hands to its init (case 50).
    guest.run("sed -i \"/if linux/s/; then$/ 'splash' 'foo=bar' '--' '--help'; then/\""
              " /boot/grub/custom.cfg && grep -c \"'--help'\" /boot/grub/custom.cfg")
    guest.send("systemctl reboot")
    now = {}

    def begins(_):
        if "sysrq" not in now["entry"]:
            return
        # In the build, which does not end.
        time.sleep(8)
        guest.sysrq("i" if now["attempt"] == "1" else "c")

    campaign.react(guest, 2400, {
        r"attempt (\d+): kernel (\S+)": lambda m: now.update(attempt=m[1], entry=m[2]),
        r"-j\d+ +begins": begins,
    })
    store = campaign.take_store(guest, tmp_path / "store")

    dying = campaign.boot_of(store, "sysrq_always_enabled")
    endless = campaign.boot_of(store, "fault=never-ends", but="sysrq_always_enabled")
    orphans = campaign.boot_of(store, "fault=orphans")
    [sane] = set(range(1, 5)) - {endless, orphans, dying}
    # Reached its end twice; the daemons of the build are gone, or the arena could not be unmounted.
    assert campaign.statuses(store) == {(endless, 1, 1): "timeout", (endless, 1, 2): "timeout",
                                        (orphans, 1, 1): "ok", (sane, 1, 1): "ok"}
    assert json.loads(campaign.files(store, endless)["reached-1.json"])["uname"].startswith("5.10.")
    console = guest.console()
    assert "the arena will have to be checked" not in console
    assert "Attempted to kill init" not in console
    # The worker dies of signal 9, which PID 1 survives and writes down; then the kernel dies.
    assert campaign.failures(store) == {(dying, 1): "worker-died", (dying, 2): "panic"}
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


# For sed on grub.cfg: a megabyte of memory that no kernel uses for anything else.
RAMOOPS = (r"s/panic=10/& memmap=1M\\$0x1e000000 ramoops.mem_address=0x1e000000 "
           r"ramoops.mem_size=0x100000 ramoops.record_size=0x20000/")


@pytest.mark.long
@pytest.mark.parametrize("backend, options", [("efi", {"firmware": "uefi"}),
                                              ("ramoops", {"keep_ram": True})])
def test_case_57_panic_text_in_firmware_or_memory(home, tmp_path, backend, options):
    """Case 57: the panic's own words come through EFI's variables, or through memory that keeps them
    over the reset, and are deleted there, so that it does not fill."""
    guest, label = home(**options)
    if backend == "ramoops":
        guest.run("sed -i -f /dev/stdin /boot/grub/grub.cfg && sync", stdin=RAMOOPS.encode())
    campaign.start_held(guest, label, f"{label}=sysrq_always_enabled")
    guest.send("systemctl reboot")
    now = {}

    def begins(_):
        if "sysrq" in now["entry"] and now["attempt"] == "1":
            guest.sysrq("c")

    campaign.react(guest, 1800, {
        r"attempt (\d+): kernel (\S+)": lambda m: now.update(attempt=m[1], entry=m[2]),
        r"-j\d+ +begins": begins,
    })
    campaign.wait_idle_shell(guest, 300)
    assert not guest.run("find /sys/fs/pstore /var/lib/systemd/pstore -type f").out.strip()
    store = campaign.take_store(guest, tmp_path / "store")
    boot = campaign.boot_of(store, "sysrq_always_enabled")
    assert campaign.failures(store) == {(boot, 1): "panic"}
    assert campaign.statuses(store)[boot, 1, 2] == "ok"
    text = campaign.files(store, boot)["panic-1.txt"]
    assert "sysrq triggered crash" in text
    assert campaign.token_of(store, boot, 1) in text


@pytest.mark.long
def test_key_h_brings_the_machine_home(home, tmp_path):
    """h between two trials: the machine goes home and waits; nothing is lost when it goes on."""
    guest, label = home()
    campaign.start_held(guest, label, loads="none,process")
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
    assert campaign.failures(store) == {(1, 1): "held"}
    assert campaign.statuses(store) == {(1, 1, 1): "ok", (1, 2, 2): "ok"}
    assert campaign.token_of(store, 1, 1) in campaign.files(store, 1)["dmesg-1.txt"]


def test_case_66_hardware_watchdog_ends_a_hang(home, tmp_path):
    """Case 66: the whole machine hangs in a trial; i6300esb resets it after its 300 s, the default
    boots. Case 57: the second attempt ends in an oops, whose text is kept."""
    port = tmp_path / "gdb"
    guest, label = home(extra=["-device", "i6300esb", "-action", "watchdog=reset",
                               *debugger.words(port), *erst(tmp_path)])
    campaign.start_held(guest, label, f"{label}=fault=never-ends")
    guest.send("systemctl reboot")
    now, hung_s = {}, []

    def begins(_):
        if "never-ends" not in now["entry"]:
            return
        time.sleep(5)
        if hung_s:
            debugger.oops(port)
        else:
            debugger.run_in_kernel(port, debugger.HANG)
        hung_s.append(time.monotonic())

    campaign.react(guest, 2400, {
        r"attempt \d+: kernel (\S+)": lambda m: now.update(entry=m[1]),
        r"-j\d+ +begins": begins,
    }, until=r"attempt 2: panic; given up")
    guest.kill()
    store = extract_store(Disk.load(guest.disk), tmp_path / "store")
    boot = campaign.boot_of(store, "fault=never-ends")
    assert campaign.failures(store) == {(boot, 1): "no-answer", (boot, 2): "panic"}
    back_s = min(s for s in guest.boots_s if s > hung_s[0])
    assert 200 < back_s - hung_s[0] < 330
    text = campaign.files(store, boot)["panic-2.txt"]
    assert "NULL pointer dereference" in text and campaign.token_of(store, boot, 2) in text
    assert "watchdog armed, 300 s" in guest.console()
    assert "softdog stands in" not in guest.console()


@pytest.mark.long
def test_case_66_softdog_ends_a_loop_in_the_kernel(home, tmp_path):
    """Case 66: no hardware watchdog, and a kernel that only handles its timers any more, without a
    lockup detector of its own: softdog reboots it after its 300 s."""
    port = tmp_path / "gdb"
    guest, label = home(extra=debugger.words(port))
    campaign.start_held(guest, label, f"{label}=nowatchdog fault=never-ends", trial_timeout_ms=30000)
    guest.send("systemctl reboot")
    now, hung_s = {}, []

    def begins(_):
        if "nowatchdog" not in now["entry"] or hung_s:
            return
        time.sleep(5)
        debugger.run_in_kernel(port, debugger.LOOP)
        hung_s.append(time.monotonic())

    campaign.react(guest, 2400, {
        r"attempt \d+: kernel (\S+)": lambda m: now.update(entry=m[1]),
        r"-j\d+ +begins": begins,
    })
    console = guest.console()
    store = campaign.take_store(guest, tmp_path / "store")
    boot = campaign.boot_of(store, "nowatchdog")
    assert campaign.failures(store) == {(boot, 1): "no-answer"}
    assert campaign.statuses(store)[boot, 1, 2] == "timeout"
    back_s = min(s for s in guest.boots_s if s > hung_s[0])
    assert 200 < back_s - hung_s[0] < 330
    assert "softdog stands in" in console and "softdog: Initiating system reboot" in console


@pytest.mark.long
def test_thrashing_kernel_is_slow_not_dead(home, tmp_path):
    """A load of 150 % of an entry's memory: the build runs into its timeout, not into a watchdog."""
    guest, label = home()
    campaign.start_held(guest, label, f"{label}=mem=375M fault=never-ends", loads="mem",
                        options="--swap /dev/nvme0n1p4", trial_timeout_ms=60000)
    guest.send("systemctl reboot")
    campaign.follow(guest, 2400)
    store = campaign.take_store(guest, tmp_path / "store")
    small = campaign.boot_of(store, "mem=375M")
    assert campaign.statuses(store)[small, 1, 1] == "timeout"
    record = campaign.records(store)[small, 1, 1]
    plan = json.loads((campaign.newest(store) / "plan.json").read_text())
    [load] = [load for load in plan["loads"] if load["name"] == "mem"]
    assert load["bytes"] > 1.4 * record["memtotal_bytes"]
    assert record["swap_out_bytes"] > 0 and record["load_result"]["work"] > 0
    assert not campaign.failures(store)
