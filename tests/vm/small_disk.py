# SPDX-License-Identifier: GPL-3.0-or-later
"""The test machine's disk with a small system on it: one kernel, no initrd, no udev, a short way
to the referee, and an arena with nothing but the tiny tree. For tests that boot very often.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile

import campaign
import image
import machine as vm
from packages import call, log

ARENA_MIB = 64
TARGET = "sum.o"  # the shortest build there is
MASK_DIR = "/etc/systemd/system"


def _menu(text, release):
    """grub.cfg TEXT with one entry, of RELEASE, that needs no initrd and is not quiet."""
    section = re.compile(r"(### BEGIN /etc/grub.d/10_linux ###\n.*?)(menuentry .*?\n}\n)(.*?)"
                         r"(### END /etc/grub.d/10_linux ###)", re.S)
    head, entry, _, end = section.search(text).groups()
    was = re.search(r"/boot/vmlinuz-(\S+)", entry)[1]
    entry = entry.replace(was, release).replace(" quiet", "")
    entry = re.sub(r"^.*(initrd\t|initial ramdisk).*\n", "", entry, flags=re.M)
    entry = re.sub(r" root=UUID=\S+", " root=/dev/nvme0n1p1 rootwait", entry)
    return section.sub(lambda _: head + entry + end, text)


def _read(raw, offset, path):
    return subprocess.run(["debugfs", "-R", f"cat {path}", f"{raw}?offset={offset}"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def _shrink_root(raw, disk, release, work):
    """Menu, fstab, /boot and units of the root file system."""
    offset = disk.offsets["root"]
    menu = work / "grub.cfg"
    menu.write_text(_menu(_read(raw, offset, "/boot/grub/grub.cfg"), release))
    fstab = work / "fstab"
    fstab.write_text(f"UUID={disk.uuids['root']} / ext4 defaults,errors=remount-ro 0 0\n")
    commands = []
    for source, guest in ((menu, "/boot/grub/grub.cfg"), (fstab, "/etc/fstab")):
        commands += [f"rm {guest}", f"write {source} {guest}",
                     f"set_inode_field {guest} mode 0100644",
                     f"set_inode_field {guest} uid 0", f"set_inode_field {guest} gid 0"]
    commands += [f"rm /boot/initrd.img-{kernel}" for kernel in disk.kernels]
    commands += [f"rm /boot/vmlinuz-{kernel}" for kernel in disk.kernels if kernel != release]
    units = [f"{MASK_DIR}/{unit}" for unit in campaign.NEEDLESS_UNITS]
    kept = subprocess.run(["debugfs", "-R", f"ls -p {MASK_DIR}", f"{raw}?offset={offset}"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout
    commands += [f"symlink {unit} /dev/null" for unit in units
                 if f"/{pathlib.Path(unit).name}/" not in kept]
    image._debugfs(raw, offset, commands)


def _make_arena(raw, disk, work):
    tree = work / "arena"
    shutil.copytree(image.GUEST / "tiny", tree / "tiny")
    call("chown", "-R", f"{image.BUILD_UID}:{image.BUILD_UID}", tree)
    made = work / "arena.img"
    image._make_ext4(made, 0, ARENA_MIB, image.ARENA_LABEL, disk.uuids["arena"], image.PLAIN_EXT4,
                     tree)
    # Its holes too: there is another file system in that place.
    call("dd", f"if={made}", f"of={raw}", "bs=1M", f"seek={disk.offsets['arena'] // image.MIB}",
         "conv=notrunc", "status=none")


def _prepare(disk, folder):
    """`recount prepare` in the small system itself."""
    with vm.Machine(disk, folder / "prepare.log", memory_mb=256) as guest:
        guest.start()
        guest.wait_shell(300)
        campaign.prepare(guest, "tiny", TARGET, f"--product {TARGET}")
        guest.poweroff(180)


def _key(programs, base, release):
    total = hashlib.sha256(f"{base.path} {release}".encode())
    for path in [*programs, __file__, *sorted(image.GUEST.rglob("*"))]:
        if pathlib.Path(path).is_file():
            total.update(pathlib.Path(path).read_bytes())
    return total.hexdigest()


def build(programs, folder):
    """(Disk, kernel release): the small disk in FOLDER, prepared, with PROGRAMS ({host: guest}) in
    it. Kept there until one of its parts changes."""
    folder = pathlib.Path(folder).resolve()
    base = image.build_disk()
    release = base.kernels[0]
    key, kept = _key(programs, base, release), folder / "base.key"
    if kept.exists() and kept.read_text() == key:
        return image.Disk.load(folder / "base.qcow2"), release
    log("making the small disk")
    kept.unlink(missing_ok=True)
    disk = image.prepare_disk(programs, folder, base)
    with tempfile.TemporaryDirectory(dir=folder, prefix="small-") as temporary, \
            image.exported(disk.path) as raw:
        _shrink_root(raw, disk, release, pathlib.Path(temporary))
        _make_arena(raw, disk, pathlib.Path(temporary))
    _prepare(disk, folder)
    kept.write_text(key)
    return disk, release
