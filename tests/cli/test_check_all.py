# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make check-all` writes down of its runners' output."""
import sys

from fakemachine import TOP

sys.path.insert(0, str(TOP / "tests"))

import check_all  # noqa: E402

PROVE = """\
  TEST  build/tests/test_amount
CMOCKA_MESSAGE_OUTPUT=TAP prove --verbose --timer --exec '' build/tests/test_amount
[07:31:02] build/tests/test_amount ...
1..3
ok 1 - sizes
not ok 2 - durations
# a line about why
ok 3 # skip no such clock
Failed 1/3 subtests
[07:31:02] build/tests/test_store ....
1..1
ok 1 - case_5_duplicate_key
ok     1250 ms ( 0.00 usr  0.00 sys +  1.10 cusr  0.10 csys =  1.20 CPU)
Files=2, Tests=4,  2 wallclock secs
Result: FAIL
""".splitlines(keepends=True)
JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="3">
<testcase classname="tests.vm.test_faults" name="test_a" time="611.04"/>
<testcase classname="tests.vm.test_faults" name="test_b" time="2.5"><failure message="no"/></testcase>
<testcase classname="tests.vm.test_guard" name="test_c" time="0.0"><skipped message="no QEMU"/>
</testcase></testsuite></testsuites>"""


def test_unit_tests_and_their_programs_time_are_read():
    assert check_all.tap_results(PROVE) == [
        ("passed", None, "test_amount: sizes"),
        ("failed", None, "test_amount: durations"),
        ("skipped", None, "test_amount: ?"),
        ("failed", None, "test_amount"),
        ("passed", None, "test_store: case_5_duplicate_key"),
        ("passed", 1.25, "test_store"),
    ]


def test_a_failed_test_is_never_one_that_passed(tmp_path):
    path = tmp_path / "results.xml"
    assert check_all.junit_results(path) == []
    path.write_text(JUNIT)
    assert check_all.junit_results(path) == [
        ("passed", 611.04, "vm.test_faults: test_a"),
        ("failed", 2.5, "vm.test_faults: test_b"),
        ("skipped", 0.0, "vm.test_guard: test_c"),
    ]


def test_result_file_has_closing_lines_and_a_line_a_test():
    assert check_all.closing(PROVE) == ["Files=2, Tests=4,  2 wallclock secs", "Result: FAIL"]
    assert check_all.closing(["x\n", "===== 1 failed, 2 passed in 613.60s (0:10:13) =====\n"]) == [
        "1 failed, 2 passed in 613.60s (0:10:13)"]
    assert check_all.report("head", {"vm": (613.6, ["2 passed"])},
                            {"vm": [("passed", 611.04, "vm.test_faults: test_a"),
                                    ("failed", None, "x")]}) == """\
head

vm   2 passed
vm   614 s in all

passed     611.0 s  vm vm.test_faults: test_a
failed              vm x
"""
