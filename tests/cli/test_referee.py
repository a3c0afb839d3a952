# SPDX-License-Identifier: GPL-3.0-or-later
"""The referee on a machine made of files: the canary's failures, files that change in the middle,
stores that cannot be written, clocks that jump. Nothing reboots: --root leaves that to the person."""
import contextlib
import datetime
import json
import os
import subprocess
import time

import pytest

from storemachine import (HOME, KERNELS, LINK, UNIT, UUIDS, Machine, attempt, campaign_id, make_ext4)

CUSTOM = "boot/grub/custom.cfg"


@pytest.fixture
def machine(tmp_path):
    m = Machine(tmp_path)
    yield m
    m.detach()


def referee(m, code=0):
    return m.recount("referee", "--notice", "0", code=code)


def armed(m):
    return m.keys().get("next_entry")


def assert_over(m, *words):
    """The campaign has ended: nothing armed, nothing active, nothing outside, and it says why."""
    assert not armed(m) and m.active() is None
    assert not (m.root / UNIT).exists() and not (m.root / CUSTOM).exists()
    report = m.get(f"campaigns/{campaign_id()}/report/report.txt").decode()
    assert report.startswith("ended early: ")
    for word in words:
        assert word in report.splitlines()[0]
    assert not m.exists(f"campaigns/{campaign_id()}/boots/0001")


def assert_waits(m, said, *words):
    """The campaign is active, and nothing is armed until a person has done something."""
    assert not armed(m) and m.active() == campaign_id()
    for word in ("Nothing is armed", *words):
        assert word in said


# --- every way in which the canary can fail (case 72) ------------------------------------------

def twice(m, happen):
    """Starts, and lets the same happen to both attempts at the canary."""
    m.start()
    for number in (1, 2):
        m.grub_takes(m.tmp)
        happen(m, number)
        said = referee(m)
        assert ("ended early" in said) == (number == 2)
        if number == 1:
            assert attempt(m, 0, 2)["token"] == m.keys()["recount_token"]


def panic(m, number):
    record = m.root / f"sys/fs/pstore/dmesg-efi-{number}"
    record.write_text(f"Panic#1 Part1\nrecount.token={attempt(m, 0, number)['token']} x\n"
                      "Kernel panic - not syncing: VFS\n")


def init_not_reached(m, number):
    m.write("proc/cmdline", f"ro recount.token={attempt(m, 0, number)['token']}\n")
    assert "reboots into the machine's default" in referee(m)
    m.write("proc/cmdline", "ro\n")


def no_answer(m, number):
    m.put_reached(0, number)


def timed_out(m, number):
    m.put_reached(0, number)
    m.put_failed(0, number, "timeout")


def trial(status, void=()):
    def happen(m, number):
        m.put_reached(0, number)
        m.put_trial(0, number, status, void)
        m.put_done(0, number)
    return happen


def record_cut_short(m, number):
    trial("discarded")(m, number)
    path = f"campaigns/{campaign_id()}/boots/0000/trial-01-{number}.json"
    m.put(m.tmp, path, m.get(path)[:-40])


def attempt_damaged(m, number):
    m.put(m.tmp, f"campaigns/{campaign_id()}/boots/0000/attempt-{number}.json", b"{")


@pytest.mark.parametrize("happen, words", [
    (lambda m, number: None, "attempt 1: not-reached; attempt 2: not-reached"),
    (panic, "attempt 1: panic; attempt 2: panic"),
    (init_not_reached, "attempt 1: init-not-reached; attempt 2: init-not-reached"),
    (no_answer, "attempt 1: no-answer; attempt 2: no-answer"),
    (timed_out, "attempt 1: timeout; attempt 2: timeout"),
    (trial("void", ["not-cold"]), "its trial was void (not-cold)"),
    (trial("failed"), "its trial failed"),
    (trial("timeout"), "its trial took too long"),
    (record_cut_short, "left no record of its trial that can be read"),
    (attempt_damaged, "attempt 1: damaged; attempt 2: damaged"),
], ids=["not-reached", "panic", "init-not-reached", "no-answer", "timeout", "void", "failed",
        "trial-timeout", "record-damaged", "attempt-damaged"])
def test_case_72_canary_fails(machine, happen, words):
    before = machine.outside()
    twice(machine, happen)
    assert_over(machine, "did not go as it should", words)
    assert machine.outside() == before
    assert "no active campaign" in machine.recount("status")


def canary_done(m):
    m.start()
    m.grub_takes(m.tmp)
    trial("discarded")(m, 1)


def test_case_72_canary_passes(machine):
    canary_done(machine)
    assert "boot 1 of 4" in referee(machine)
    assert machine.keys()["recount_token"] == attempt(machine, 1, 1)["token"]
    assert attempt(machine, 0, 1)["sequence"] == 1 and attempt(machine, 1, 1)["sequence"] == 2


def test_case_72_canary_comes_home_to_another_kernel(machine):
    canary_done(machine)
    machine.write("proc/sys/kernel/osrelease", KERNELS[1] + "\n")
    assert "ended early" in referee(machine)
    assert_over(machine, f"it came home to {KERNELS[1]}, not to {HOME}")


def test_case_72_boot_after_the_canary_carries_its_token(machine):
    canary_done(machine)
    machine.write("proc/cmdline", f"ro recount.token={attempt(machine, 0, 1)['token']}\n")
    assert "ended early" in referee(machine)
    assert_over(machine, "carries its token again", "does not forget a one-shot")


def test_case_72_grub_never_takes_the_canary(machine):
    machine.start()
    for _ in range(3):
        assert "armed again" in referee(machine) and armed(machine)
    assert_waits(machine, referee(machine), "GRUB did not take its one-shot again and again")
    assert_waits(machine, referee(machine), "GRUB did not take its one-shot again and again")
    assert not machine.exists(f"campaigns/{campaign_id()}/boots/0000/failed-1.json")
    machine.recount("resume", "--yes", "--no-reboot")
    assert armed(machine)


# --- files that change in the middle -----------------------------------------------------------

@pytest.mark.parametrize("change", [lambda path: path.write_bytes(path.read_bytes() + b"x"),
                                    lambda path: path.unlink()], ids=["changed", "removed"])
def test_toolchain_that_changes_stops_the_campaign_where_it_is(machine, change):
    machine.start()
    gcc = machine.root / "usr/bin/gcc"
    content = gcc.read_bytes()
    change(gcc)
    for _ in range(2):
        assert_waits(machine, referee(machine), "/usr/bin/gcc", "could not be compared")
    said = machine.recount("status")
    assert "waits    /usr/bin/gcc is not the one that was planned" in said
    assert "/usr/bin/gcc" in machine.recount("resume", "--yes", "--no-reboot", code=3)
    assert not armed(machine)
    gcc.write_bytes(content)
    assert "waits" not in machine.recount("status")
    assert "armed again" in referee(machine) and armed(machine)


@pytest.mark.parametrize("name", ["vmlinuz", "initrd.img"])
@pytest.mark.parametrize("change, what", [
    (lambda path: path.write_bytes(path.read_bytes() + b"x"), "has changed"),
    (lambda path: path.unlink(), "was removed")], ids=["changed", "removed"])
def test_entry_whose_files_change_is_skipped_and_named(machine, name, change, what):
    canary_done(machine)
    change(machine.root / f"boot/{name}-{KERNELS[1]}")
    said = referee(machine)
    assert f"/boot/{name}-{KERNELS[1]} {what}" in said and "is skipped" in said
    plan = machine.plan()
    [label] = [e["label"] for e in plan["entries"] if e["version"] == KERNELS[1]]
    for boot in plan["boots"][1:]:
        path = f"campaigns/{campaign_id()}/boots/{boot['boot']:04}/failed-2.json"
        assert machine.exists(path) == (boot["entry"] == label)
    [other] = [e["id"] for e in plan["entries"] if e["label"] != label]
    assert armed(machine) == other
    # A campaign that goes on without it can be resumed without it, too.
    machine.recount("stop")
    machine.recount("resume", "--yes", "--no-reboot")
    assert armed(machine) == other


@pytest.mark.parametrize("verb", ["referee", "resume"])
def test_hibernated_system_is_never_booted_over(machine, verb):
    machine.start()
    if verb == "resume":
        machine.recount("stop")
    swap = machine.root / "dev/sdb3"
    swap.write_bytes(b"")
    os.truncate(swap, 64 << 20)
    subprocess.run(["mkswap", swap], check=True, capture_output=True)
    machine.disk("sdb3", 8, 19, 64)
    with open(swap, "r+b") as f:
        f.seek(4096 - 10)
        f.write(b"S1SUSPEND\0")
    if verb == "referee":
        assert_waits(machine, referee(machine), "/dev/sdb3 holds a hibernated system")
    else:
        said = machine.recount("resume", "--yes", "--no-reboot", code=3)
        assert "/dev/sdb3 holds a hibernated system" in said and not armed(machine)


@pytest.mark.parametrize("lose, words", [
    (lambda m: (m.root / CUSTOM).unlink(), "recount's block in custom.cfg is missing"),
    (lambda m: (m.debugfs("rm recount.cpio"), m.flush()), "recount.cpio on the store is missing"),
], ids=["block", "archive"])
def test_boot_files_that_are_gone_are_asked_for(machine, lose, words):
    machine.start()
    lose(machine)
    assert_waits(machine, referee(machine), words)
    machine.recount("resume", "--yes", "--no-reboot")
    assert armed(machine)


def test_cloned_arena_is_refused_by_name(machine):
    machine.disk("sdc1", 8, 33, 256)
    subprocess.run(["cp", "--sparse=always", machine.root / "dev/sdb2", machine.root / "dev/sdc1"],
                   check=True)
    said = machine.recount("start", "--yes", "--no-reboot", code=3)
    assert "several partitions are labelled RECOUNT-ARENA: /dev/sdb2, /dev/sdc1" in said
    subprocess.run(["e2label", machine.root / "dev/sdc1", "COPY"], check=True)
    said = machine.recount("start", "--yes", "--no-reboot", code=3)
    assert "/dev/sdc1 has the UUID of /dev/sdb2" in said
    assert "tune2fs -U random /dev/sdc1" in said
    subprocess.run(["tune2fs", "-U", UUIDS["root"][:-1] + "9", machine.root / "dev/sdc1"],
                   check=True, capture_output=True)
    machine.start()


# --- limits ------------------------------------------------------------------------------------

def test_case_61_boots_used_up_disarm_everything(machine):
    before = machine.outside()
    canary_done(machine)
    plan = machine.plan()
    plan["limits"]["boots_max"] = 2
    machine.put(machine.tmp, f"campaigns/{campaign_id()}/plan.json", json.dumps(plan).encode())
    referee(machine)
    machine.grub_takes(machine.tmp)
    said = referee(machine)
    assert "not-reached" in said and "used up the 2 boots it was allowed" in said
    assert not armed(machine) and machine.active() is None
    assert machine.outside() == before and not (machine.root / LINK).exists()
    report = machine.get(f"campaigns/{campaign_id()}/report/report.txt").decode()
    assert report.startswith("ended early: the campaign used up the 2 boots")
    json.loads(machine.get(f"campaigns/{campaign_id()}/report/report.json"))


@contextlib.contextmanager
def mounted(m):
    folder = m.tmp / "mnt"
    folder.mkdir(exist_ok=True)
    m.flush()
    subprocess.run(["mount", m.loop, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(m):
    """Until not even root can write another byte."""
    with mounted(m) as folder:
        with open(folder / "filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(1 << 20))
        with open(folder / "filler", "ab", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(512))


def test_case_64_full_store_disarms_and_tells_what_it_holds(machine):
    """The canary has panicked, and there is no room to write that down."""
    machine.start()
    machine.grub_takes(machine.tmp)
    machine.put_reached(0, 1)
    keys = machine.keys()
    fill(machine)
    for _ in range(2):
        said = referee(machine, code=1)
        assert "No space left on device" in said
        assert f"what it holds of {campaign_id()}:" in said and "4 trials planned" in said
        assert not armed(machine) and machine.keys()["recount_taken"] == keys["recount_taken"]
    assert not machine.exists(f"campaigns/{campaign_id()}/boots/0000/failed-1.json")
    # With room again it goes on.
    with mounted(machine) as folder:
        (folder / "filler").unlink()
    assert "no-answer" in referee(machine) and armed(machine)


def test_case_64_full_store_when_the_next_attempt_is_to_be_written(machine):
    canary_done(machine)
    fill(machine)
    said = referee(machine, code=1)
    assert "No space left on device" in said and "what it holds of" in said
    assert not armed(machine)


def test_case_64_read_only_store_disarms_through_custom_cfg(machine):
    """The key is set and cannot be cleared; without the block GRUB does not look at it."""
    machine.start()
    assert armed(machine)
    subprocess.run(["blockdev", "--setro", machine.loop], check=True)
    try:
        for _ in range(2):
            said = referee(machine, code=1)
            assert f"what it holds of {campaign_id()}:" in said and "4 trials planned" in said
            assert not (machine.root / CUSTOM).exists()
            assert (machine.root / UNIT).exists()  # to go on when it can be written again
    finally:
        subprocess.run(["blockdev", "--setrw", machine.loop], check=True)
    assert_waits(machine, referee(machine), "recount's block in custom.cfg is missing")
    machine.recount("resume", "--yes", "--no-reboot")
    assert armed(machine)


@pytest.mark.parametrize("verb", ["check", "start"])
def test_case_64_store_without_room_is_refused_beforehand(machine, verb):
    fill(machine)
    before = machine.outside()
    words = ("--yes", "--no-reboot") if verb == "start" else ()
    said = machine.recount(verb, *words, code=3)
    assert "/dev/sdb1 has" in said and "the plan needs" in said
    assert machine.outside() == before and machine.active() is None


def late(m, armed_utc, made_utc=None):
    """The canary passed; boot 1 was armed at @armed_utc, taken, and never reached."""
    canary_done(m)
    if made_utc:
        plan = {**m.plan(), "created_utc": made_utc}
        m.put(m.tmp, f"campaigns/{campaign_id()}/plan.json", json.dumps(plan).encode())
    referee(m)
    record = attempt(m, 1, 1)
    record["armed_utc"] = armed_utc
    m.put_record(1, "attempt-1.json", record)
    m.grub_takes(m.tmp)
    return referee(m)


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


def test_case_59_person_at_the_button_is_asked(machine):
    said = late(machine, utc(time.time() - 7200), made_utc=utc(time.time() - 86400))
    assert_waits(machine, said, "a person must have come")
    assert "waits    the last boot ended long ago" in machine.recount("status")
    machine.recount("resume", "--yes", "--no-reboot")
    assert armed(machine) and attempt(machine, 1, 2)


@pytest.mark.parametrize("armed_utc", ["1970-01-01T00:02:11Z", utc(time.time() + 86400)],
                         ids=["1970", "tomorrow"])
def test_case_59_a_clock_that_jumped_calls_nobody(machine, armed_utc):
    said = late(machine, armed_utc)
    assert "not-reached; to be tried again" in said
    assert machine.keys()["recount_token"] == attempt(machine, 1, 2)["token"]


def test_status_lists_attempts_in_the_order_of_arming(machine):
    late(machine, utc(time.time() + 86400))
    said = machine.recount("status")
    events = said[said.index("last attempts"):].splitlines()[1:]
    assert ["boot 0" in events[0], "attempt 1" in events[1], "attempt 2" in events[2]] == [True] * 3
    assert "boot 1" in events[1] and "boot 1" in events[2] and len(events) == 3


@pytest.mark.parametrize("hours", [-5, 2])
def test_hardware_clock_in_local_time_is_known(machine, hours):
    folder = machine.root / "sys/class/rtc/rtc0"
    folder.mkdir(parents=True)
    (folder / "since_epoch").write_text(f"{int(time.time()) + hours * 3600}\n")
    machine.start()
    assert machine.plan()["rtc_offset_s"] == hours * 3600
    # A panic before recount-init carries the hardware clock's time.
    machine.grub_takes(machine.tmp)
    record = machine.root / "sys/fs/pstore/dmesg-efi-1"
    record.write_text("Panic#1 Part1\nKernel panic - not syncing: early\n")
    then = time.time() + hours * 3600 + 5
    os.utime(record, (then, then))
    assert "attempt 1: panic" in referee(machine)


def test_campaigns_are_named_in_their_order_when_the_clock_has_gone_back(machine):
    """resume and report take the last name for the newest campaign."""
    machine.debugfs("mkdir campaigns", "mkdir campaigns/2999-12-31-c", "mkdir campaigns/mine")
    machine.flush()
    machine.start()
    assert machine.active() == "2999-12-31-d"


def test_home_every_is_in_the_plan(machine):
    said = machine.recount("start", "--yes", "--no-reboot", "--rounds", "4", "--loads", "none",
                           "--home-every", "2")
    assert "8 trials in 8 boots" in said
    assert machine.plan()["home_every_rounds"] == 2
