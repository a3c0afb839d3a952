# SPDX-License-Identifier: GPL-3.0-or-later
"""stop, status, resume and uninstall from every state a campaign can be found in, twice in a row,
from outside (--root), as from a rescue system. Case 71 for all of them: after stop and uninstall
everything outside the store is as it was before `start`, byte for byte."""
import pytest

from storemachine import LINK, UNIT, Machine, campaign_id

CUSTOM = "boot/grub/custom.cfg"
MINE = "set timeout=3\n# mine"  # without a final newline


@pytest.fixture
def machine(tmp_path):
    m = Machine(tmp_path)
    m.write(CUSTOM, MINE)
    yield m
    m.detach()


# --- states: each is reached by what really leads there ----------------------------------------

def nothing(_):
    """A store with a prepared tree, and no campaign."""


def no_store(m):
    m.lose_store()


def armed(m):
    m.start()


def armed_without_its_store(m):
    m.start()
    m.lose_store()


def taken(m):
    m.start()
    m.grub_takes(m.tmp)


def reached(m):
    taken(m)
    m.put_reached(0, 1)


def done(m):
    reached(m)
    m.put_trial(0, 1, "discarded")
    m.put_done(0, 1)


def failed(m):
    reached(m)
    m.put_failed(0, 1, "panic")


def given_up(m):
    """The canary failed twice, and no referee has seen it yet."""
    failed(m)
    m.recount("resume", "--yes", "--no-reboot")
    m.grub_takes(m.tmp)
    m.put_failed(0, 2, "timeout")


def ended(m):
    given_up(m)
    m.recount("referee", "--notice", "0")


def stopped(m):
    m.start()
    m.recount("stop")


def block_without_unit(m):
    m.start()
    (m.root / LINK).unlink()
    (m.root / LINK).parent.rmdir()
    (m.root / UNIT).unlink()


def unit_without_block(m):
    m.start()
    m.write(CUSTOM, MINE)


def half_a_block(m):
    m.start()
    path = m.root / CUSTOM
    path.write_text(path.read_text().replace("### END recount ###\n", ""))


def no_archive(m):
    m.start()
    m.debugfs("rm recount.cpio")
    m.flush()


def damaged_active(m):
    m.start()
    m.put(m.tmp, "active", b"../../etc\n")


def empty_active(m):
    m.start()
    m.put(m.tmp, "active", b"")


def unknown_active(m):
    m.start()
    m.put(m.tmp, "active", b"2020-01-01-a\n")


def damaged_plan(m):
    m.start()
    path = f"campaigns/{campaign_id()}/plan.json"
    m.put(m.tmp, path, m.get(path)[:-200])


def damaged_grubenv(m):
    m.start()
    m.put(m.tmp, "grub/grubenv", b"")


def grubenv_filled_with_nul(m):
    """Left alone by a boot loader without a guard, this boots for ever (case 4)."""
    m.start()
    keys = m.keys()
    text = (f"# GRUB Environment Block\nnext_entry={keys['next_entry']}\n"
            f"recount_token={keys['recount_token']}\n")
    m.put(m.tmp, "grub/grubenv", text.encode().ljust(1024, b"\0"))


# --- verbs: (exit code, words) the first and the second time -----------------------------------

STOPPED, NONE, LEFT = "is stopped; its results stay", "nothing to do", "what was left of an earlier"
GONE = "nothing of recount is left outside"
GOES_ON, FINISHED = "goes on", "no campaign on the store is unfinished"
NO_STORE = "no partition is labelled RECOUNT"

TABLE = {  # state: {verb: (first, second)}; one entry: both times the same
    nothing: {"stop": [(0, NONE)], "uninstall": [(0, GONE)], "resume": [(3, FINISHED)],
              "status": [(0, "no active campaign and none on the store")]},
    no_store: {"stop": [(0, "no store found")], "uninstall": [(0, "no store found")],
               "resume": [(3, NO_STORE)], "status": [(3, NO_STORE)]},
    armed: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
            "resume": [(0, GOES_ON)], "status": [(0, "armed    recount-e01")]},
    armed_without_its_store: {
        "stop": [(0, "no store found")], "uninstall": [(0, "no store found")],
        "resume": [(3, NO_STORE)], "status": [(3, "recount uninstall removes it")]},
    taken: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
            "resume": [(0, "not-reached; to be tried again"), (0, GOES_ON)],
            "status": [(0, "open     boot 0 (6.1.0-9, round 0), attempt 1")]},
    reached: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
              "resume": [(0, "no-answer; to be tried again"), (0, GOES_ON)],
              "status": [(0, "attempt 1: reached")]},
    done: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
           "resume": [(0, GOES_ON)], "status": [(0, "next     boot 1 (")]},
    failed: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
             "resume": [(0, GOES_ON)], "status": [(0, "attempt 1: panic")]},
    given_up: {"stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
               "resume": [(3, "attempt 1: panic; attempt 2: timeout")],
               "status": [(0, "next     nothing: ended early: the trial boot")]},
    ended: {"stop": [(0, NONE)], "uninstall": [(0, GONE)], "resume": [(3, FINISHED)],
            "status": [(0, "0 of 4 trials finished\n")]},
    stopped: {"stop": [(0, NONE)], "uninstall": [(0, GONE)], "resume": [(0, GOES_ON)],
              "status": [(0, "0 of 4 trials finished; recount resume goes on")]},
    block_without_unit: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(0, GOES_ON)], "status": [(0, "armed    recount-e01")]},
    unit_without_block: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(0, GOES_ON)],
        "status": [(0, "waits    recount's block in custom.cfg is missing; recount resume")]},
    half_a_block: {
        "stop": [(1, "take recount's lines out by hand")],
        "uninstall": [(1, "take recount's lines out by hand")],
        "resume": [(3, "/boot/grub/custom.cfg has only one of the lines")],
        "status": [(0, "waits    recount's block in custom.cfg is missing")]},
    no_archive: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(0, GOES_ON)],
        "status": [(0, "waits    recount.cpio on the store is missing; recount resume")]},
    damaged_active: {
        "stop": [(0, "of a damaged name is stopped"), (0, NONE)],
        "uninstall": [(0, "of a damaged name is stopped"), (0, GONE)],
        "resume": [(0, GOES_ON)], "status": [(1, "recount stop ends it")]},
    empty_active: {
        "stop": [(0, "of a damaged name is stopped"), (0, NONE)],
        "uninstall": [(0, "of a damaged name is stopped"), (0, GONE)],
        "resume": [(0, GOES_ON)], "status": [(1, "recount stop ends it")]},
    unknown_active: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(3, "no campaign can go on without its plan; recount stop ends it")],
        "status": [(1, "cannot read campaigns/2020-01-01-a/plan.json")]},
    damaged_plan: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(3, "damaged or cut short")], "status": [(1, "damaged or cut short")]},
    damaged_grubenv: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(0, GOES_ON)], "status": [(0, "grub/grubenv on the store is damaged")]},
    grubenv_filled_with_nul: {
        "stop": [(0, STOPPED), (0, NONE)], "uninstall": [(0, STOPPED), (0, GONE)],
        "resume": [(0, GOES_ON)], "status": [(0, "armed    recount-e01")]},
}

CASES = [pytest.param(state, verb, id=f"{verb}-{state.__name__}")
         for state in TABLE for verb in ("stop", "uninstall", "resume", "status")]


def check_undone(m, verb, before, after_state, state):
    """Nothing is armed or active, and outside the store all is as before."""
    outside = m.outside()
    if state is half_a_block:  # which only a person can mend
        assert outside.pop(CUSTOM) == after_state.pop(CUSTOM)
        before = {path: what for path, what in before.items() if path != CUSTOM}
    assert outside == before
    if state in (no_store, armed_without_its_store):
        return
    assert m.active() is None
    if verb == "uninstall":
        assert not m.exists("recount.cpio") and not m.exists("grub")
    elif m.exists("grub/grubenv") and m.get("grub/grubenv"):
        assert not m.keys().get("next_entry") and not m.keys().get("recount_token")


@pytest.mark.parametrize("state, verb", CASES)
def test_case_71_every_verb_in_every_state(machine, state, verb):
    before = machine.outside()
    state(machine)
    found, image = machine.outside(), machine.image.read_bytes()
    words = ("--yes", "--no-reboot") if verb == "resume" else ()
    expected = TABLE[state][verb]
    first = None
    for code, said in (expected[0], expected[-1]):
        talk = machine.recount(verb, *words, code=code)
        assert said in talk
        if verb in ("stop", "uninstall"):
            check_undone(machine, verb, before, dict(found), state)
        elif verb == "status" or code:
            assert machine.outside() == found
        if verb == "status":
            assert machine.image.read_bytes() == image
        if verb == "resume" and code == 0:
            custom = (machine.root / CUSTOM).read_text()
            assert custom.startswith(MINE + "\n### BEGIN recount") and "### END recount" in custom
            assert (machine.root / LINK).is_symlink() and (machine.root / UNIT).exists()
            assert machine.active() == campaign_id() and machine.exists("recount.cpio")
            assert machine.keys()["next_entry"].startswith("recount-e")
            # The second time arms what the first did.
            token = machine.keys()["recount_token"]
            assert first in (None, token)
            first = token


# Without a store there is nothing to start on, and half a block a person has to mend first.
STARTABLE = [s for s in TABLE if s not in (no_store, armed_without_its_store, half_a_block)]


@pytest.mark.parametrize("state", STARTABLE, ids=lambda s: s.__name__)
def test_after_stop_a_new_campaign_can_start(machine, state):
    state(machine)
    machine.recount("stop")
    said = machine.start()
    assert "is armed" in said and machine.keys()["next_entry"] == "recount-e01"
