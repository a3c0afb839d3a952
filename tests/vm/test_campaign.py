# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole campaigns in a virtual machine: the unattended cycle, and what goes wrong on the way."""
import json
import re
import subprocess

import campaign
import pytest
from conftest import BUILD
from image import Disk, extract_store

LISTING = ("find /boot /etc -xdev -printf '%p %y %m %U:%G %l\\n' | sort; "
           "find /boot /etc -xdev -type f -print0 | sort -z | xargs -0 sha256sum")
CUSTOM = "/boot/grub/custom.cfg"


@pytest.fixture
def guest(base_disk, new_disk, machine):
    """A machine at home with its tiny tree prepared."""
    one = machine(new_disk(base_disk))
    one.start()
    one.wait_shell(300)
    campaign.prepare(one, *campaign.TREE_TINY)
    return one


def visits(console):
    """[(GRUB's choice, release in the kernel's first line or "")], every way through GRUB; the
    machine's own boots are quiet."""
    ways = re.split(r"Booting `([^']+)'", console)[1:]
    first_lines = [re.search(r"Linux version (\S+)", text) for text in ways[1::2]]
    return [(title, line[1] if line else "") for title, line in zip(ways[::2], first_lines)]


def test_unattended_cycle_leaves_the_machine_as_it_was(guest, tmp_path):
    """Three kernels, one round, two loads: all trials ok, back at the default, nothing left."""
    guest.run(f"printf 'set recount_test=1' >{CUSTOM}; chmod 0600 {CUSTOM}; sync")
    before = guest.run(LISTING, 120).out
    default = guest.run("uname -r").out.strip()
    campaign.start(guest, "--rounds 1", "--loads none,io")
    campaign.follow(guest, 1500)
    assert campaign.wait_idle_shell(guest, 300) == default
    assert guest.run(LISTING, 120).out == before
    guest.run("recount uninstall")
    assert guest.run(LISTING, 120).out == before
    store = campaign.take_store(guest, tmp_path / "store")

    went = visits(guest.console())
    releases = [kernel for title, kernel in went if title.startswith("recount")]
    assert len(releases) == 4 and len(set(releases)) == 3
    assert releases[0] == default
    at_home = [title for title, _ in went if not title.startswith("recount")]
    assert len(at_home) == 3 and len(set(at_home)) == 1

    records = campaign.records(store)
    assert {key: r["status"] for key, r in records.items()} == {
        (boot, trial, 1): "ok" if boot else "discarded" for boot in range(4) for trial in (1, 2) if boot or trial == 1}
    for record in records.values():
        assert record["wall_ns"] > 0 and record["user_ns"] > 0 and record["cold"]["ok"]
        assert record["product_sha256"] == records[0, 1, 1]["product_sha256"]
        assert ("load_result" in record) == (record["load"] == "io")
        if record["load"] == "io":
            assert record["load_result"]["work"] > 0 and record["load_result"]["unit"] == "ops"
    folder = campaign.newest(store)
    # What the supervisor costs; the program is at most 2 MB as well.
    resident = re.findall(r"PID 1 has (\d+) KiB resident", guest.console())
    assert len(resident) == 4 and all(0 < int(kib) <= 2048 for kib in resident)
    assert (BUILD / "recount-init").stat().st_size <= 2_000_000
    versions = {json.loads(p.read_text())["proc_version"]
                for p in folder.glob("boots/000[123]/environment-1.json")}
    assert len(versions) == 3
    assert not (store / "active").exists()
    assert "Kernel" in (folder / "report/report.txt").read_text()
    done = subprocess.run([BUILD / "recount", "report", "--format", "json", store], check=True,
                          capture_output=True, text=True)
    rows = [row for row in json.loads(done.stdout)["rows"] if row["metric"] == "wall_ns"]
    assert sorted((row["load"], row["n"]) for row in rows) == [("io", 1)] * 3 + [("none", 1)] * 3


def test_panic_during_a_trial_is_booked_and_retried(guest, tmp_path):
    """The trials that were finished stay, the boot is tried again, the campaign goes on."""
    label = campaign.label(guest, "6.12")
    campaign.start(guest, "--rounds 1", "--loads none,io", f"--kernels {label}",
                   f"--append {label}=unknown_nmi_panic", "--seed 7")
    panicking = f"{label}+unknown_nmi_panic"
    campaign.follow(guest, 600, until=f"round 1, attempt 1: kernel {re.escape(panicking)}")
    guest.wait(f"round 1, attempt 1: kernel {re.escape(panicking)}", 10)
    first = guest.wait(r"recount:   (none|io) +-j\d+ +\S+ +ok", 300)[1]
    guest.nmi()
    guest.wait("Kernel panic - not syncing", 60)
    campaign.follow(guest, 900)
    store = campaign.take_store(guest, tmp_path / "store")

    folder = campaign.newest(store)
    plan = json.loads((folder / "plan.json").read_text())
    [boot] = [b for b in plan["boots"] if b["entry"] == panicking]
    number = boot["boot"]
    failed = json.loads((folder / f"boots/{number:04d}/failed-1.json").read_text())
    assert failed["reason"] in ("no-answer", "panic")
    assert (folder / f"boots/{number:04d}/done-2.json").exists()
    got = {(b, r["load"], attempt): r["status"]
           for (b, _, attempt), r in campaign.records(store).items() if b}
    other = {"none": "io", "io": "none"}[first]
    assert {k: v for k, v in got.items() if k[0] == number} == {
        (number, first, 1): "ok", (number, other, 2): "ok"}
    [sane] = [b["boot"] for b in plan["boots"] if b["boot"] and b["entry"] == label]
    assert {k: v for k, v in got.items() if k[0] == sane} == {
        (sane, "none", 1): "ok", (sane, "io", 1): "ok"}
    # The second attempt found an arena that nobody had unmounted.
    [second] = [r for (b, _, a), r in campaign.records(store).items() if b == number and a == 2]
    assert second["arena_restore"] == "checked"


def test_power_cut_between_attempt_and_key(guest, tmp_path):
    """The attempt is on the store, the key is not: it is armed again, and nobody is blamed."""
    label = campaign.label(guest, "6.12")
    # The write of the key is held back for a minute; in that minute the power goes.
    guest.send("strace -f -o /root/strace.log -e trace=pwrite64 -P /run/recount/store/grub/grubenv"
               " -e inject=pwrite64:delay_enter=60s "
               f"recount start --yes --no-reboot --rounds 1 --loads none --kernels {label} "
               "--notice 2 >/dev/console 2>&1")
    campaign_dir = "/run/recount/store/campaigns"
    guest.run("for i in $(seq 300); do for p in $(pidof recount); do "
              f"ls /proc/$p/root{campaign_dir}/*/boots/0000/attempt-1.json && exit 0; "
              "done; sleep 0.2; done 2>/dev/null; exit 1", 90)
    guest.run("sleep 1")
    guest.kill()
    store = extract_store(Disk.load(guest.disk), tmp_path / "cut")
    assert b"recount_token" not in (store / "grub/grubenv").read_bytes()

    guest.start()
    guest.wait("GRUB never took it", 300)
    campaign.follow(guest, 900)
    store = campaign.take_store(guest, tmp_path / "store")
    folder = campaign.newest(store)
    assert sorted(p.name for p in folder.glob("boots/0000/attempt-*")) == ["attempt-1.json"]
    assert not list(folder.glob("boots/*/failed-*"))
    assert {r["status"] for (b, _, _), r in campaign.records(store).items() if b} == {"ok"}


def test_modules_are_loaded_without_modprobe(modules_disk, new_disk, machine, tmp_path):
    """ext4 and the disk's driver are modules, and the initrd has no modprobe to hide behind."""
    guest = machine(new_disk(modules_disk), bus="virtio")
    guest.start()
    guest.wait_shell(300)
    campaign.prepare(guest, *campaign.TREE_TINY)
    label = re.search(r"^ +(\S+) +\S+-\d+-amd64 ", guest.run("recount kernels").out, re.M)[1]
    campaign.start(guest, "--rounds 1", "--loads none", f"--kernels {label}")
    campaign.follow(guest, 900)
    store = campaign.take_store(guest, tmp_path / "store")
    assert {r["status"] for (b, _, _), r in campaign.records(store).items() if b} == {"ok"}
    folder = campaign.newest(store)
    modules = json.loads((folder / "boots/0001/environment-1.json").read_text())["modules"]
    assert {"ext4", "virtio_blk"} <= {line.split()[0] for line in modules.splitlines()}


@pytest.mark.long
@pytest.mark.hours
def test_campaign_on_the_kernel_tree(base_disk, new_disk, machine, tmp_path):
    """The real thing in the small: tinyconfig, make clean, make -j2 init/, alone and under io."""
    guest = machine(new_disk(base_disk), smp=2)
    guest.start()
    guest.wait_shell(300)
    campaign.trust_tsc(guest)
    campaign.prepare(guest, "linux", "init/", "--config", "tinyconfig", timeout_s=3600)
    campaign.start(guest, "--rounds 1", "--loads none,io")
    campaign.follow(guest, 7200)
    store = campaign.take_store(guest, tmp_path / "store")
    assert {(b, r["load"]): r["status"] for (b, _, _), r in campaign.records(store).items() if b} \
        == {(b, load): "ok" for b in (1, 2, 3) for load in ("none", "io")}
    subprocess.run([BUILD / "recount", "report", store], check=True)
