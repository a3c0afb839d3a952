#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the fuzz targets one after the other, each for so many seconds, and measures how many of its
parser's lines its corpus reaches.

usage: run.py BUILD SECONDS [TARGET…]

With 0 seconds only the seeds and what was found before are run, which takes as long as it takes.
BUILD/TARGET is the target with sanitizers, BUILD/cov/TARGET the same for coverage. Inputs that reach
something new stay in BUILD/corpus/TARGET, so that the next run goes on from there; an input that
breaks a property goes to BUILD/found. Exit 1 when there is one, or when less than MIN_PERCENT of the
lines of the files behind "covers:" in tests/fuzz/TARGET.c are reached.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import seeds

HERE = pathlib.Path(__file__).resolve().parent
MIN_PERCENT = 80
MEMORY_MB = 1024
INPUT_SECONDS = 20  # an input that takes longer is a finding


def covered_files(target):
    """What the target's source says it covers."""
    text = (HERE / f"{target}.c").read_text(encoding="utf-8")
    lines = re.findall(r"covers: *((?:[a-z0-9_]+/[a-z0-9_]+\.c *)+)", text)
    return " ".join(lines).split()


def environment(tmp):
    """With a folder in memory for what the target writes."""
    return dict(os.environ, TMPDIR=str(tmp), LLVM_PROFILE_FILE=str(tmp / "profile.raw"),
                UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS="detect_stack_use_after_return=1")


def fuzz(build, target, seconds, tmp):
    """(runs, runs a second, what it printed when it found something or None)"""
    corpus, found = build / "corpus" / target, build / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    argv = [build / target, f"-max_total_time={seconds}" if seconds else "-runs=0", f"-rss_limit_mb={MEMORY_MB}",
            f"-timeout={INPUT_SECONDS}", "-print_final_stats=1", f"-artifact_prefix={found}/{target}-"]
    words = build / "seeds" / f"{target}.dict"
    if words.exists():
        argv.append(f"-dict={words}")
    argv += [corpus, build / "seeds" / target]
    done = subprocess.run([str(word) for word in argv], env=environment(tmp), check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    stats = dict(re.findall(r"stat::(\w+): *(\d+)", done.stdout))
    return (int(stats.get("number_of_executed_units", 0)),
            int(stats.get("average_exec_per_sec", 0)),
            re.sub(r"(?m)^(#|INFO:|stat::).*\n", "", done.stdout) if done.returncode else None)


def coverage(build, target, tmp):
    """{file: (lines reached, lines)}"""
    binary, profile = build / "cov" / target, tmp / "profile"
    subprocess.run([binary, "-runs=0", build / "corpus" / target, build / "seeds" / target],
                   env=environment(tmp), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", profile, tmp / "profile.raw"],
                   check=True)
    files = covered_files(target)
    report = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}",
                             binary, *files], check=True, stdout=subprocess.PIPE, text=True)
    lines = {}
    for entry in json.loads(report.stdout)["data"][0]["files"]:
        found = entry["summary"]["lines"]
        lines[os.path.relpath(entry["filename"])] = (found["covered"], found["count"])
    missing = set(files) - set(lines)
    if missing or not files:
        sys.exit(f"{target}: no coverage of {' '.join(missing) or 'anything'}")
    return lines


def run(build, target, seconds):
    """True when all is well; prints one line of the table, or what was found."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="recount-fuzz-", dir=memory))
    try:
        runs, rate, finding = fuzz(build, target, seconds, tmp)
        if finding:
            print(f"{target:13} FINDING\n{finding[-4000:]}", flush=True)
            return False
        lines = coverage(build, target, tmp)
    finally:
        shutil.rmtree(tmp)
    reached, count = (sum(numbers) for numbers in zip(*lines.values()))
    each = " ".join(f"{name} {100 * r // n}%" for name, (r, n) in lines.items())
    enough = 100 * reached >= MIN_PERCENT * count
    print(f"{target:13} {runs:>10} {rate:>8} {100 * reached / count:>6.1f}%{' ' if enough else '!'} "
          f"{each}", flush=True)
    return enough


def main():
    """The table; exit code."""
    if len(sys.argv) < 3 or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    build, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    targets = sys.argv[3:] or sorted(path.stem for path in HERE.glob("*.c"))
    seeds.make(build / "seeds")
    print(f"{'target':13} {'runs':>10} {'runs/s':>8} {'lines':>7}  of its parser's files")
    failed = [target for target in targets if not run(build, target, seconds)]
    if failed:
        sys.exit(f"failed (a finding in {build}/found, or less than {MIN_PERCENT} % of the lines): "
                 f"{' '.join(failed)}")


if __name__ == "__main__":
    main()
