# SPDX-License-Identifier: GPL-3.0-or-later
"""pytest fixtures of the QEMU tests: base_disk, new_disk and machine.

A test that cannot run here is skipped with its reason; where CI is set a skip is a failure.
"""
import os
import pathlib
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import campaign  # noqa: E402
import image  # noqa: E402
import machine as machines  # noqa: E402
from packages import BenchError  # noqa: E402

BUILD = HERE.parents[1] / "build"
# The product's programs, where they are built, and their places in the guest.
PROGRAMS = {"recount": "/usr/local/sbin/recount", "recount-init": "/usr/local/sbin/recount-init"}
TOOLS = (machines.QEMU, "qemu-img", "qemu-storage-daemon", "mmdebstrap", "mke2fs", "debugfs", "grub-mkimage", "sfdisk",
         "mkfs.vfat", "mcopy")


def missing():
    """Why the QEMU tests cannot run here, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if lacking:
        return f"{', '.join(lacking)} missing: run make deps"
    unbuilt = [name for name in PROGRAMS if not (BUILD / name).exists()]
    if unbuilt:
        return f"{', '.join(unbuilt)} not built: run make"
    if os.geteuid() != 0:
        return "building the disk image needs root"
    return None


def unavailable(reason):
    if os.environ.get("CI"):
        pytest.fail(f"QEMU test skipped in CI: {reason}")
    pytest.skip(reason)


def programs():
    """{file on the host: path in the guest}."""
    return {BUILD / name: guest for name, guest in PROGRAMS.items()}


@pytest.fixture(scope="session")
def base_disk(tmp_path_factory):
    """The default disk with the product's programs in it; tests use layers over it."""
    reason = missing()
    if reason:
        unavailable(reason)
    try:
        return image.prepare_disk(programs(), tmp_path_factory.mktemp("disk"))
    except BenchError as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def modules_disk(tmp_path_factory):
    """The same with a kernel whose ext4 and disk driver are modules, and no modprobe in its initrd."""
    reason = missing()
    if reason:
        unavailable(reason)
    base = image.build_disk(image.Recipe(modules=True))
    return image.prepare_disk(programs(), tmp_path_factory.mktemp("modules"), base)


@pytest.fixture
def new_disk(tmp_path):
    """Function that makes a layer over a disk, of the test's own."""
    def make(disk, name="disk"):
        return image.overlay(disk, tmp_path / f"{name}.qcow2")
    return make


@pytest.fixture
def machine(tmp_path):
    """Function that makes a Machine, off; every one is ended with the test."""
    made = []

    def make(disk, **options):
        one = machines.Machine(disk, tmp_path / f"console-{len(made)}.log", **options)
        made.append(one)
        return one

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def home(base_disk, new_disk, machine):
    """Function: a machine at home, its tiny tree prepared with campaign.FAULTS in it, and the label
    of the kernel that runs."""
    def make(**options):
        guest = machine(new_disk(base_disk), **options)
        guest.start()
        guest.wait_shell(300)
        campaign.slim(guest)
        guest.run("mount LABEL=RECOUNT-ARENA /mnt && cat >>/mnt/tiny/Makefile && umount /mnt",
                  stdin=campaign.FAULTS.encode())
        campaign.prepare(guest, *campaign.TREE_TINY)
        return guest, campaign.label(guest, "6.12")
    return make
