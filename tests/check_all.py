# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests and writes down what became of each: `make check-all`, after the build.

The result file build/check-all-DATE.txt has the closing lines of the runners, then a line for each
test: result, seconds, name. The result of a unit test has no time, its program has. What has ended is
in it, also when the rest is stopped.
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

TESTS = pathlib.Path(__file__).resolve().parent
BUILD = TESTS.parent / "build"
PYTEST = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
MACHINES = ["-n", "2", "--dist", "loadgroup", "-m"]
# {runner: its command}; those of pytest write a file of results as well.
RUNNERS = {
    "unit": ["make", "--no-print-directory", "check-unit", "PROVE=prove --verbose --timer"],
    "cli": [*PYTEST, "tests/cli"],
    "vm": [*PYTEST, *MACHINES, "not long", "tests/vm"],
    "long": [*PYTEST, *MACHINES, "long and not hours", "tests/vm"],
}
# Of prove: a program begins, one of its tests, its end.
BEGIN = re.compile(r"(?:\[\S+\] )?build/tests/(\w+)\s*\.+\s*$")
TEST = re.compile(r"(not )?ok \d+(?: - (\w+))?(.*)")
END = re.compile(r"(?:\[\S+\] )?(?:build/tests/(\w+)\s*\.+ *)?(ok|skipped|Failed \S+|Dubious)\b"
                 r"(?:.*?(\d+) ms)?")


def tap_results(lines):
    """[(result, seconds or None, name)] of prove's output."""
    found, program = [], None
    for line in lines:
        if match := BEGIN.fullmatch(line.rstrip()):
            program = match[1]
        elif program and (match := TEST.match(line)):
            result = "failed" if match[1] else "skipped" if "skip" in match[3].lower() else "passed"
            found.append((result, None, f"{program}: {match[2] or '?'}"))
        elif program and (match := END.match(line)):
            seconds = int(match[3]) / 1000 if match[3] else None
            found.append(("passed" if match[2] == "ok" else "failed", seconds, program))
            program = None
    return found


def junit_results(path):
    """[(result, seconds, name)] of a file that pytest wrote; none when it did not."""
    if not path.exists():
        return []
    found = []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        result = {"skipped": "skipped"}.get(bad[0], "failed") if bad else "passed"
        found.append((result, float(case.get("time")),
                      f"{case.get('classname').removeprefix('tests.')}: {case.get('name')}"))
    return found


def closing(lines):
    """What a runner says at its end."""
    last = [line.strip("= \n") for line in lines if line.strip()][-2:]
    return last if last and last[-1].startswith("Result:") else last[-1:]


def report(head, ends, results):
    """The text of the result file. ends: {runner: (seconds, lines)}; results: {runner: [(…)]}"""
    lines = [head, ""]
    for runner, (seconds, said) in ends.items():
        lines += [f"{runner:5}{line}" for line in said] + [f"{runner:5}{seconds:.0f} s in all"]
    for runner, found in results.items():
        lines.append("")
        for result, seconds, name in found:
            time_text = "" if seconds is None else f"{seconds:.1f} s"
            lines.append(f"{result:8}{time_text:>10}  {runner} {name}")
    return "\n".join(lines) + "\n"


def about():
    """Which tree was tried, when and where."""
    def output(*argv):
        return subprocess.run(argv, cwd=TESTS, check=False, capture_output=True,
                              text=True).stdout.strip()
    tree = output("git", "describe", "--always", "--dirty") or "no git tree"
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"recount, all tests: {now:%Y-%m-%d %H:%M} UTC, tree {tree}, {os.cpu_count()} CPUs, " \
           f"Linux {os.uname().release}"


def run(argv):
    """(status, output lines), shown as it comes."""
    with subprocess.Popen(argv, cwd=TESTS.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as process:
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, lines


def main():
    head, ends, results, failed = about(), {}, {}, []
    path = BUILD / f"check-all-{datetime.date.today()}.txt"
    for runner, argv in RUNNERS.items():
        junit = BUILD / f"check-all-{runner}.xml"
        junit.unlink(missing_ok=True)
        started_s = time.monotonic()
        status, lines = run(argv if runner == "unit" else [*argv, f"--junitxml={junit}"])
        ends[runner] = time.monotonic() - started_s, closing(lines)
        results[runner] = tap_results(lines) if runner == "unit" else junit_results(junit)
        if status or not results[runner]:
            failed.append(runner)
        path.write_text(report(head, ends, results))
    print(f"results of all tests: {path}")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
