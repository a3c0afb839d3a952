# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages that say what is tested name tests that are there, and leave none out."""
import re

import pytest

from fakemachine import TOP

TESTS = TOP / "tests"
# A test is a function: of C, given to cmocka; or of pytest.
DEFINED = re.compile(r"^(?:static void (\w+)\(void \*\*state\)|(?:async )?def (test_\w+)\()", re.M)
NUMBERED = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and )\d+)*)\b")


def defined():
    """{name of a test: what stands before it or in its docstring}"""
    found = {}
    for path in [*TESTS.glob("unit/test_*.c"), *TESTS.glob("*/test_*.py")]:
        text = path.read_text()
        for match in DEFINED.finditer(text):
            before = re.search(r"/\*((?:(?!\*/).)*)\*/\s*$", text[:match.start()], re.S)
            inside = re.match(r'[^\n]*\n\s+"""(.*?)"""', text[match.start():], re.S)
            about = before if path.suffix == ".c" else inside
            found[match[1] or match[2]] = about[1] if about else ""
    return found


def cases_of(name, about):
    """Numbers of the cases that a test says it is for: in its name, or in the text about it."""
    numbers = set(re.findall(r"case_(\d+)", name))
    for group in NUMBERED.findall(about):
        numbers |= set(re.findall(r"\d+", group))
    return numbers


def rows(page, head):
    """{first cell: words in backquotes of the last} of the table whose first head is HEAD."""
    found, inside = {}, False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == head:
            inside = True
        elif inside and not re.fullmatch(r"[-: ]+", cells[0]):
            found[cells[0]] = re.findall(r"`(\w+)`", cells[-1])
    return found


@pytest.fixture(name="tests", scope="module")
def tests_there_are():
    return defined()


@pytest.fixture(name="cases", scope="module")
def table_of_cases():
    return rows((TESTS / "README.md").read_text(), "case")


def test_each_case_has_tests_that_are_there(tests, cases):
    assert len(cases) > 30 and list(cases) == sorted(cases, key=int)
    assert {case: names for case, names in cases.items() if not names} == {}
    assert {name for names in cases.values() for name in names} - tests.keys() == set()


def test_no_numbered_test_is_left_out(tests, cases):
    wanted = {(case, name) for name, about in tests.items() for case in cases_of(name, about)}
    assert len(wanted) > 50
    assert wanted - {(case, name) for case, names in cases.items() for name in names} == set()


def test_each_fault_of_the_readme_was_tried_by_tests_that_are_there(tests):
    faults = rows((TOP / "README.md").read_text(), "fault")
    assert len(faults) > 10
    assert {fault: names for fault, names in faults.items() if not names} == {}
    assert {name for names in faults.values() for name in names} - tests.keys() == set()


def test_what_is_missing_is_found():
    page = "| case | what | tests |\n| --- | --- | --- |\n| 5 | x `y` | `a` `b_1` |\n\n| 6 | `c` |\n"
    assert rows(page, "case") == {"5": ["a", "b_1"]}
    assert cases_of("case_5_x_case_6_y", "") == {"5", "6"}
    assert cases_of("test_x", "Cases 34, 7 and 35: text of a case") == {"34", "7", "35"}
    assert cases_of("test_x", "") == set()
