# SPDX-License-Identifier: GPL-3.0-or-later
"""The man pages name what the programs have: verbs, options, JSON keys, causes, reasons."""
import json
import re
import shutil
import subprocess

import pytest

from fakemachine import RECOUNT, TOP

COMMAND, RESULTS = TOP / "runner/recount.8", TOP / "results/recount-results.5"
GOLDEN = TOP / "tests/unit/golden"
KEY = r"[a-z][a-z0-9_]*"


def plain(line):
    """A line of a page without font changes, quotes of arguments and escapes."""
    line = re.sub(r"\\f[A-Z]", " ", line.replace('"', " "))
    return line.replace("\\-", "-").replace("\\&", "")


def sections(page):
    """{title of a section or subsection: its lines}"""
    found, lines = {}, []
    for line in page.splitlines():
        head = re.match(r"\.S[HS] (.*)", line)
        if head:
            lines = found.setdefault(plain(head[1]).strip(), [])
        else:
            lines.append(line)
    return found


def bold(lines):
    """The words in bold among @lines: .B all, .BR and .BI every second argument."""
    found = set()
    for line in lines:
        macro = re.match(r"\.(B[RI]?) (.*)", line)
        if not macro:
            continue
        arguments = [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', macro[2])]
        for argument in arguments if macro[1] == "B" else arguments[::2]:
            found.update(re.findall(r"[\w.-]+", plain(argument)))
    return found


def missing(words, page, title=None):
    """Those of @words that the page, or one section of it, does not have in bold."""
    lines = page.splitlines() if title is None else sections(page)[title]
    return sorted(set(words) - bold(lines))


def sources(folder):
    return "\n".join(path.read_text() for path in sorted((TOP / folder).glob("*.c")))


def keys_of(value):
    """Every key in a JSON value."""
    if isinstance(value, list):
        return {key for item in value for key in keys_of(item)}
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_of(item)}
    return set()


def help_of(*argv):
    return subprocess.run([RECOUNT, *argv, "--help"], check=True, capture_output=True,
                          text=True).stdout


# By name, so that each is a test of its own; the program's table has nothing else of this shape.
VERBS = re.findall(r'^\t{"(\w+)", "', (TOP / "runner/recount.c").read_text(), re.M)


@pytest.fixture(name="command")
def command_page():
    return COMMAND.read_text()


@pytest.fixture(name="results")
def results_page():
    return RESULTS.read_text()


# --- recount(8) --------------------------------------------------------------------------------

def test_every_verb_has_its_place(command):
    assert VERBS == re.findall(r"^  ([a-z]\w+)", help_of(), re.M) and len(VERBS) > 10
    synopsis = plain("\n".join(sections(command)["SYNOPSIS"]))
    items = "\n".join(plain(line) for line in sections(command)["VERBS"])
    for verb in VERBS:
        assert re.search(rf"^\.B recount {verb}\b", synopsis, re.M), verb
        assert re.search(rf"^\.TP\n\.BR? +{verb}\b", items, re.M), verb


@pytest.mark.parametrize("verb", VERBS)
def test_options_of_a_verb(command, verb):
    """An option is explained in OPTIONS, and named with its verb or with the choice."""
    taken = set(re.findall(r"^  (--[\w-]+)", help_of(verb), re.M)) - {"--root"}
    page = sections(command)
    choice = next(title for title in page if title.startswith("The choice"))
    options = {w for title in ("OPTIONS", choice, "Other options") for w in bold(page[title])}
    assert taken <= options
    items = re.split(r"^\.TP\n", plain("\n".join(page["VERBS"])), flags=re.M)
    [item] = [i for i in items if re.match(rf"\.BR? +{verb}\b", i)]
    named = set(re.findall(r"--[\w-]+", item.splitlines()[0]))
    if "choice" in item.splitlines()[0]:
        assert verb in choice
        named |= {w for w in bold(page[choice]) if w.startswith("--")}
    assert named == taken


# --- recount-results(5) ------------------------------------------------------------------------

def test_every_key_of_the_codecs(results):
    text = sources("results")
    keys = set(re.findall(rf'\(\s*&?io,\s*[\w.&]+,\s*"({KEY})"', text))
    keys |= set(re.findall(rf"FIGURE(?:_IN)?\((?:\w+, )?({KEY})\)", text)) - {"member"}
    assert {"schema", "token", "wall_ns", "io_full_ns", "clean", "median"} <= keys
    assert len(keys) > 100
    assert missing(keys, results) == []


@pytest.mark.parametrize("name, title", [
    ("plan.json", "plan.json"),
    ("trial.json", "trial-TT-N.json"),
    ("report.json", "recount report --format json"),
])
def test_every_key_of_a_file_in_its_section(results, name, title):
    value = json.loads((GOLDEN / name).read_text())
    for key in ("panic", "toolchain"):
        value.pop(key, None)  # their keys are names of sysctls and files
    assert len(keys_of(value)) > 15
    assert missing(keys_of(value), results, title) == []


@pytest.mark.parametrize("source, function, title", [
    ("record.c", "attempt_encode", "attempt-N.json"),
    ("record.c", "reached_encode", "reached-N.json"),
    ("record.c", "done_encode", "done-N.json"),
    ("record.c", "failed_encode", "failed-N.json"),
    ("prepared.c", "prepared_encode", "prepared/manifest.json"),
])
def test_every_key_of_an_encoder_in_its_section(results, source, function, title):
    text = (TOP / "results" / source).read_text()
    body = re.search(rf"^int {function}\(.*?^}}", text, re.M | re.S)[0]
    keys = re.findall(rf'&io, o, "({KEY})"', body)
    assert len(keys) >= 2
    assert missing(keys, results, title) == []


def test_keys_of_files_without_a_codec(results):
    settle = (TOP / "runner/settle.c").read_text()
    [rearmed] = set(re.findall(rf'{{\\"({KEY})\\":', settle))
    assert missing([rearmed], results, "rearmed-KK-N.json") == []
    facts = re.findall(rf'{{"({KEY})",\s*"/', (TOP / "runner/snapshot.c").read_text())
    assert len(facts) > 20
    assert missing(facts, results, "environment-N.json") == []


def test_every_metric(results):
    metrics = re.findall(rf'\[ROWS_\w+\] = "({KEY})"', (TOP / "results/rows.c").read_text())
    assert "wall_ns" in metrics
    assert missing(metrics, results, "recount report --format json") == []


def test_every_cause_and_reason(results):
    text = sources("runner")
    causes = set(re.findall(r'trial_record_void\(\w+, "([\w-]+)"', text))
    assert len(causes) >= 8
    assert missing(causes, results, "trial-TT-N.json") == []
    calls = re.findall(r"(?:visit_fail|trouble|arm_book_failure|give_up)\([^;]*;", text)
    calls += re.findall(r"\breason = [^;]*;", text)
    reasons = {w for call in calls for w in re.findall(r'"([a-z-]+)"', call)}
    assert {"panic", "root-dirty", "changed"} <= reasons
    assert missing(reasons, results, "failed-N.json") == []


# --- both --------------------------------------------------------------------------------------

def test_a_missing_word_is_found():
    page = ".SH A\n.TP\n.B one_ns\n.TP\n.BR two ', ' three\nfour\n"
    assert missing(["one_ns", "two", "three", "four"], page.replace("'", '"'), "A") == ["four"]


@pytest.mark.parametrize("page", [COMMAND, RESULTS], ids=lambda p: p.name)
def test_page_can_be_formatted(page):
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")
