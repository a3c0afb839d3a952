# SPDX-License-Identifier: GPL-3.0-or-later
"""A campaign inside the test machine: prepare, start, follow to its end, take the store home."""
import collections
import json
import pathlib
import re
import time

from image import Disk, extract_store
from machine import MachineError

BOOT = re.compile(r"recount: (\S+): boot (\d+) of (\d+), round (\d+), attempt (\d+): kernel (\S+)")
TRIAL = re.compile(r"recount:   (\S+) +-j(\d+) +(\S+) +(ok|void|failed|timeout|discarded)\b ?(\S*)")
BEGIN = re.compile(r"recount:   (\S+) +-j(\d+) +begins")
OURS = re.compile(r"recount: modules from /lib/modules/")
DONE = re.compile(r"recount: done (\d+) of (\d+), void (\d+), failed (\d+)")
KERNEL = re.compile(r"Linux version (\S+)")

Event = collections.namedtuple("Event", "at_s kind match")
OVER = r"campaign \S+ is over"
KINDS = {"boot": BOOT, "ours": OURS, "begin": BEGIN, "trial": TRIAL, "done": DONE, "kernel": KERNEL}

# What a root file system, a journal, the bench's shell and the referee can do without.
NEEDLESS_UNITS = (
    "systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket "
    "systemd-udev-trigger.service systemd-sysctl.service systemd-tmpfiles-setup.service "
    "systemd-user-sessions.service systemd-logind.service systemd-machine-id-commit.service "
    "getty.target serial-getty@ttyS0.service systemd-journal-catalog-update.service").split()

TREE_TOOLS = ("linux/tools", "-C lib/api")
TREE_TINY = ("tiny", "all")

# For the end of the tiny tree's Makefile: what the build does when the kernel's command line has
# the word.
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


def events(lines):
    """What happened, in order, out of a machine's console lines."""
    for line in lines:
        for kind, pattern in KINDS.items():
            match = pattern.search(line.text)
            if match:
                yield Event(line.at_s, kind, match)


def trust_tsc(machine):
    """For more than one CPU under TCG. Its CPUs share one clock, which 5.10 does not believe of this
    CPU model: it would ask the slow hpet. The entries take the word from the machine's own menu."""
    if machine.accelerator == "tcg":
        machine.run("sed -i 's/panic=10/& tsc=reliable/' /boot/grub/grub.cfg; sync")


def slim(machine):
    """Leaves out of the guest's further boots what the referee can do without."""
    machine.run(f"systemctl mask {' '.join(NEEDLESS_UNITS)} && sed -i '/ swap /d' /etc/fstab && sync")


def prepare(machine, tree, target, *options, timeout_s=900):
    """`recount prepare` in the running guest."""
    words = " ".join(options)
    return machine.run(f"recount prepare --tree {tree} --target '{target}' {words}", timeout_s)


def label(machine, series):
    """The label of the guest's kernel of a series."""
    return re.search(rf"^ +({re.escape(series)}\.\S+)", machine.run("recount kernels").out, re.M)[1]


def start(machine, *options):
    """`recount start` in the running guest, which then reboots into the canary."""
    machine.send("recount start --yes --notice 2 " + " ".join(options) +
                 " >/dev/console 2>&1")


def wait_idle_shell(machine, timeout_s):
    """Waits until the guest's shell answers, whatever boots lie in between."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return machine.run("uname -r", 20).out.strip()
        except MachineError:
            if not machine.running() or time.monotonic() > deadline:
                raise


def follow(machine, timeout_s, on_event=None, until=OVER):
    """Follows a campaign to a console line, by default its end; returns all events so far."""
    deadline = time.monotonic() + timeout_s
    told = 0
    while True:
        found = list(events(list(machine.lines)))
        for event in found[told:]:
            if on_event:
                on_event(event)
        told = len(found)
        if re.search(until, machine.console()):
            return found
        if not machine.running() or time.monotonic() > deadline:
            raise MachineError(f"no /{until}/ in {timeout_s} s\n" +
                               "\n".join(machine.console().splitlines()[-40:]))
        time.sleep(0.5)


def take_store(machine, out):
    """Waits for the guest's shell, switches it off in order and copies the store's files."""
    wait_idle_shell(machine, 300)
    machine.poweroff(180)
    return extract_store(Disk.load(machine.disk), out)


def newest(store):
    """Folder of the newest campaign in a copy of a store."""
    return sorted((pathlib.Path(store) / "campaigns").iterdir())[-1]


def records(store):
    """{(boot, trial, attempt): record} of the newest campaign in a copy of a store."""
    found = {}
    for path in sorted(newest(store).glob("boots/*/trial-*.json")):
        _, trial, attempt = path.stem.split("-")
        found[int(path.parent.name), int(trial), int(attempt)] = json.loads(path.read_text())
    return found


def start_held(machine, kernels, *appends, loads="none", options="", notice_s=2, **limits):
    """Plans and arms one round without a reboot: KERNELS, and entries LABEL=WORDS."""
    appended = " ".join(f"--append '{append}'" for append in appends)
    machine.run(f"recount start --yes --no-reboot --notice {notice_s} --rounds 1 --loads {loads} "
                f"--kernels '{kernels}' --seed 7 {options} {appended}", 120)
    if limits:
        change_limits(machine, **limits)


def change_limits(machine, **limits):
    """Other limits for the plan that `start --no-reboot` has just armed, in all that carry its hash."""
    edits = " ".join(rf"-e 's/(\"{key}\":[[:space:]]*)[0-9]+/\1{value}/'" for key, value in limits.items())
    machine.run(f"""set -e
mount LABEL=RECOUNT /mnt
cd "$(ls -d /mnt/campaigns/* | tail -n 1)"
old=$(sha256sum plan.json | cut -c 1-64)
sed -E -i {edits} plan.json
new=$(sha256sum plan.json | cut -c 1-64)
[ $old != $new ]
sed -i "s/$old/$new/" boots/0000/attempt-1.json /boot/grub/custom.cfg
cd /
umount /mnt
sync""")


def react(machine, timeout_s, reactions, until=OVER):
    """Follows the console to a line, by default a campaign's end. {pattern: function of the match}:
    called once for each new place, in the order of the console."""
    deadline = time.monotonic() + timeout_s
    done = 0
    while True:
        text = machine.console()
        # What a pattern has only begun with may go on in what comes next.
        found = sorted(((match, action) for pattern, action in reactions.items()
                        for match in re.compile(pattern, re.M).finditer(text, done)),
                       key=lambda pair: pair[0].end())
        for match, action in found:
            done = match.end()
            action(match)
        if over := re.search(until, text):
            return over
        if not machine.running() or time.monotonic() > deadline:
            raise MachineError(f"no /{until}/ in {timeout_s} s\n" + "\n".join(text.splitlines()[-40:]))
        time.sleep(0.3)


def files(store, boot, pattern="*"):
    """{name: text} of a boot's files in the newest campaign of a copy of a store."""
    folder = newest(store) / f"boots/{boot:04d}"
    return {path.name: path.read_text(errors="replace") for path in sorted(folder.glob(pattern))}


def failures(store):
    """{(boot, attempt): reason} of all failed-N.json."""
    return {(int(path.parent.name), int(path.stem.split("-")[1])):
            json.loads(path.read_text())["reason"]
            for path in newest(store).glob("boots/*/failed-*.json")}


def statuses(store):
    """{(boot, trial, attempt): status}, canary apart."""
    return {key: record["status"] for key, record in records(store).items() if key[0]}


def boot_of(store, word, but=None):
    """Number of the one boot after the canary whose entry has WORD on its command line, and not BUT."""
    plan = json.loads((newest(store) / "plan.json").read_text())
    words = {entry["label"]: entry["cmdline"].split() for entry in plan["entries"]}
    labels = {label for label, has in words.items() if word in has and but not in has}
    [number] = [boot["boot"] for boot in plan["boots"] if boot["boot"] and boot["entry"] in labels]
    return number


def token_of(store, boot, attempt):
    return json.loads(files(store, boot)[f"attempt-{attempt}.json"])["token"]
