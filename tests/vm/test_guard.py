# SPDX-License-Identifier: GPL-3.0-or-later
"""The one-shot guard under a real GRUB: good and damaged blocks, missing files, a stopped menu.

No Linux here: the "kernel" prints its command line and the first bytes of its initrd and resets
the machine, so that a boot takes two seconds. The guest's clock follows its instructions (-icount): a busy host
does not stretch GRUB's sleeps.
"""
import ctypes
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRUB_DIR = pathlib.Path("/usr/lib/grub/i386-pc")
TOOLS = ("qemu-system-x86_64", "grub-mkimage", "mke2fs", "debugfs", "sfdisk", "cc", "as", "objcopy")
MODULES = ("biosdisk part_msdos ext2 search search_fs_uuid configfile normal loadenv test echo "
           "sleep reboot linux boot serial terminal password").split()

STORE_UUID = "0c5b1a51-3ab4-4df2-8f2f-6b2d3a6f7e01"
BOOT_UUID = "11111111-2222-3333-4444-555555555555"
TOKEN = "2026-11-30-a-0007-1-5e3f"
SIGNATURE = b"# GRUB Environment Block\n"
MIB = 1 << 20
PARTITIONS = {"boot": (1, 8), "store": (10, 8)}  # first MiB, MiB

# Entered in 32-bit mode with %esi at the boot parameters (boot.rst, 32-bit boot protocol).
KERNEL = """
        mov %esi, %edi
        mov 0x228(%edi), %esi
1:      lodsb
        test %al, %al
        jz 2f
        call putc
        jmp 1b
2:      mov $'|', %al
        call putc
        mov 0x218(%edi), %esi
        mov $6, %ecx
3:      lodsb
        call putc
        loop 3b
        mov $'|', %al
        call putc
        mov $0xcf9, %dx
        mov $6, %al
        out %al, %dx
4:      hlt
        jmp 4b
putc:   mov %al, %bl
        mov $0x3fd, %dx
5:      in %dx, %al
        test $0x20, %al
        jz 5b
        mov $0x3f8, %dx
        mov %bl, %al
        out %al, %dx
        ret
"""

GRUB_CFG = """
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set default=home
set timeout=%(timeout)s
%(head)s
menuentry 'first' --id first { echo BOOTED-FIRST
reboot
}
menuentry 'home' --id home --unrestricted { echo BOOTED-HOME
reboot
}
source $prefix/custom.cfg
echo "DEFAULT-IS $default"
"""


class Entry(ctypes.Structure):
    _fields_ = [(n, ctypes.c_char_p)
                for n in ("id", "title", "fs_uuid", "kernel", "initrd", "cmdline")]


@pytest.fixture(scope="module", name="parts")
def _parts(tmp_path_factory):
    """What all disks share: GRUB's core image, the kernel, the product's code as a library."""
    missing = [t for t in TOOLS if not shutil.which(t, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if not (GRUB_DIR / "boot.img").exists():
        missing.append(str(GRUB_DIR / "boot.img"))
    if missing:
        text = f"the guard cannot be tried without {', '.join(missing)}"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    where = tmp_path_factory.mktemp("grub")
    (where / "early.cfg").write_text(f"search.fs_uuid {BOOT_UUID} root\nset prefix=($root)/grub\n")
    call("grub-mkimage", "-O", "i386-pc", "-d", GRUB_DIR, "-o", where / "core.img",
         "-c", where / "early.cfg", "-p", "/grub", *MODULES)
    library = where / "oneshot.so"
    call("cc", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-I", ROOT, "-o", library,
         *(ROOT / "grub" / f for f in ("oneshot.c", "oneshot_text.c", "bootline.c", "envblock.c",
                                       "replace.c", "rootfile.c")))
    (where / "vmlinuz").write_bytes(kernel(where))
    return where, ctypes.CDLL(str(library))


def call(*argv, **options):
    environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    return subprocess.run([str(a) for a in argv], check=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options).stdout


def kernel(where):
    """A bzImage: boot sector, one setup sector, the code."""
    (where / "kernel.s").write_text(KERNEL)
    call("as", "--32", "-o", where / "kernel.o", where / "kernel.s")
    call("objcopy", "-O", "binary", where / "kernel.o", where / "kernel.bin")
    head = bytearray(1024)
    struct.pack_into("<B", head, 0x1f1, 1)
    struct.pack_into("<H", head, 0x1fe, 0xaa55)
    struct.pack_into("<2s4sH", head, 0x200, b"\xeb\x66", b"HdrS", 0x020c)
    struct.pack_into("<B", head, 0x211, 1)
    struct.pack_into("<I", head, 0x214, 0x100000)
    struct.pack_into("<I", head, 0x22c, 0x7fffffff)
    struct.pack_into("<IBB", head, 0x230, 0x200000, 1, 21)
    struct.pack_into("<I", head, 0x238, 2047)
    struct.pack_into("<QI", head, 0x258, 0x1000000, 0x100000)
    return bytes(head) + (where / "kernel.bin").read_bytes().ljust(4096, b"\0")


class Machine:
    """A disk with a boot and a store partition, and visits to it."""

    def __init__(self, parts, where, grubenv=None, arm=None, timeout=0, head="", remove=None,
                 unrestricted=0):
        shared, self.library = parts
        self.where = where
        self.disk = where / "disk.img"
        boot, store = where / "boot", where / "store"
        (boot / "grub").mkdir(parents=True)
        (store / "grub").mkdir(parents=True)
        shutil.copy(shared / "vmlinuz", boot / "vmlinuz-x")
        (boot / "initrd-x").write_bytes(b"DISTRO" * 100)
        (store / "recount.cpio").write_bytes(b"070701".ljust(512, b"\0"))
        for name in remove or ():
            (where / name).unlink()
        (boot / "grub" / "grub.cfg").write_text(GRUB_CFG % {"timeout": timeout, "head": head})
        (boot / "grub" / "custom.cfg").write_text(self.block(unrestricted))
        if grubenv is not None:
            (store / "grub" / "grubenv").write_bytes(grubenv)
        if arm:
            path = str(store / "grub" / "grubenv").encode()
            assert self.library.oneshot_arm(path, arm.encode(), TOKEN.encode()) == 0
        self.write_disk(shared)

    def block(self, unrestricted):
        """The text that `recount start` would install."""
        entries = (Entry * 2)(*(
            Entry(f"recount-e0{i}".encode(), f"recount number {i}".encode(), BOOT_UUID.encode(),
                  b"/vmlinuz-x", b"/initrd-x", f'entry={i} "a=b c" d=$e;{{f}}'.encode())
            for i in (1, 2)))
        text = ctypes.c_char_p()
        assert self.library.oneshot_block(STORE_UUID.encode(), entries, ctypes.c_size_t(2),
                                          unrestricted, ctypes.byref(text)) == 0
        return text.value.decode()

    def write_disk(self, shared):
        with self.disk.open("wb") as disk:
            disk.truncate(20 * MIB)
        lines = "".join(f"start={a * 2048}, size={n * 2048}, type=83\n"
                        for a, n in PARTITIONS.values())
        call("sfdisk", "-q", self.disk, input=b"label: dos\n" + lines.encode())
        for name, uuid in (("boot", BOOT_UUID), ("store", STORE_UUID)):
            start, size = PARTITIONS[name]
            call("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^metadata_csum_seed,^orphan_file",
                 "-U", uuid, "-d", self.where / name, "-E", f"offset={start * MIB}", self.disk,
                 f"{size}m")
        with self.disk.open("r+b") as disk:
            disk.write((GRUB_DIR / "boot.img").read_bytes()[:440])
            disk.seek(512)
            disk.write((shared / "core.img").read_bytes())

    def visit(self, timeout_s=60):
        """One boot to the next reset; the serial console's text."""
        log = self.where / "serial.log"
        call("qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=7", "-m", "128", "-display", "none", "-nic", "none",
             "-no-reboot", "-monitor", "none", "-serial", f"file:{log}",
             "-drive", f"file={self.disk},format=raw,cache=writethrough", timeout=timeout_s)
        return log.read_text(errors="replace")

    def grubenv(self):
        with self.disk.open("rb") as disk:
            disk.seek(PARTITIONS["store"][0] * MIB)
            (self.where / "store.img").write_bytes(disk.read(PARTITIONS["store"][1] * MIB))
        call("debugfs", "-R", f"dump /grub/grubenv {self.where}/grubenv", self.where / "store.img")
        return (self.where / "grubenv").read_bytes()


def block_of(text, fill=b"#", size=1024):
    return (SIGNATURE + text).ljust(size, fill)


def assert_home(text):
    assert "BOOTED-HOME" in text, text
    assert "recount.token" not in text, text


def test_good_block_is_taken_once(parts, tmp_path):
    """Case 27, good: the entry once, then the default; token and both initrds arrive."""
    machine = Machine(parts, tmp_path, arm="recount-e02")
    text = machine.visit()
    assert f"recount.token={TOKEN} entry=2 \"a=b c\" d=$e;{{f}}|070701|" in text, text
    assert machine.grubenv().startswith(
        SIGNATURE + b"next_entry=\nrecount_token=" + TOKEN.encode() + b"\nrecount_taken="
        + TOKEN.encode() + b"\n#")
    for _ in range(2):
        assert_home(machine.visit())


@pytest.mark.parametrize("grubenv", [
    pytest.param(block_of(b"next_entry=recount-e01\nrecount_token=t\n", b"\0"), id="nul-padded"),
    pytest.param(block_of(b"next_entry=recount-e02\nnext_entry=recount-e01\n"), id="duplicate"),
    pytest.param(block_of(b"next_entry=\nnext_entry=recount-e01\n"), id="duplicate-empty-first"),
    pytest.param(block_of(b"next_entry=recount-e01\n") + b"\n", id="trailing-newline"),
    pytest.param(b"", id="empty"),
    pytest.param(b"# grub environment block\nnext_entry=recount-e01\n".ljust(1024, b"#"),
                 id="bad-signature"),
    pytest.param(None, id="missing"),
    pytest.param(block_of(b"next_entry=first\nrecount_token=t\n"), id="foreign-id"),
    pytest.param(block_of(b"next_entry=0\n"), id="number"),
    pytest.param(block_of(b"recount_token=t\n"), id="nothing-armed"),
])
def test_every_other_block_is_safe(parts, tmp_path, grubenv):
    """Case 27, the rest: the machine's own default."""
    text = Machine(parts, tmp_path, grubenv=grubenv).visit()
    assert_home(text)
    assert "DEFAULT-IS home" in text, text


def test_unknown_id_is_cleared(parts, tmp_path):
    """An id that custom.cfg does not know counts as taken, so that the attempt is booked."""
    machine = Machine(parts, tmp_path, grubenv=block_of(b"next_entry=recount-e03\nrecount_token=t\n"))
    for _ in range(2):
        assert_home(machine.visit())
    assert machine.grubenv().startswith(SIGNATURE + b"next_entry=\nrecount_token=t\nrecount_taken=t\n#")


@pytest.mark.parametrize("missing", ["boot/vmlinuz-x", "boot/initrd-x", "store/recount.cpio"])
def test_missing_files_come_home(parts, tmp_path, missing):
    """Cases 34 and 35: an entry that cannot be booted reboots by itself."""
    machine = Machine(parts, tmp_path, arm="recount-e01", remove=[missing])
    text = machine.visit(timeout_s=30)
    assert "cannot be booted; rebooting" in text, text
    assert "BOOTED" not in text and "|070701|" not in text, text
    assert_home(machine.visit())


def test_stopped_menu_is_released(parts, tmp_path):
    """Case 41: a timeout of -1 does not hold a one-shot up."""
    machine = Machine(parts, tmp_path, arm="recount-e01", timeout=-1)
    assert "entry=1" in machine.visit()


def test_password_does_not_hold_it_up(parts, tmp_path):
    """Case 37: with superusers set the entry is --unrestricted."""
    machine = Machine(parts, tmp_path, arm="recount-e01", unrestricted=1,
                      head="set superusers=root\npassword root secret\n")
    assert "entry=1" in machine.visit()
    assert_home(machine.visit())
