# SPDX-License-Identifier: GPL-3.0-or-later
"""start, status, stop, resume, uninstall and referee on a machine made of files."""
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

from storemachine import (BLOCK, KERNELS, LINK, RECOUNT, UNIT, UUIDS, Machine, attempt, campaign_id,
                          make_ext4)


@pytest.fixture
def machine(tmp_path):
    m = Machine(tmp_path)
    yield m
    m.detach()


def test_start_installs_and_arms_the_canary(machine):
    said = machine.start()
    assert re.search(r"2 kernels, 2 rounds, 1 load = 4 trials in 4 boots \(\+1 trial boot\)", said)
    plan = machine.get(f"campaigns/{campaign_id()}/plan.json")
    digest = hashlib.sha256(plan).hexdigest()
    boots = json.loads(plan)["boots"]
    first = attempt(machine, 0, 1)
    keys = machine.keys()
    entry = next(e for e in json.loads(plan)["entries"] if e["label"] == boots[0]["entry"])
    assert machine.active() == campaign_id()
    assert keys["next_entry"] == entry["id"]
    assert keys["recount_token"] == first["token"]
    assert first["plan_sha256"] == digest
    assert machine.get("recount.cpio")[:6] == b"070701"
    custom = (machine.root / "boot/grub/custom.cfg").read_text()
    for version in KERNELS:
        line = next(l for l in custom.splitlines() if f"/boot/vmlinuz-{version}" in l and "linux" in l)
        for word in ("rdinit=/recount-init", f"recount.store={UUIDS['store']}",
                     f"recount.plan={digest}", "console=ttyS0", f"root=UUID={UUIDS['root']}"):
            assert word in line
        assert " quiet" not in line
        assert re.search(rf"recount\.cpio.*/boot/initrd\.img-{re.escape(version)}", custom)
    unit = (machine.root / UNIT).read_text()
    assert f'ExecStart="{RECOUNT}" referee --notice 60' in unit
    assert os.readlink(machine.root / LINK) == "/" + UNIT


@pytest.mark.parametrize("mode", ["ordered", "journal"])
def test_case_23_nothing_that_grub_reads_waits_in_a_journal(machine, mode):
    """The key is in no journal: the store is unmounted before the reboot, whatever /boot is mounted
    with; and in /boot there is only the block, which an ordinary shutdown writes back."""
    machine.write("proc/self/mountinfo",
                  f"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,data={mode}\n")
    machine.start()
    features = subprocess.run(["dumpe2fs", "-h", machine.image], capture_output=True, text=True,
                              check=True).stdout
    assert "needs_recovery" not in features and "Filesystem state:         clean" in features
    assert machine.keys()["next_entry"]
    assert not (machine.root / "boot/grub/grubenv").exists()


def test_start_refuses_while_one_is_active(machine):
    machine.start()
    before, plan = machine.outside(), machine.get(f"campaigns/{campaign_id()}/plan.json")
    assert "is active" in machine.start(code=3)
    assert machine.outside() == before
    assert machine.get(f"campaigns/{campaign_id()}/plan.json") == plan


@pytest.mark.parametrize("verb", ["start", "stop", "resume", "uninstall"])
def test_one_verb_at_a_time(machine, verb):
    device = os.stat(machine.loop).st_rdev
    lock = pathlib.Path(f"/run/recount/lock-{os.major(device)}:{os.minor(device)}")
    machine.recount("stop")  # makes it, and gives it back
    before, store = machine.outside(), machine.image.read_bytes()
    words = {"start": ("--yes", "--no-reboot", "--loads", "none"),
             "resume": ("--yes", "--no-reboot")}.get(verb, ())
    with open(lock, "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.write("prepare (process 4711)")
        f.flush()
        said = machine.recount(verb, *words, code=3)
    assert "prepare (process 4711)" in said and str(lock) in said
    assert machine.outside() == before
    assert machine.image.read_bytes() == store
    machine.recount("stop")


def test_stop_waits_for_the_referee(machine):
    machine.start()
    device = os.stat(machine.loop).st_rdev
    with open(f"/run/recount/lock-{os.major(device)}:{os.minor(device)}", "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.write("referee (process 4711)")
        f.flush()
        release = threading.Timer(1, lambda: fcntl.flock(f, fcntl.LOCK_UN))
        release.start()
        began_s = time.monotonic()
        assert "is stopped" in machine.recount("stop")
        assert time.monotonic() - began_s > 0.9
        release.join()
    assert machine.active() is None


def test_start_without_a_terminal_needs_yes(machine):
    before, store = machine.outside(), machine.image.read_bytes()
    assert "--yes" in machine.recount("start", "--no-reboot", "--loads", "none", code=3)
    assert machine.outside() == before
    assert machine.image.read_bytes() == store


def test_start_that_fails_half_way_leaves_nothing(machine):
    machine.write(UNIT, "[Unit]\nDescription=somebody else's\n")
    before = machine.outside()
    machine.start(code=1)
    assert machine.outside() == before
    assert machine.active() is None
    assert not machine.exists(f"campaigns/{campaign_id()}")


def test_start_refuses_what_the_store_cannot_hold(machine):
    before, store = machine.outside(), machine.image.read_bytes()
    said = machine.recount("start", "--yes", "--no-reboot", "--loads", "none", "--rounds", "500",
                           code=3)
    assert "rounds" in said
    assert machine.outside() == before
    assert machine.image.read_bytes() == store


@pytest.mark.parametrize("verb", ["stop", "uninstall"])
@pytest.mark.parametrize("custom_cfg, mode, wants", [
    (None, None, False), ("set timeout=3\n", 0o644, True),
    ("set timeout=3\n# mine", 0o600, True), ("", 0o640, False)])
def test_case_71_the_machine_is_as_it_was(machine, verb, custom_cfg, mode, wants):
    if custom_cfg is not None:
        machine.write("boot/grub/custom.cfg", custom_cfg)
        os.chmod(machine.root / "boot/grub/custom.cfg", mode)
        os.chown(machine.root / "boot/grub/custom.cfg", 1, 2)
    if wants:
        (machine.root / LINK).parent.mkdir()
    before = machine.outside()
    machine.start()
    assert machine.outside() != before
    said = machine.recount(verb)
    assert campaign_id() in said
    assert machine.outside() == before
    assert machine.active() is None
    assert machine.exists(f"campaigns/{campaign_id()}/plan.json")
    machine.recount(verb)
    assert machine.outside() == before
    for path in ("recount.cpio", "grub/grubenv", "grub"):
        assert machine.exists(path) == (verb == "stop")
    if verb == "stop":
        assert not machine.keys().get("next_entry")


def test_stop_twice_is_fine(machine):
    machine.start()
    machine.recount("stop")
    assert "no active campaign; nothing to do" in machine.recount("stop")


def test_stop_finishes_a_removal_that_was_cut_short(machine):
    before = machine.outside()
    machine.start()
    (machine.root / LINK).unlink()
    (machine.root / "boot/grub/custom.cfg").unlink()
    machine.recount("stop")
    assert machine.outside() == before


@pytest.mark.parametrize("verb", ["stop", "uninstall"])
def test_two_stores_leave_a_campaign_as_it_is(machine, verb):
    machine.start()
    before, store = machine.outside(), machine.image.read_bytes()
    machine.disk("sdc1", 8, 33, 64)
    make_ext4(machine.root / "dev/sdc1", "RECOUNT", "0000000a-1111-2222-3333-444444444444", 64)
    said = machine.recount(verb, code=3)
    assert "labelled RECOUNT: /dev/sdb1, /dev/sdc1; rename all but one" in said
    assert machine.outside() == before and machine.image.read_bytes() == store
    subprocess.run(["e2label", machine.root / "dev/sdc1", "OTHER"], check=True)
    assert f"campaign {campaign_id()} is stopped" in machine.recount(verb)


def test_uninstall_works_without_the_store(machine):
    before = machine.outside()
    machine.start()
    machine.lose_store()
    said = machine.recount("status", code=3)
    assert "no partition is labelled RECOUNT" in said and "recount uninstall removes it" in said
    assert "no store found" in machine.recount("uninstall")
    assert machine.outside() == before
    assert machine.recount("uninstall")
    assert machine.outside() == before


def test_status_tells_what_is_armed_and_works_without_a_campaign(machine):
    assert "no active campaign and none" in machine.recount("status")
    machine.start()
    said = machine.recount("status")
    assert f"campaign {campaign_id()}, active" in said
    assert "0 of 4 finished" in said
    assert machine.keys()["recount_token"] in said
    machine.recount("stop")
    said = machine.recount("status")
    assert "no active campaign" in said and campaign_id() in said and "resume" in said


def test_resume_arms_the_same_attempt_again(machine):
    machine.start()
    token = machine.keys()["recount_token"]
    machine.recount("stop")
    assert not machine.keys().get("recount_token")
    machine.recount("resume", "--yes", "--no-reboot")
    assert machine.active() == campaign_id()
    assert machine.keys()["recount_token"] == token
    assert not machine.exists(f"campaigns/{campaign_id()}/boots/0000/attempt-2.json")
    assert BLOCK in (machine.root / "boot/grub/custom.cfg").read_text()


@pytest.mark.parametrize("changed", [f"boot/vmlinuz-{KERNELS[1]}", "usr/bin/gcc"])
def test_resume_refuses_and_names_what_has_changed(machine, changed):
    machine.start()
    machine.recount("stop")
    before = machine.outside()
    path = machine.root / changed
    path.write_bytes(path.read_bytes() + b"x")
    said = machine.recount("resume", "--yes", "--no-reboot", code=3)
    assert "/" + changed in said
    assert machine.active() is None
    path.write_bytes(path.read_bytes()[:-1])
    assert machine.outside() == before


def test_resume_refuses_without_the_planned_swap(machine):
    swap = machine.root / "dev/sdb3"
    swap.write_bytes(b"")
    os.truncate(swap, 512 << 20)
    uuid = "00000009-1111-2222-3333-444444444444"
    subprocess.run(["mkswap", "-U", uuid, swap], check=True, capture_output=True)
    machine.disk("sdb3", 8, 19, 512)
    machine.start(swap="/dev/sdb3")
    machine.recount("stop")
    before = machine.outside()
    subprocess.run(["mkswap", swap], check=True, capture_output=True)
    said = machine.recount("resume", "--yes", "--no-reboot", code=3)
    assert "swap" in said and uuid in said
    assert machine.outside() == before and machine.active() is None
    subprocess.run(["mkswap", "-U", uuid, swap], check=True, capture_output=True)
    machine.recount("resume", "--yes", "--no-reboot")
    assert machine.active() == campaign_id()


@pytest.mark.parametrize("damage, reason", [
    (lambda plan: plan[:-200], " (damaged or cut short, at "),
    (lambda plan: None, ": No such file"),
])
def test_resume_names_a_plan_that_cannot_be_read(machine, tmp_path, damage, reason):
    older = campaign_id()
    newer = older[:-1] + "b"
    for _ in (older, newer):
        machine.start()
        machine.recount("stop")
    path = f"campaigns/{newer}/plan.json"
    plan = damage(machine.get(path))
    if plan:
        machine.put(tmp_path, path, plan)
    else:
        machine.debugfs(f"rm {path}")
        subprocess.run(["blockdev", "--flushbufs", machine.loop], check=True)
    before = machine.outside()
    said = machine.recount("resume", "--yes", "--no-reboot", code=3)
    assert f"cannot read {path} on the store{reason}" in said
    assert f"whether {newer} is unfinished is not known" in said
    assert "recount resume ID (recount status lists them)" in said
    said = machine.recount("resume", "--yes", "--no-reboot", newer, code=3)
    assert f"cannot read {path} on the store{reason}" in said and "recount start begins" in said
    assert machine.outside() == before and machine.active() is None
    assert f"campaign {older} goes on" in machine.recount("resume", "--yes", "--no-reboot", older)


def test_resume_without_a_campaign_says_so(machine):
    assert "unfinished" in machine.recount("resume", "--yes", "--no-reboot", code=3)


def test_case_28_referee_arms_again_what_grub_never_took(machine):
    machine.start()
    token = machine.keys()["recount_token"]
    machine.put(machine.image.parent, "grub/grubenv",
                b"# GRUB Environment Block\n".ljust(1024, b"#"))
    said = machine.recount("referee", "--notice", "0")
    assert "never took it" in said
    assert machine.keys()["recount_token"] == token
    assert machine.keys()["next_entry"]
    boots = f"campaigns/{campaign_id()}/boots/0000"
    assert not machine.exists(f"{boots}/failed-1.json")
    assert not machine.exists(f"{boots}/attempt-2.json")


def test_referee_asks_a_person_when_grub_never_takes_it(machine):
    machine.start()
    for _ in range(3):
        assert "armed again" in machine.recount("referee", "--notice", "0")
    assert "recount resume" in machine.recount("referee", "--notice", "0")
    assert machine.active() == campaign_id()


def test_case_59_referee_books_what_was_never_reached(machine, tmp_path):
    machine.start()
    machine.grub_takes(tmp_path)
    assert "not-reached" in machine.recount("referee", "--notice", "0")
    boots = f"campaigns/{campaign_id()}/boots/0000"
    assert json.loads(machine.get(f"{boots}/failed-1.json"))["reason"] == "not-reached"
    assert machine.keys()["recount_token"] == attempt(machine, 0, 2)["token"]
    machine.grub_takes(tmp_path)
    before = machine.recount("status")
    assert "attempt 2" in before
    said = machine.recount("referee", "--notice", "0")
    # the canary has used up its attempts: the run never starts, and everything is put back
    assert "ended early" in said
    assert machine.active() is None
    assert not (machine.root / UNIT).exists()
    assert not (machine.root / "boot/grub/custom.cfg").exists()
    assert b"ended early" in machine.get(f"campaigns/{campaign_id()}/report/report.txt")
    json.loads(machine.get(f"campaigns/{campaign_id()}/report/report.json"))


def test_case_57_referee_keeps_the_panic_text(machine, tmp_path):
    machine.start()
    machine.grub_takes(tmp_path)
    record = machine.root / "sys/fs/pstore/dmesg-ramoops-0"
    record.write_text("Panic#1 Part1\nKernel panic - not syncing: test\n")
    later = datetime.datetime.now().timestamp() + 5
    os.utime(record, (later, later))
    assert "panic" in machine.recount("referee", "--notice", "0")
    boots = f"campaigns/{campaign_id()}/boots/0000"
    assert json.loads(machine.get(f"{boots}/failed-1.json")) == {
        "reason": "panic", "evidence": "panic-1.txt"}
    assert b"not syncing: test" in machine.get(f"{boots}/panic-1.txt")
    assert not record.exists()


def test_case_48_referee_on_a_recount_boot_arms_nothing(machine, tmp_path):
    machine.start()
    token = machine.keys()["recount_token"]
    machine.grub_takes(tmp_path)
    machine.write("proc/cmdline", f"ro recount.token={token} rdinit=/recount-init\n")
    said = machine.recount("referee", "--notice", "0")
    assert "init-not-reached" in said and "machine's default" in said
    assert not machine.keys().get("next_entry")
    assert not machine.exists(f"campaigns/{campaign_id()}/boots/0000/attempt-2.json")
    # once more in the same boot: it must not reboot for ever
    assert "nothing is armed" in machine.recount("referee", "--notice", "0")
    # and at home it goes on
    machine.write("proc/cmdline", "ro\n")
    machine.recount("referee", "--notice", "0")
    assert machine.keys()["recount_token"] == attempt(machine, 0, 2)["token"]


def test_referee_without_a_campaign_cleans_up(machine):
    before = machine.outside()
    machine.start()
    # a power cut between the removal of `active` and of the rest
    machine.debugfs("rm active")
    subprocess.run(["blockdev", "--flushbufs", machine.loop], check=True)
    machine.recount("referee", "--notice", "0")
    assert machine.outside() == before
    machine.recount("referee", "--notice", "0")
    assert machine.outside() == before


def test_referee_gives_up_a_changed_kernel_and_says_which(machine, tmp_path):
    machine.start()
    path = machine.root / f"boot/vmlinuz-{KERNELS[1]}"
    path.write_bytes(path.read_bytes() + b"x")
    said = machine.recount("referee", "--notice", "0")
    assert f"/boot/vmlinuz-{KERNELS[1]} has changed" in said
    plan = json.loads(machine.get(f"campaigns/{campaign_id()}/plan.json"))
    label = next(e["label"] for e in plan["entries"] if e["version"] == KERNELS[1])
    for boot in plan["boots"]:
        path = f"campaigns/{campaign_id()}/boots/{boot['boot']:04}/failed-2.json"
        assert machine.exists(path) == (boot["entry"] == label)


def test_referee_gives_up_nothing_while_boot_is_not_mounted(machine):
    machine.start()
    boot = machine.root / "boot"
    boot.rename(machine.root / "elsewhere")
    boot.mkdir()
    said = machine.recount("referee", "--notice", "0", code=1)
    assert "cannot read" in said and "/boot/vmlinuz-" in said
    assert "nothing is armed in this boot" in said
    assert machine.active() == campaign_id()
    assert not machine.exists(f"campaigns/{campaign_id()}/boots/0000/failed-1.json")
    boot.rmdir()
    (machine.root / "elsewhere").rename(boot)
    assert "armed again" in machine.recount("referee", "--notice", "0")
