# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts: at which moment each one comes, and which phase of the cycle it has hit.

Both are pure: a moment follows from seed and number, a phase from what the console said between
the last switching on and the cut.
"""
import collections
import random
import re

# A phase, the console line that opens it, and how long after that line an aimed cut may come, in
# seconds of an emulated machine (TCG). A phase lasts until the next one's line. GRUB begins with
# the firmware, which prints nothing. The delays end before the phases do, or a little after.
Phase = collections.namedtuple("Phase", "name opens delay_s")
PHASES = (
    Phase("GRUB", None, 3.0),
    Phase("kernel", r"Booting `", 8.0),
    Phase("reached", r"Run /recount-init as init process", 1.5),
    Phase("trial", r"recount:   \S+ +-j\d+ +begins", 3.0),
    Phase("record write", r"recount:   \S+ +-j\d+ +writes its record", 0.05),
    Phase("arming", r"recount: done \d+ of \d+", 0.03),
    Phase("unmount", r"recount: unmounting the store", 0.1),
    Phase("referee", r"Started (\S*recount-referee|recount)", 4.0),
)
NAMES = tuple(phase.name for phase in PHASES)
# About one cycle: home, the referee's reboot, a measuring boot with its trials.
CYCLE_S = 45.0
# Of a hundred cuts each phase gets so many at least.
LEAST_PERCENT = 3

# phase: the aimed-at Phase, or None for a moment out of the whole cycle.
Cut = collections.namedtuple("Cut", "number phase delay_s")


def plan_cut(seed, number, pace=1.0):
    """The NUMBERth cut of SEED: the odd ones aim at the phases in turn, the even ones at any moment
    of a cycle. PACE scales the delays to the machine: 1 for TCG."""
    share = random.Random(f"recount power cut {seed} {number}").random()
    if number % 2 == 0:
        return Cut(number, None, share * CYCLE_S * pace)
    phase = PHASES[number // 2 % len(PHASES)]
    return Cut(number, phase, share * phase.delay_s * pace)


def phase_of(lines):
    """Name of the phase in which a machine is whose console has said LINES since its firmware's
    start."""
    name = NAMES[0]
    for line in lines:
        for phase in PHASES:
            if phase.opens and re.search(phase.opens, line):
                name = phase.name
    return name


def too_few(hits, cuts):
    """Phases that CUTS cuts have hit too rarely; HITS: {name: number}."""
    return [name for name in NAMES if hits.get(name, 0) < LEAST_PERCENT * cuts // 100]


def histogram(hits, aimed):
    """Lines of a table: how many cuts fell into each phase, and how many were aimed at it."""
    yield f"{'phase':<14} hit aimed"
    for name in NAMES:
        count = hits.get(name, 0)
        yield f"{name:<14} {count:3d} {aimed.get(name, 0):5d}  {'#' * count}"
