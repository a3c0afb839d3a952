#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts the power of a machine in the middle of its campaigns, again and again.

Each cut is a SIGKILL of QEMU, whose write cache is honest, at a moment that follows from the seed
and the cut's number (cuts.py). After each the disk is judged from outside (aftermath.py) and the
machine is switched on again; campaigns follow each other, and the last one has to come to its end.
Leaves consoles, the disk and a line a cut in build/torture.
"""
import argparse
import collections
import json
import pathlib
import sys
import time

import aftermath
import campaign
import cuts
import image
import machine as vm
import small_disk

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {ROOT / "build/recount": "/usr/local/sbin/recount",
            ROOT / "build/recount-init": "/usr/local/sbin/recount-init"}
MEMORY_MB = 256
ROUNDS = 6
LOADS = "none,process"
KVM_PACE = 0.2
STEP_S = 240     # longer than anything between two console lines that are waited for
LONGEST_END_S = 1200


class TortureError(Exception):
    """A cut has broken something, or the machine did not go on; the text says what."""


class Torture:
    """One run of cuts over one disk."""

    def __init__(self, folder, seed, programs=None, say=print):
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.seed, self.say = seed, say
        base, self.release = small_disk.build(programs or PROGRAMS, self.folder)
        self.disk = image.overlay(base, self.folder / "disk.qcow2")
        self.pace = KVM_PACE if vm.accel() == "kvm" else 1.0
        self.ledger = aftermath.Ledger()
        self.campaigns = 0
        self.is_active = False

    def machine(self, name):
        log = self.folder / f"console-{name}.log"
        log.unlink(missing_ok=True)
        return vm.Machine(self.disk, log, memory_mb=MEMORY_MB)

    # -- one switching on --

    def begin(self, guest):
        """Starts the next campaign at home, and waits until the machine has gone off for it. This
        is the one part of the cycle that is not cut: a person is there."""
        guest.wait_shell(STEP_S)
        self.campaigns += 1
        boots = len(guest.boots_s)
        # The referee may have the store for a moment; then `start` is refused.
        guest.send(f"for i in 1 2 3 4 5; do recount start --yes --notice 1 --rounds {ROUNDS} "
                   f"--loads {LOADS} --kernels '{self.release}' --seed {self.campaigns} && break; "
                   "sleep 2; done >/dev/console 2>&1")
        deadline = time.monotonic() + STEP_S
        while len(guest.boots_s) == boots:
            if time.monotonic() > deadline or not guest.running():
                raise TortureError("`recount start` did not reboot the machine\n" +
                                   "\n".join(guest.console().splitlines()[-30:]))
            time.sleep(0.05)
        guest.wait(r"\Z", STEP_S)  # lines of the boot at home are no phases of the campaign
        self.is_active = True

    def wait(self, guest, pattern, timeout_s):
        """Waits for a console line; when a campaign ends before it comes, begins the next. Returns
        whether one was begun."""
        found = guest.wait(rf"(?P<over>{campaign.OVER})|(?:{pattern})", timeout_s)
        if not found["over"]:
            return False
        self.is_active = False
        self.begin(guest)
        return True

    def await_moment(self, guest, cut):
        """Returns at the moment of the cut."""
        if not self.is_active:
            self.begin(guest)
        if cut.phase is None:
            self.await_time(guest, cut.delay_s)
            return
        while cut.phase.opens and self.wait(guest, cut.phase.opens, STEP_S):
            pass
        time.sleep(cut.delay_s)

    def await_time(self, guest, delay_s):
        """As long after the firmware's start; a new campaign begins a new cycle."""
        while True:
            left = guest.boots_s[-1] + delay_s - time.monotonic()
            if not self.campaign_ends(guest, left):
                return
            self.begin(guest)

    def campaign_ends(self, guest, within_s):
        try:
            guest.wait(campaign.OVER, max(0, within_s))
        except vm.MachineError:
            if not guest.running():
                raise
            return False
        self.is_active = False
        return True

    # -- cuts --

    def cut(self, number):
        """One power cut and its judgement; returns what is to be kept of it."""
        began_s = time.monotonic()
        cut = cuts.plan_cut(self.seed, number, self.pace)
        guest = self.machine(f"{number:03d}")
        try:
            guest.start()
            self.await_moment(guest, cut)
        finally:
            guest.kill()
        after_s = time.monotonic()
        phase = cuts.phase_of(line.text for line in guest.lines
                              if line.at_s >= guest.boots_s[-1])
        self.ledger.listen(guest.lines)
        self.judge(number)
        return {"cut": number, "seed": self.seed, "aim": cut.phase.name if cut.phase else None,
                "delay_s": round(cut.delay_s, 3), "phase": phase,
                "cut_after_s": round(after_s - began_s, 1),
                "took_s": round(time.monotonic() - began_s, 1)}

    def judge(self, number):
        now = aftermath.examine(self.disk, self.folder)
        troubles = self.ledger.judge(number, now)
        if troubles:
            raise TortureError(f"after cut {number}:\n  " + "\n  ".join(troubles))
        self.is_active = bool(now.active())

    def finish(self, number):
        """Lets the campaign come to its end, without cuts, and judges all that is left."""
        with self.machine("end") as guest:
            guest.start()
            if self.is_active:
                guest.wait(campaign.OVER, LONGEST_END_S)
            guest.wait_shell(STEP_S)
            guest.poweroff(STEP_S)
            self.ledger.listen(guest.lines)
        self.judge(number)
        if self.is_active:
            raise TortureError("the campaign is over and still active")

    def run(self, numbers, keep=lambda row: None):
        """All cuts and the end; KEEP is called with each cut's row. Returns the rows."""
        rows = []
        for number in numbers:
            row = self.cut(number)
            rows.append(row)
            keep(row)
            aim = f"at {row['aim']}" if row["aim"] else "at any moment"
            self.say(f"cut {number:3d} {aim:<16} +{row['delay_s']:5.2f} s: {row['phase']:<12} "
                     f"{row['took_s']:5.1f} s; {len(self.ledger.promises)} trials acknowledged, "
                     f"{len(self.ledger.explained)} attempts lost, campaign {self.campaigns}")
        self.finish(numbers[-1])
        return rows


def read_rows(path, seed, first):
    """The rows of an earlier run with this seed that end before the cut FIRST."""
    if first == 1 or not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row["seed"] == seed and row["cut"] < first]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=1, dest="first",
                        help="goes on with this cut; earlier ones of the same seed count")
    args = parser.parse_args()
    folder = ROOT / "build/torture"
    begin_s = time.monotonic()
    torture = Torture(folder, args.seed, say=lambda text: print(text, flush=True))
    print(f"set-up: {time.monotonic() - begin_s:.0f} s; accelerator {vm.accel().upper()}",
          flush=True)
    kept = folder / "cuts.jsonl"
    rows = read_rows(kept, args.seed, args.first)
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def keep(row):
        rows.append(row)
        with open(kept, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")

    begin_s = time.monotonic()
    try:
        torture.run(range(args.first, args.cuts + 1), keep)
    except (TortureError, vm.MachineError) as error:
        print(f"\nFAILED: {error}\nconsoles and disk: {folder}; to go on: make torture "
              f"CUTS={args.cuts} SEED={args.seed} FROM={len(rows) + 1}")
        return 1
    elapsed_s = time.monotonic() - begin_s
    hits = collections.Counter(row["phase"] for row in rows)
    aimed = collections.Counter(row["aim"] for row in rows)
    print("\n" + "\n".join(cuts.histogram(hits, aimed)))
    here = args.cuts - args.first + 1
    print(f"{here} cuts in {elapsed_s / 60:.1f} minutes, the last campaign's end included: "
          f"{elapsed_s / here:.1f} s a cut; {torture.campaigns} campaigns, "
          f"{len(torture.ledger.promises)} trials acknowledged, none lost; "
          f"{len(torture.ledger.explained)} attempts lost to cuts")
    if few := cuts.too_few(hits, len(rows)):
        print(f"FAILED: hit too rarely: {', '.join(few)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
