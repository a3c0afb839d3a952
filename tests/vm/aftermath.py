# SPDX-License-Identifier: GPL-3.0-or-later
"""What a power cut has left on the disk, read from outside with the machine off, and judged.

examine() reads; Ledger knows what the console has promised and what earlier cuts have left, and
finds what is wrong with it. A trouble is a sentence; no sentences, no trouble.
"""
import collections
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

import campaign
import image

# What a trial's line on the console promises to be on the disk.
Promise = collections.namedtuple("Promise", "campaign boot attempt load jobs time status cause")
# An attempt; taken: GRUB had taken its one-shot; reached: the worker had seen its token.
Attempt = collections.namedtuple("Attempt", "campaign boot number token taken reached")

FILE_SYSTEMS = ("store", "root", "arena")
# A cut at home, once the next boot is armed, leaves the root dirty: the boot is not to blame, and
# the attempt not charged.
FREE = "root-dirty"


@dataclasses.dataclass
class Snapshot:
    """The store's files, {path: bytes}, and what was wrong with the file systems."""
    files: dict
    troubles: list

    def active(self):
        return self.files.get("active", b"").decode().strip()

    def campaigns(self):
        return sorted({path.split("/")[1] for path in self.files if path.startswith("campaigns/")})

    def keys(self):
        """GRUB's environment block as {name: value}."""
        text = self.files.get("grub/grubenv", b"").decode("latin-1")
        pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
        return dict(pair for pair in pairs if not pair[0].startswith("#"))

    def json(self, path):
        return json.loads(self.files[path])

    def numbered(self, name, stem):
        """{(boot, number): path} of a campaign's files STEM-N.json."""
        found = {}
        for path in self.files:
            match = re.fullmatch(rf"campaigns/{name}/boots/(\d+)/{stem}-(\d+)\.json", path)
            if match:
                found[int(match[1]), int(match[2])] = path
        return found

    def failures(self):
        """{(campaign, boot, attempt): reason}"""
        return {(name, *key): self.json(path)["reason"]
                for name in self.campaigns()
                for key, path in self.numbered(name, "failed").items()}

    def open_attempts(self):
        """The active campaign's attempts that nothing has come of yet."""
        name = self.active()
        armed, reached, done, failed = (self.numbered(name, stem) for stem in
                                        ("attempt", "reached", "done", "failed"))
        taken = self.keys().get("recount_taken")
        found = []
        for key in sorted(armed.keys() - done.keys() - failed.keys()):
            token = self.json(armed[key])["token"]
            found.append(Attempt(name, *key, token, taken == token, key in reached))
        return found

    def records(self, name):
        """{(boot, trial, attempt): record} of a campaign."""
        found = {}
        for path in self.files:
            match = re.fullmatch(rf"campaigns/{name}/boots/(\d+)/trial-(\d+)-(\d+)\.json", path)
            if match:
                found[tuple(int(group) for group in match.groups())] = self.json(path)
        return found


def _run(*argv):
    return subprocess.run([str(a) for a in argv], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")


def _file_system(path, name):
    """Replays the journal as the next mount would; then there must be nothing to correct."""
    replay = _run("e2fsck", "-p", path)
    if replay.returncode > 1:
        return [f"the {name} cannot be replayed: {replay.stdout.strip()}"]
    check = _run("e2fsck", "-fn", path)
    if check.returncode:
        return [f"the {name} is damaged: {replay.stdout.strip()}\n{check.stdout.strip()}"]
    return []


def _read_store(path, out):
    orders = (f"rdump /campaigns {out}\ndump /grub/grubenv {out}/grub/grubenv\n"
              f"dump /active {out}/active\n")
    # There is not always an `active`; whatever else is missing is missed later.
    subprocess.run(["debugfs", "-f", "/dev/stdin", str(path)], input=orders, text=True, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def examine(disk, work):
    """Snapshot of a disk whose machine is off; the disk itself is not written to."""
    work = pathlib.Path(work)
    scratch = image.overlay(disk, work / "after.qcow2")
    out = work / "after"
    shutil.rmtree(out, ignore_errors=True)
    (out / "grub").mkdir(parents=True)
    troubles = []
    for name in FILE_SYSTEMS:
        # e2fsck forgets an offset when it opens a file system again behind a replay.
        with image.exported(scratch.path, (disk.offsets[name], disk.sizes[name])) as path:
            troubles += _file_system(path, name)
            if name == "store":
                _read_store(path, out)
    files = {str(path.relative_to(out)): path.read_bytes()
             for path in sorted(out.rglob("*")) if path.is_file()}
    return Snapshot(files, troubles)


def shown(wall_ns):
    """A record's time as the console has it."""
    tenths = wall_ns // 100_000_000
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"


class Ledger:
    """What was promised and what was there, over all cuts of a run."""

    def __init__(self):
        self.promises = []
        self.kept = {}          # path: bytes of every file seen that may never change
        self.before = None      # the Snapshot of the cut before …
        self.before_number = 0  # … and its number
        self.boot = None        # (campaign, boot, attempt) that the console named last
        self.explained = {}     # failures that a cut accounts for: {key: number of the cut}
        self.ended = set()      # campaigns whose end was judged

    def listen(self, lines):
        """Takes promises from the whole console LINES of one switching on."""
        for event in campaign.events(lines):
            match = event.match
            if event.kind == "boot":
                self.boot = (match[1], int(match[2]), int(match[5]))
            elif event.kind == "trial":
                self.promises.append(Promise(*self.boot, match[1], int(match[2]), match[3],
                                             match[4], match[5]))

    def judge(self, number, now):
        """Troubles in the Snapshot after cut NUMBER, and in what came of the cut before it."""
        troubles = list(now.troubles)
        troubles += self._check_files(now)
        if troubles:
            return troubles  # what is not JSON cannot be judged any further
        troubles += [text for promise in self.promises for text in _check_promise(promise, now)]
        troubles += _check_key(now)
        if self.before is not None:
            troubles += self._check_cost(self.before_number, now)
        for name in set(now.campaigns()) - {now.active()} - self.ended:
            troubles += check_end(now, name, set(self.explained))
            self.ended.add(name)
        self.before, self.before_number = now, number
        return troubles

    def _check_files(self, now):
        troubles = []
        for path, data in now.files.items():
            if "/.tmp-" in path or not path.startswith("campaigns/"):
                continue
            if path.endswith(".json"):
                try:
                    json.loads(data)
                except ValueError as error:
                    troubles.append(f"{path}: {error}")
            if "/report/" in path:
                continue
            if not data:
                troubles.append(f"{path} is empty")
            if self.kept.setdefault(path, data) != data:
                troubles.append(f"{path} has changed")
        troubles += [f"{path} is gone" for path in self.kept.keys() - now.files.keys()]
        return troubles

    def _check_cost(self, number, now):
        """The cut before may have cost the attempt that was open then, and nothing else."""
        troubles = []
        hit = {(a.campaign, a.boot, a.number): a for a in self.before.open_attempts()}
        old = self.before.failures()
        for key, reason in now.failures().items():
            if key in old:
                continue
            self.explained[key] = number
            attempt = hit.get(key)
            if attempt is None:
                troubles.append(f"cut {number} cost {key} ({reason}), which it did not hit")
            elif reason == FREE and not attempt.taken:
                continue
            elif not attempt.taken and not attempt.reached:
                troubles.append(f"cut {number} came before GRUB took {key}, and cost it: {reason}")
            elif reason != ("no-answer" if attempt.reached else "not-reached"):
                troubles.append(f"cut {number}: {key} was booked as {reason}")
        return troubles


def _check_promise(promise, now):
    """What the console said was written is there, and says the same."""
    plan = now.json(f"campaigns/{promise.campaign}/plan.json")
    [trial] = [t["trial"] for b in plan["boots"] if b["boot"] == promise.boot
               for t in b["trials"] if t["load"] == promise.load]
    path = (f"campaigns/{promise.campaign}/boots/{promise.boot:04d}/"
            f"trial-{trial:02d}-{promise.attempt}.json")
    if path not in now.files:
        return [f"{path} was acknowledged and is lost"]
    record = now.json(path)
    is_there = (record["jobs"], shown(record["wall_ns"]) if "wall_ns" in record else "-",
                record["status"], (record.get("void") or [""])[0])
    if is_there != promise[4:8]:
        return [f"{path} says {is_there}, the console said {promise[4:8]}"]
    return []


def _check_key(now):
    """An armed key belongs to an attempt that is written down."""
    keys = now.keys()
    if not keys.get("next_entry"):
        return []
    tokens = [attempt.token for attempt in now.open_attempts()]
    if keys.get("recount_token") in tokens:
        return []
    return [f"the key is armed for {keys.get('recount_token')}, open is {tokens}"]


def _finished(plan, records):
    """Cells of the compared boots that have a record that counts."""
    cells = {(b["boot"], t["trial"]) for b in plan["boots"] if b["boot"] for t in b["trials"]}
    ok = {(boot, trial) for (boot, trial, _), r in records.items() if r["status"] == "ok"}
    return cells, cells & ok


def _check_attempts(now, name, plan, records, explained):
    """Every attempt has come to an end, and every boot that was given up had its attempts."""
    armed, done, failed = (now.numbered(name, stem) for stem in ("attempt", "done", "failed"))
    troubles = [f"{name}: boot {key} is neither done nor failed"
                for key in sorted(armed.keys() - done.keys() - failed.keys())]
    troubles += [f"{name}: boot {key} failed, and no cut accounts for it"
                 for key in sorted(failed) if (name, *key) not in explained]
    cells, ok = _finished(plan, records)
    retries = plan["limits"]["retries"]
    for boot, trial in sorted(cells - ok):
        tried = [key for key in armed if key[0] == boot and
                 (key in failed or (boot, trial, key[1]) in records)]
        free = [key for key in tried if key in failed and
                now.json(failed[key])["reason"] == FREE]
        if len(tried) - len(free) < retries:
            troubles.append(f"{name}: trial {trial} of boot {boot} was given up after "
                            f"{len(tried) - len(free)} attempts of its own")
    return troubles


def check_end(now, name, explained):
    """Troubles with a campaign that is over: its attempts, its counts, its report."""
    plan, records = now.json(f"campaigns/{name}/plan.json"), now.records(name)
    report = now.files.get(f"campaigns/{name}/report/report.txt", b"").decode()
    said = re.search(r"(\d+) trials planned: (\d+) ok, (\d+) given up, (\d+) to run",
                     " ".join(report.split()))
    if not said:
        return [f"{name} is over and has no report"]
    cells, ok = _finished(plan, records)
    if report.startswith("ended early"):
        return _check_early_end(now, name, plan)
    troubles = _check_attempts(now, name, plan, records, explained)
    counts = tuple(int(group) for group in said.groups())
    if counts != (len(cells), len(ok), len(cells) - len(ok), 0):
        troubles.append(f"{name}: the report says {said[0]}; on the store are {len(cells)} cells, "
                        f"{len(ok)} of them ok")
    return troubles


def _check_early_end(now, name, plan):
    """Only a canary that was cut short as often as it may be tried, or all boots used up."""
    armed, failed = now.numbered(name, "attempt"), now.numbered(name, "failed")
    canary = [key for key in failed if key[0] == 0]
    if len(canary) >= plan["limits"]["retries"] or len(armed) >= plan["limits"]["boots_max"]:
        return []
    return [f"{name} ended early after {len(armed)} boots, {len(canary)} failures of the canary"]
