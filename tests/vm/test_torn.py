# SPDX-License-Identifier: GPL-3.0-or-later
"""A write of the store's block, torn between its two sectors by a power cut, under a real GRUB.

unit/test_torn.c cuts at every byte and plays GRUB; here GRUB itself gets what such cuts leave.
"""
import pytest

from test_guard import TOKEN, Machine, _parts, assert_home, block_of  # noqa: F401 (a fixture)

SECTOR = 512
OLD_TOKEN = "2026-11-30-a-0006-1-77aa"


def written(pad, entry, token, taken):
    """The block with PAD bytes of somebody else's line in front of our keys."""
    foreign = b"foreign=".ljust(pad - 1, b"x") + b"\n"
    return block_of(foreign + f"next_entry={entry}\nrecount_token={token}\n"
                    f"recount_taken={taken}\n".encode())


# So much of our three lines lies in the first sector: parts of a key, a value, a token.
@pytest.mark.parametrize("ours", [16, 45, 80])
@pytest.mark.parametrize("new_half", [0, 1], ids=["first-half-new", "second-half-new"])
@pytest.mark.parametrize("write", ["arming", "taking"])
def test_case_28_torn_block_under_real_grub(parts, tmp_path, write, new_half, ours):
    """Whatever is left of a torn block, GRUB takes it once at most, and then boots the default."""
    pad = SECTOR - len(block_of(b"", size=0)) - ours
    old = written(pad, "", OLD_TOKEN, OLD_TOKEN)
    new = written(pad, "recount-e01", TOKEN, OLD_TOKEN)
    if write == "taking":
        old, new = new, written(pad, "", TOKEN, TOKEN)
    halves = [(new, old)[new_half][:SECTOR], (new, old)[1 - new_half][SECTOR:]]
    machine = Machine(parts, tmp_path, grubenv=b"".join(halves))
    text = machine.visit()
    if "recount.token=" in text:
        assert " entry=1 " in text, text
        text = machine.visit()
    assert_home(text)
    assert_home(machine.visit())
