# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts: a few in a real campaign, and whether the judge of the aftermath sees what is wrong.
"""
import collections
import copy
import json

import aftermath
import cuts
import pytest
import torture
from conftest import missing, programs, unavailable

Line = collections.namedtuple("Line", "at_s text")

ID = "2026-12-01-a"
BOOTS = f"campaigns/{ID}/boots"
CONSOLE = """\
  Booting `recount 5.10.0-46'
Loading Linux 5.10.0-46-cloud-amd64 ...
[    0.000000] Linux version 5.10.0-46-cloud-amd64
[    3.201000] Run /recount-init as init process
[    3.402000] recount: 2026-12-01-a: boot 1 of 6, round 1, attempt 1: kernel 5.10.0-46
[    4.100000] recount:   none         -j1   begins
[    7.200000] recount:   none         -j1   writes its record
[    7.300000] recount:   none         -j1       0:01.2   ok
[    7.400000] recount:   process      -j1   begins
[   11.200000] recount:   process      -j1   writes its record
[   11.300000] recount:   process      -j1       0:02.3   void not-cold
[   11.500000] recount: done 2 of 12, void 0, failed 0
[   11.600000] recount: unmounting the store
[   11.700000] recount: rebooting
""".splitlines()


# --- moments and phases --------------------------------------------------------------------------

def test_moments_follow_from_seed_and_number_alone():
    first = [cuts.plan_cut(1, number) for number in range(1, 101)]
    assert first == [cuts.plan_cut(1, number) for number in reversed(range(1, 101))][::-1]
    other = [cuts.plan_cut(2, number) for number in range(1, 101)]
    assert not {cut.delay_s for cut in first} & {cut.delay_s for cut in other}
    aimed = [cut for cut in first if cut.phase]
    assert len(aimed) == 50
    assert all(0 <= cut.delay_s < cut.phase.delay_s for cut in aimed)
    assert [cut.phase.name for cut in aimed[:8]] == list(cuts.NAMES)
    free = sorted(cut.delay_s for cut in first if not cut.phase)
    assert free[0] < cuts.CYCLE_S * 0.1 and free[-1] > cuts.CYCLE_S * 0.9


@pytest.mark.parametrize("lines, phase", [
    (0, "GRUB"), (1, "kernel"), (3, "kernel"), (4, "reached"), (5, "reached"), (6, "trial"),
    (7, "record write"), (8, "record write"), (9, "trial"), (12, "arming"), (13, "unmount"),
    (14, "unmount"),
])
def test_phase_is_read_from_the_console(lines, phase):
    assert cuts.phase_of(CONSOLE[:lines]) == phase


def test_phase_at_home_is_the_referees():
    home = ["  Booting `Debian GNU/Linux'", "[  OK  ] Started bench-shell.servic…h shell",
            "[  OK  ] Started recount-referee.se… goes on with the active campaign."]
    assert cuts.phase_of(home[:2]) == "kernel"
    assert cuts.phase_of(home) == "referee"


def test_each_phase_needs_three_hits_in_a_hundred():
    hits = dict.fromkeys(cuts.NAMES, 3)
    assert cuts.too_few(hits, 100) == []
    hits["unmount"] = 2
    assert cuts.too_few(hits, 100) == ["unmount"]
    del hits["GRUB"]
    assert cuts.too_few(hits, 100) == ["GRUB", "unmount"]
    assert cuts.too_few({}, 4) == []


# --- the judge -----------------------------------------------------------------------------------

def record(load, status="ok", wall_ns=1_234_000_000, void=()):
    value = {"schema": 1, "load": load, "jobs": 1, "status": status, "wall_ns": wall_ns}
    return {**value, "void": list(void)} if void else value


def files_of(block, **values):
    """Files of a store in which a campaign of two boots is active."""
    plan = {"boots": [{"boot": b, "trials": [{"trial": 1, "load": "none"},
                                             {"trial": 2, "load": "process"}]} for b in (0, 1, 2)],
            "limits": {"retries": 2, "boots_max": 14}}
    files = {"active": f"{ID}\n".encode(), "grub/grubenv": block.encode(),
             f"campaigns/{ID}/plan.json": json.dumps(plan).encode()}
    for name, value in values.items():
        boot, stem = name[1:].split("_", 1)
        path = f"{BOOTS}/{int(boot):04d}/{stem.replace('_', '-')}.json"
        files[path] = json.dumps(value).encode()
    return files


def block(key="", token="", taken=""):
    return ("# GRUB Environment Block\n"
            f"next_entry={key}\nrecount_token={token}\nrecount_taken={taken}\n").ljust(1024, "#")


CANARY = {"b0_attempt_1": {"token": "t-0-1"}, "b0_reached_1": {"token": "t-0-1"},
          "b0_done_1": {"token": "t-0-1"}, "b0_trial_01_1": record("none", "discarded")}
# In its second trial: taken, reached, the first record acknowledged.
RUNNING = {**CANARY, "b1_attempt_1": {"token": "t-1-1"}, "b1_reached_1": {"token": "t-1-1"},
           "b1_trial_01_1": record("none")}


def judged(before, after, console=()):
    """Troubles of a second cut, with what was there after the first."""
    ledger = aftermath.Ledger()
    assert ledger.judge(1, aftermath.Snapshot(before, [])) == []
    ledger.listen([Line(0.0, line) for line in console])
    return ledger.judge(2, aftermath.Snapshot(after, []))


def test_what_was_acknowledged_and_is_there_is_no_trouble():
    files = files_of(block(taken="t-1-1"), **RUNNING)
    assert judged(files, files, CONSOLE[:9]) == []


@pytest.mark.parametrize("changed, word", [
    ({"b1_trial_01_1": None}, "is lost"),
    ({"b1_trial_01_1": record("none", wall_ns=1_345_000_000)}, "the console said"),
    ({"b1_trial_01_1": record("none", "void", void=["not-cold"])}, "the console said"),
])
def test_what_was_acknowledged_and_is_not_so_is_found(changed, word):
    values = {name: value for name, value in {**RUNNING, **changed}.items() if value}
    files = files_of(block(taken="t-1-1"), **values)
    [trouble] = judged(files, files, CONSOLE[:9])
    assert word in trouble


@pytest.mark.parametrize("damage, word", [
    (lambda files, path: files.pop(path), "is gone"),
    (lambda files, path: files.update({path: files[path] + b" "}), "has changed"),
    (lambda files, path: files.update({path: files[path][:-1]}), "trial-01-1.json: "),
    (lambda files, path: files.update({path: b""}), "trial-01-1.json: "),
])
def test_what_becomes_of_a_file_is_seen(damage, word):
    before = files_of(block(taken="t-1-1"), **RUNNING)
    after = copy.deepcopy(before)
    damage(after, f"{BOOTS}/0001/trial-01-1.json")
    assert word in judged(before, after)[0]


def test_a_leftover_temporary_file_is_no_trouble():
    before = files_of(block(taken="t-1-1"), **RUNNING)
    after = {**before, f"{BOOTS}/0001/.tmp-trial-02-1.json": b"{"}
    assert judged(before, after) == [] and judged(after, before) == []


@pytest.mark.parametrize("taken, failed, word", [
    ("t-1-1", {"b1_failed_1": {"reason": "no-answer"}}, None),
    ("t-1-1", {"b1_failed_1": {"reason": "not-reached"}}, "was booked as not-reached"),
    ("t-1-1", {"b1_failed_1": {"reason": "no-answer"}, "b2_attempt_1": {"token": "t-2-1"},
               "b2_failed_1": {"reason": "no-answer"}}, "which it did not hit"),
])
def test_a_cut_costs_no_more_than_the_attempt_it_hit(taken, failed, word):
    before = files_of(block(taken=taken), **RUNNING)
    troubles = judged(before, files_of(block(taken=taken), **RUNNING, **failed))
    assert troubles == [] if word is None else word in troubles[0]


@pytest.mark.parametrize("taken, reason, word", [
    ("t-0-1", "not-reached", "came before GRUB took"), ("t-0-1", "root-dirty", None),
    ("t-1-1", "root-dirty", "was booked as root-dirty"),
])
def test_a_cut_before_grub_took_the_one_shot_costs_nothing(taken, reason, word):
    armed = {**CANARY, "b1_attempt_1": {"token": "t-1-1"}}
    before = files_of(block("recount-e01", "t-1-1", taken), **armed)
    after = files_of(block("", "t-1-1", "t-1-1"), **armed, b1_failed_1={"reason": reason})
    troubles = judged(before, after)
    assert troubles == [] if word is None else word in troubles[0]


def test_a_key_without_its_attempt_is_found():
    before = files_of(block("", "t-0-1", "t-0-1"), **CANARY)
    after = files_of(block("recount-e01", "t-1-1", "t-0-1"), **CANARY)
    assert "the key is armed for t-1-1" in judged(before, after)[0]


def over(report, **values):
    files = files_of(block(taken="t-2-1"), **CANARY, **values)
    del files["active"]
    files[f"campaigns/{ID}/report/report.txt"] = report.encode()
    return files


COMPLETE = {f"b{b}_{name}": value for b in (1, 2) for name, value in (
    ("attempt_1", {"token": f"t-{b}-1"}), ("reached_1", {"token": f"t-{b}-1"}),
    ("done_1", {"token": f"t-{b}-1"}), ("trial_01_1", record("none")),
    ("trial_02_1", record("process")))}
LOST = {"b2_attempt_2": {"token": "t-2-2"}, "b2_failed_1": {"reason": "no-answer"},
        "b2_failed_2": {"reason": "not-reached"}}
SAYS = "4 trials planned: {} ok, {} given up, {} to run (canary apart);\n    records void 0"


@pytest.mark.parametrize("report, changed, without, word", [
    (SAYS.format(4, 0, 0), {}, (), None),
    (SAYS.format(3, 1, 0), {}, (), "the report says"),
    (SAYS.format(4, 0, 0), {}, ("b2_done_1",), "neither done nor failed"),
    (SAYS.format(3, 1, 0), {}, ("b2_trial_02_1",), "given up after 0 attempts"),
    (SAYS.format(3, 1, 0), LOST, ("b2_trial_02_1", "b2_done_1"), "no cut accounts for it"),
    (SAYS.format(3, 1, 0), {**LOST, "b2_failed_1": {"reason": "root-dirty"}},
     ("b2_trial_02_1", "b2_done_1"), "given up after 1 attempts"),
    ("", {}, (), "has no report"),
    ("ended early: …\n" + SAYS.format(2, 0, 2), {}, (), "ended early after 3 boots"),
])
def test_the_end_of_a_campaign_adds_up(report, changed, without, word):
    values = {name: value for name, value in {**COMPLETE, **changed}.items()
              if name not in without}
    now = aftermath.Snapshot(over(report, **values), [])
    troubles = aftermath.check_end(now, ID, set())
    assert troubles == [] if word is None else any(word in trouble for trouble in troubles)


def test_a_boot_that_two_cuts_have_hit_may_be_given_up():
    values = {**COMPLETE, **LOST}
    del values["b2_done_1"], values["b2_trial_02_1"]
    now = aftermath.Snapshot(over(SAYS.format(3, 1, 0), **values), [])
    assert aftermath.check_end(now, ID, {(ID, 2, 1), (ID, 2, 2)}) == []


# --- for real ------------------------------------------------------------------------------------

def test_a_few_power_cuts(tmp_path):
    """While a record is written, while a boot is armed, in the referee, and at any moment."""
    if reason := missing():
        unavailable(reason)
    run = torture.Torture(tmp_path, 1, programs())
    rows = run.run((9, 11, 15, 2))
    assert [row["aim"] for row in rows] == ["record write", "arming", "referee", None]
    assert run.ledger.promises and run.campaigns >= 1
