#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole main job in a virtual machine: three kernels, two rounds, four loads, one table.

A machine with real GRUB and three Debian kernels is started, prepared and left alone; what it
prints is turned into live progress. Ends with the report and the store in build/demo/store.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

import campaign
import image
import machine as vm

ROUNDS, LOADS = 2, ("none", "mem", "io", "process")
MEMORY_MB = 256
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Progress:
    """Draws where the campaign is; one line that is redrawn on a terminal, else a line an event."""

    def __init__(self):
        self.begin_s = time.monotonic()
        self.boot_s = None
        self.boots = self.of = 0
        self.redraw = sys.stdout.isatty()
        self.first_boot_s = None

    def say(self, text, end="\n"):
        elapsed = int(time.monotonic() - self.begin_s)
        clear = "\r\033[K" if self.redraw else ""
        print(f"{clear}{elapsed // 60:3d}:{elapsed % 60:02d}  {text}", end=end, flush=True)

    def left(self):
        """Time left: the boots to come at the mean of those behind us."""
        if self.boots < 2:
            return ""
        mean = (self.boot_s - self.first_boot_s) / (self.boots - 1)
        minutes = max(1, round((self.of - self.boots + 1) * mean / 60))
        return f"about {minutes} min left"

    def on_event(self, event):
        match = event.match
        if event.kind == "boot":
            self.boot_s = event.at_s
            self.boots, self.of = int(match[2]), int(match[3])
            if self.boots == 1 and self.first_boot_s is None:
                self.first_boot_s = event.at_s
            what = "canary" if self.boots == 0 else f"boot {self.boots} of {self.of}"
            self.say(f"{what}   round {match[4]}   kernel {match[6]}   {self.left()}".rstrip())
        elif event.kind == "begin" and self.redraw:
            self.say(f"    {match[1]:<10} running", end="")
        elif event.kind == "trial":
            self.say(f"    {match[1]:<10}{match[3]:>8}   {match[4]} {match[5]}".rstrip())
        elif event.kind == "done":
            self.say(f"    done {match[1]} of {match[2]}   void {match[3]}   failed {match[4]}")


def workload(name):
    """(tree, target, options of prepare, words) of the demo's workload."""
    if name == "kernel":
        return "linux", "vmlinux", ["--config", "tinyconfig"], "vmlinux of a tinyconfig"
    return (*campaign.TREE_TOOLS, [], "make -C tools/lib/api")


def splits(events, boots_s):
    """Mean seconds of a measuring visit from reset to its first T0, by whose time it is."""
    parts = {"firmware and GRUB": [], "kernel": [], "ours": []}
    kernel_s = ours_s = None
    for event in events:
        if event.kind == "kernel":
            kernel_s = event.at_s
        elif event.kind == "ours":
            ours_s = event.at_s
            parts["firmware and GRUB"].append(kernel_s - max(s for s in boots_s if s <= kernel_s))
            parts["kernel"].append(ours_s - kernel_s)
        elif event.kind == "trial" and ours_s and ":" in event.match[3]:
            minutes, seconds = event.match[3].split(":")
            if event.match[1] == "none":
                parts["ours"].append(event.at_s - 60 * int(minutes) - float(seconds) - ours_s)
            ours_s = None
    return ", ".join(f"{name} {sum(row) / len(row):.1f} s" for name, row in parts.items() if row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=("tools", "kernel"))
    args = parser.parse_args()
    out = ROOT / "build/demo"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    begin_s = time.monotonic()
    base = image.prepare_disk({str(ROOT / "build/recount"): "/usr/local/sbin/recount",
                               str(ROOT / "build/recount-init"): "/usr/local/sbin/recount-init"},
                              out)
    accelerator = vm.accel()
    tree, target, options, words = workload(args.workload or
                                            ("kernel" if accelerator == "kvm" else "tools"))
    print(f"set-up of the virtual machine: {time.monotonic() - begin_s:.0f} s")
    print(f"workload: {words} of Debian's linux-source; accelerator: {accelerator.upper()}; "
          f"guest: {MEMORY_MB} MB, 2 CPUs")
    progress = Progress()
    disk = image.overlay(base, out / "disk.qcow2")
    with vm.Machine(disk, out / "console.log", memory_mb=MEMORY_MB, smp=2) as guest:
        guest.start()
        progress.say(f"machine on; its own kernel {guest.wait_shell(300)}")
        campaign.trust_tsc(guest)
        guest.run("recount check || true")
        progress.say("recount prepare: two builds, to prove that they give the same")
        print(campaign.prepare(guest, tree, target, *options, timeout_s=7200).err, end="")
        campaign.start(guest, f"--rounds {ROUNDS}", f"--loads {','.join(LOADS)}",
                       "--swap /dev/nvme0n1p4")
        progress.say("recount start: left alone from here on")
        events = campaign.follow(guest, 7200, progress.on_event)
        progress.say("at home again")
        campaign.take_store(guest, out / "store")
    print()
    subprocess.run([str(ROOT / "build/recount"), "report", str(out / "store")], check=True)
    records = [r for r in campaign.records(out / "store").values() if r["round"] > 0]
    ok = [r for r in records if r["status"] == "ok"]
    elapsed = time.monotonic() - progress.begin_s
    kernels = {json.loads(path.read_text())["proc_version"]
               for path in campaign.newest(out / "store").glob("boots/*/environment-*.json")}
    swapped = [r for r in ok if r["load"] == "mem" and r["swap_out_bytes"] > 0]
    print(f"\n{len(ok)} of {3 * ROUNDS * len(LOADS)} trials ok in {elapsed / 60:.1f} minutes; "
          f"{len(kernels)} kernels by /proc/version; {len(swapped)} mem trials swapped\n"
          f"a visit, reset to first T0: {splits(events, guest.boots_s)}\n"
          f"console: {out / 'console.log'}   results: {out / 'store'}")
    complete = len(ok) == 3 * ROUNDS * len(LOADS) and len(kernels) == 3 and \
        len(swapped) == 3 * ROUNDS
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
