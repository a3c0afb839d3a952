# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines for the tests of the command."""
import os
import subprocess

import pytest

import fakemachine


@pytest.fixture(scope="session")
def templates(tmp_path_factory):
    """The partitions that each machine gets a copy of."""
    return fakemachine.make_templates(tmp_path_factory.mktemp("images") / "templates")


@pytest.fixture
def machine(tmp_path, templates):
    """A machine that is fit, but for what its store holds (which needs root to be read)."""
    return fakemachine.Machine(tmp_path / "machine", templates)


@pytest.fixture
def mounted(machine):
    """The same with a store that can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount the store")
    if subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode:
        pytest.skip("needs a free loop device, to mount the store")
    yield machine
    machine.detach()
