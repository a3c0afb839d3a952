# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the test machine's disk: real GRUB, root, store, arena and swap partitions.

The disk boots on a BIOS (GRUB in a partition of its own), on UEFI and on UEFI with Secure Boot
(shim and GRUB as Debian signs them, on the ESP); all three read /boot/grub on the root. A "boot"
partition is left empty, for tests that move /boot.

build_disk() makes the base disk once per content and keeps it in the cache; prepare_disk() copies
it and puts the product in; overlay() gives each test its own layer; extract_store() reads results
back. Needs root (mmdebstrap and chroot), no loop devices and no mounts of images.
"""
import argparse
import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time
import uuid

import packages
from packages import BenchError, cache_dir, cache_lock, call, log, touch_and_prune

GUEST = pathlib.Path(__file__).resolve().parent / "guest"
MIB = 1 << 20
BUILD_UID = 65534
# What every GRUB and every kernel knows; the product's `format` makes the same.
PLAIN_EXT4 = "none,has_journal,extent,dir_index,filetype,sparse_super,large_file,64bit"
ROOT_EXT4 = "^orphan_file,^metadata_csum_seed"
STORE_LABEL, ARENA_LABEL = "RECOUNT", "RECOUNT-ARENA"
STORE_MIB, ARENA_MIB = 256, 2560
# The ESP has room for /boot, and mkfs.xfs makes nothing below 300 MiB.
ESP_MIB, BOOT_MIB = 256, 384
# {partition: (number, GPT type)}; the numbers are the same with and without swap.
LINUX_GUID = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
PARTITIONS = {
    "root": (1, LINUX_GUID), "store": (2, LINUX_GUID), "arena": (3, LINUX_GUID),
    "swap": (4, "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F"),
    "esp": (5, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"),
    "boot": (6, LINUX_GUID),
    "bios": (7, "21686148-6449-6E6F-744E-656564454649"),
}
# Behind the partition table, before the first MiB.
BIOS_SECTOR, BIOS_SECTORS = 34, 2014
GRUB_MODULES = ("biosdisk", "part_msdos", "part_gpt", "ext2", "fat", "search_fs_uuid", "search",
                "configfile", "normal")
# What costs boot time under TCG and does nothing for a test: units, generators, udev rules.
MASKED_UNITS = (
    "getty@tty1.service getty-static.service console-setup.service keyboard-setup.service "
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer "
    "e2scrub_reap.service logrotate.timer man-db.timer systemd-tmpfiles-clean.timer "
    "systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-random-seed.service "
    "systemd-udev-settle.service systemd-binfmt.service systemd-firstboot.service "
    "systemd-pcrphase.service systemd-pcrphase-sysinit.service systemd-hwdb-update.service "
    "systemd-timesyncd.service systemd-journal-catalog-update.service systemd-sysusers.service "
    "systemd-journal-flush.service systemd-modules-load.service systemd-fsckd.socket "
    "systemd-initctl.socket systemd-journald-audit.socket systemd-tmpfiles-setup-dev.service "
    "kmod-static-nodes.service modprobe@.service grub-common.service remote-fs.target "
    "systemd-ask-password-console.path systemd-ask-password-wall.path dev-hugepages.mount "
    "dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount "
    "sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount").split()
MASKED_GENERATORS = (
    "systemd-cryptsetup-generator systemd-debug-generator systemd-gpt-auto-generator "
    "systemd-hibernate-resume-generator systemd-integritysetup-generator "
    "systemd-rc-local-generator systemd-run-generator systemd-system-update-generator "
    "systemd-sysv-generator systemd-veritysetup-generator").split()
KEPT_UDEV_RULES = ("50-udev-default.rules", "60-block.rules", "60-persistent-storage.rules",
                   "99-systemd.rules")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What kind of disk. modules: the default good kernels and a generic one whose ext4 and
    virtio drivers are modules, with no modprobe in its initrd."""
    swap_mib: int = 512
    modules: bool = False


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk file and what is on it. uuids, offsets and sizes (bytes) by partition name; the file
    system of "boot" is the test's to make."""
    path: pathlib.Path
    uuids: dict
    offsets: dict
    sizes: dict
    kernels: list
    menu: list
    default_title: str

    @staticmethod
    def load(path):
        facts = json.loads(pathlib.Path(str(path) + ".json").read_text())
        return Disk(path=pathlib.Path(path), **facts)

    def save_facts(self):
        facts = dataclasses.asdict(self)
        del facts["path"]
        pathlib.Path(str(self.path) + ".json").write_text(json.dumps(facts, indent=1))


def _digest(folder, *parts):
    """Key of what an image is made of: the files below FOLDER, and anything with a repr."""
    total = hashlib.sha256(repr(parts).encode())
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()[:16]


def _uuid(key, name):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{key} {name}"))


def _in_root(root, *argv, env=None):
    """Runs a program inside the folder ROOT with /proc and /dev."""
    script = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
              'exec chroot "$0" "$@"')
    return call("unshare", "--mount", "--propagation", "private", "sh", "-c", script, root, *argv,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                     "DEBIAN_FRONTEND": "noninteractive", **(env or {})})


def _write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _configure_system(root, ids, recipe):
    """A Debian that reaches multi-user.target soon and asks nobody anything."""
    # The root's journal is replayed by its mount; nothing waits for the swap partition.
    fstab = f"UUID={ids['root']} / ext4 defaults,errors=remount-ro 0 0\n"
    if recipe.swap_mib:
        fstab += f"UUID={ids['swap']} none swap sw,nofail 0 0\n"
    _write(root / "etc/fstab", fstab)
    _write(root / "etc/hostname", "bench\n")
    _write(root / "etc/hosts", "127.0.0.1 localhost bench\n")
    _write(root / "etc/machine-id", uuid.UUID(ids["root"]).hex + "\n", 0o444)
    _write(root / "etc/systemd/system.conf.d/bench.conf",
           "[Manager]\nDefaultTimeoutStopSec=10s\nShowStatus=yes\n")
    _write(root / "etc/systemd/journald.conf.d/bench.conf", "[Journal]\nStorage=volatile\nAudit=no\n")
    masked = [f"system/{unit}" for unit in MASKED_UNITS]
    masked += [f"system-generators/{name}" for name in MASKED_GENERATORS]
    masked += [f"../udev/rules.d/{rules.name}" for rules in (root / "usr/lib/udev/rules.d").iterdir()
               if rules.name not in KEPT_UDEV_RULES]
    for name in masked:
        link = root / "etc/systemd" / name
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    shutil.copy(GUEST / "bench-shell", root / "usr/local/sbin/bench-shell")
    (root / "usr/local/sbin/bench-shell").chmod(0o755)
    shutil.copy(GUEST / "bench-shell.service", root / "etc/systemd/system/bench-shell.service")
    _in_root(root, "systemctl", "enable", "bench-shell.service", "serial-getty@ttyS0.service")
    _in_root(root, "systemctl", "set-default", "multi-user.target")
    shutil.copy(GUEST / "default-grub", root / "etc/default/grub")


def _add_module_kernel(root, apt):
    """Installs the generic 6.1 kernel; its initrd brings the drivers but no modprobe."""
    name, version = packages.newest_kernel(apt, "6.1", "amd64")
    deb = apt.download(name, version)
    release = name.removeprefix("linux-image-")
    shutil.copy(GUEST / "initramfs-strip", root / "etc/initramfs-tools/hooks/zz-bench-strip")
    (root / "etc/initramfs-tools/hooks/zz-bench-strip").chmod(0o755)
    _write(root / "etc/initramfs-tools/modules", "virtio_pci\nvirtio_blk\next4\ncrc32c_generic\n")
    _write(root / "etc/initramfs-tools/bench-strip-release", release + "\n")
    shutil.copy(deb, root / "kernel.deb")
    _in_root(root, "dpkg", "-i", "/kernel.deb")
    (root / "kernel.deb").unlink()
    _in_root(root, "update-initramfs", "-u", "-k", "all")
    return release


def _make_menu(root, ids):
    """Runs the distribution's grub-mkconfig inside ROOT; returns the menu entries' titles."""
    (root / "boot/grub").mkdir(exist_ok=True)
    shutil.copytree(root / "usr/lib/grub/i386-pc", root / "boot/grub/i386-pc",
                    ignore=lambda _, names: [n for n in names if not n.endswith((".mod", ".lst"))])
    probe, kept = root / "usr/sbin/grub-probe", root / "usr/sbin/grub-probe.kept"
    probe.rename(kept)
    shutil.copy(GUEST / "grub-probe", probe)
    probe.chmod(0o755)
    # 10_linux names the root by UUID only when udev's link for it exists: give it that folder.
    script = ("mkdir -p /run/bench-dev/disk/by-uuid && touch /run/bench-dev/null && "
              f"touch /run/bench-dev/disk/by-uuid/{ids['root']} && "
              "mount --bind /dev/null /run/bench-dev/null && mount --bind /run/bench-dev /dev && "
              "grub-mkconfig -o /boot/grub/grub.cfg && grub-editenv /boot/grub/grubenv create")
    _in_root(root, "sh", "-c", script, env={"BENCH_ROOT_UUID": ids["root"],
                                            "BENCH_ROOT_PARTUUID": ids["root-part"]})
    shutil.rmtree(root / "run/bench-dev")
    kept.rename(probe)
    text = (root / "boot/grub/grub.cfg").read_text()
    titles = re.findall(r"^\s*menuentry '([^']*)'", text, re.M)
    if not titles or f"root=UUID={ids['root']}" not in text:
        raise BenchError("grub-mkconfig made no usable menu:\n" + text)
    return titles


def _make_grub_core(root, root_uuid, workdir):
    """(boot.img, core.img) that find the root by UUID and load its grub.cfg."""
    early = workdir / "early.cfg"
    early.write_text(f"search.fs_uuid {root_uuid} root\nset prefix=($root)/boot/grub\n")
    core = workdir / "core.img"
    modules = root / "usr/lib/grub/i386-pc"
    call("grub-mkimage", "-d", modules, "-O", "i386-pc", "-p", "/boot/grub", "-c", early,
         "-o", core, *GRUB_MODULES)
    return modules / "boot.img", core


def _embed_core(disk, boot_img, core):
    """Puts GRUB for a BIOS in place, each part told where the next one lies: offsets 0x5c of
    boot.img (grub/i386/pc/boot.h) and 0x1f4 of core.img, the first entry of its block list."""
    head, rest = bytearray(boot_img.read_bytes()[:440]), bytearray(core.read_bytes())
    if struct.unpack_from("<Q", head, 0x5c) != (1,) or struct.unpack_from("<Q", rest, 0x1f4) != (2,):
        raise BenchError("this GRUB's boot.img or core.img is not of the known form")
    if len(rest) > BIOS_SECTORS * 512:
        raise BenchError(f"GRUB's core.img is too big: {len(rest)} bytes")
    struct.pack_into("<Q", head, 0x5c, BIOS_SECTOR)
    struct.pack_into("<Q", rest, 0x1f4, BIOS_SECTOR + 1)
    with open(disk, "r+b") as out:
        out.write(head)
        out.seek(BIOS_SECTOR * 512)
        out.write(rest)


def _make_esp(root_uuid, fs_uuid, work):
    """A FAT with shim and GRUB as Debian signs them, and the grub.cfg that this GRUB looks for."""
    esp, config = work / "esp", work / "esp.cfg"
    config.write_text(f"search.fs_uuid {root_uuid} root\nset prefix=($root)/boot/grub\n"
                      "configfile $prefix/grub.cfg\n")
    with open(esp, "wb") as out:
        out.truncate(ESP_MIB * MIB)
    call("mkfs.vfat", "-F", "32", "-n", "ESP", "-i", fs_uuid.replace("-", ""), esp)
    call("mmd", "-i", esp, "::/EFI", "::/EFI/BOOT", "::/EFI/debian")
    for source, name in ((packages.SHIM, "BOOT/BOOTX64.EFI"), (packages.GRUB, "BOOT/grubx64.efi"),
                         (config, "debian/grub.cfg")):
        call("mcopy", "-i", esp, work / "signed" / source, f"::/EFI/{name}")
    return esp


def arena_image(apt, tar):
    """Path of the arena's file system image (linux/ and tiny/); built once per content."""
    [(name, version)] = apt.versions(re.escape(packages.SOURCE_PACKAGE))
    key = _digest(GUEST / "tiny", tar.name, name, version, ARENA_MIB, PLAIN_EXT4,
                  inspect.getsource(arena_image), inspect.getsource(_make_ext4))
    image = cache_dir() / f"arena-{key}.img"
    if image.exists():
        touch_and_prune(image)
        return image
    deb = apt.download(name, version)
    log("building the arena file system (unpacks the kernel source)")
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="build-") as temporary:
        root, deb_root, tree = (pathlib.Path(temporary) / n for n in ("root", "deb", "tree"))
        for folder in (root, deb_root, tree):
            folder.mkdir()
        call("dpkg-deb", "-x", deb, deb_root)
        [source] = (deb_root / "usr/src").glob("linux-source-*.tar.*")
        call("tar", "-xf", source, "-C", tree)
        [unpacked] = tree.iterdir()
        unpacked.rename(tree / "linux")
        # The guest's own compiler configures the tree; natively that takes seconds.
        call("tar", "-xf", tar, "-C", root, "--numeric-owner", "--exclude=./boot", "--exclude=./dev")
        (root / "dev").mkdir(exist_ok=True)
        (tree / "linux").rename(root / "linux")
        _in_root(root, "make", "-C", "/linux", "-s", "tinyconfig")
        (root / "linux").rename(tree / "linux")
        shutil.copytree(GUEST / "tiny", tree / "tiny")
        call("chown", "-R", f"{BUILD_UID}:{BUILD_UID}", tree)
        partial = image.with_suffix(".part")
        _make_ext4(partial, 0, ARENA_MIB, ARENA_LABEL, _uuid(key, "arena"), PLAIN_EXT4, tree)
        partial.rename(image)
    return image


def _make_ext4(image, offset, size_mib, label, fs_uuid, features, folder=None):
    """Makes an ext4 of SIZE_MIB at a byte offset of IMAGE, filled from FOLDER."""
    if not image.exists():
        with open(image, "wb") as out:
            out.truncate(offset + size_mib * MIB)
    extra = f"offset={offset},lazy_itable_init=0,lazy_journal_init=0,hash_seed={fs_uuid}"
    fill = ["-d", folder] if folder else []
    call("mke2fs", "-q", "-F", "-t", "ext4", "-b", 4096, "-L", label, "-U", fs_uuid, "-O", features,
         "-E", extra, *fill, image, f"{size_mib * 1024}k",
         env={**os.environ, "E2FSPROGS_FAKE_TIME": "1700000000"})


def _layout(recipe, root_mib):
    """{partition: (offset, size)} in bytes."""
    sizes = {"root": root_mib, "store": STORE_MIB, "arena": ARENA_MIB, "swap": recipe.swap_mib,
             "esp": ESP_MIB, "boot": BOOT_MIB}
    places, offset = {"bios": (BIOS_SECTOR * 512, BIOS_SECTORS * 512)}, MIB
    for name, size in sizes.items():
        if size:
            places[name] = (offset, size * MIB)
            offset += size * MIB
    return places


def _partition(image, places, ids):
    end = max(offset + size for offset, size in places.values()) + MIB
    with open(image, "wb") as out:
        out.truncate(end)
    rows = ["label: gpt", f"label-id: {ids['disk']}", f"first-lba: {BIOS_SECTOR}"]
    for name, (offset, size) in places.items():
        number, kind = PARTITIONS[name]
        part_uuid = f", uuid={ids['root-part']}" if name == "root" else ""
        rows.append(f"p{number} : start={offset // 512}, size={size // 512}, type={kind}{part_uuid}")
    call("sfdisk", "--quiet", "--no-reread", image, input="\n".join(rows) + "\n")


def _copy_in(image, offset, source):
    call("dd", f"if={source}", f"of={image}", "conv=notrunc,sparse", "status=none", "bs=1M",
         f"seek={offset // MIB}")


def build_disk(recipe=Recipe()):
    """The base disk for a recipe, from the cache or built (minutes the first time)."""
    with cache_lock():
        return _build_disk(recipe)


def _build_disk(recipe):
    apt = packages.Apt()
    tar, kernel_packages = packages.root_tar(apt)
    loaders = packages.loader_versions(apt)
    key = _digest(GUEST, tar.name, loaders, dataclasses.astuple(recipe),
                  pathlib.Path(__file__).read_text())
    image = cache_dir() / f"disk-{key}.raw"
    if pathlib.Path(str(image) + ".json").exists():
        touch_and_prune(image)
        return Disk.load(image)
    arena = arena_image(apt, tar)
    started = time.monotonic()
    log("assembling the disk")
    ids = {name: _uuid(key, name)
           for name in ("root", "store", "swap", "boot", "disk", "root-part")}
    ids["arena"] = call("blkid", "-p", "-s", "UUID", "-o", "value", arena).strip()
    ids["esp"] = f"{key[:4]}-{key[4:8]}".upper()
    kernels = [name.removeprefix("linux-image-") for name in kernel_packages]
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="build-") as temporary:
        work = pathlib.Path(temporary)
        root = work / "root"
        root.mkdir()
        call("tar", "-xf", tar, "-C", root, "--numeric-owner", "--exclude=./dev/*")
        _configure_system(root, ids, recipe)
        if recipe.modules:
            kernels.append(_add_module_kernel(root, apt))
        titles = _make_menu(root, ids)
        boot_img, core = _make_grub_core(root, ids["root"], work)
        disk = work / "disk"
        places = _layout(recipe, 2560 if recipe.modules else 1536)
        _partition(disk, places, ids)
        offset, size = places["root"]
        _make_ext4(disk, offset, size // MIB, "root", ids["root"], ROOT_EXT4, root)
        offset, size = places["store"]
        _make_ext4(disk, offset, size // MIB, STORE_LABEL, ids["store"], PLAIN_EXT4)
        _copy_in(disk, places["arena"][0], arena)
        if recipe.swap_mib:
            swap = work / "swap"
            with open(swap, "wb") as out:
                out.truncate(places["swap"][1])
            call("mkswap", "-q", "-U", ids["swap"], swap)
            _copy_in(disk, places["swap"][0], swap)
        packages.unpack_loaders(apt, loaders, work / "signed")
        _copy_in(disk, places["esp"][0], _make_esp(ids["root"], ids["esp"], work))
        _embed_core(disk, boot_img, core)
        disk.rename(image)
    made = Disk(path=image, uuids=ids, offsets={n: o for n, (o, _) in places.items()},
                sizes={n: s for n, (_, s) in places.items()}, kernels=kernels, menu=titles,
                default_title=titles[0])
    made.save_facts()
    log(f"disk assembled in {time.monotonic() - started:.0f} s")
    return made


def _debugfs(image, offset, commands):
    """Runs debugfs commands (writing) on a partition; debugfs reports errors only as text."""
    done = subprocess.run(["debugfs", "-w", "-f", "/dev/stdin", f"{image}?offset={offset}"],
                          input="".join(c + "\n" for c in commands), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    errors = [line for line in done.stderr.splitlines()[1:] if line.strip()]
    if done.returncode != 0 or errors:
        raise BenchError("debugfs: " + "\n".join(errors))
    return done.stdout


@contextlib.contextmanager
def exported(layer, span=None):
    """Path under which the qcow2 file LAYER looks raw and can be written (QEMU's FUSE export): all
    of it, or the (offset, size) of a partition."""
    point = layer.with_suffix(".raw")
    point.touch()
    node = "raw,node-name=part,file=disk" + (",offset={},size={}".format(*span) if span else "")
    daemon = subprocess.Popen(
        ["qemu-storage-daemon",
         "--blockdev", f"qcow2,node-name=disk,file.driver=file,file.filename={layer}",
         "--blockdev", node,
         "--export", f"fuse,id=part,node-name=part,mountpoint={point},writable=on",
         "--chardev", "stdio,id=qmp", "--monitor", "qmp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # The greeting comes once every export is there.
        if '"QMP"' not in (greeting := daemon.stdout.readline()):
            raise BenchError(f"qemu-storage-daemon cannot export {layer} (is there /dev/fuse?): "
                             f"{greeting}{daemon.stdout.read()}")
        yield point
    finally:
        daemon.terminate()
        daemon.communicate()
        point.unlink()


def prepare_disk(files, workdir, base=None):
    """Makes a layer over the base disk (default: build_disk()) in WORKDIR with files in its root.

    files: {path on the host: path in the guest}; the folder in the guest must exist. They get mode
    0755 and owner root. Returns the new Disk.
    """
    made = overlay(base or build_disk(), pathlib.Path(workdir) / "base.qcow2")
    commands = []
    for source, guest in files.items():
        commands += [f"write {pathlib.Path(source).resolve()} {guest}",
                     f"set_inode_field {guest} mode 0100755",
                     f"set_inode_field {guest} uid 0", f"set_inode_field {guest} gid 0"]
    if commands:
        with exported(made.path) as raw:
            _debugfs(raw, made.offsets["root"], commands)
    return made


def fill_partition(disk, name, make):
    """Fills a partition that is still empty, of a machine that is off.

    make(path) writes a file system into the empty file PATH, which has the partition's size.
    """
    offset, size = disk.offsets[name], disk.sizes[name]
    with tempfile.TemporaryDirectory(dir=disk.path.parent, prefix="fill-") as temporary:
        content = pathlib.Path(temporary) / name
        with open(content, "wb") as out:
            out.truncate(size)
        make(content)
        with exported(disk.path) as raw:
            _copy_in(raw, offset, content)


def overlay(disk, path):
    """A new qcow2 layer at PATH over DISK, which must not change any more. Returns its Disk."""
    call("qemu-img", "create", "-q", "-f", "qcow2", "-F", _form(disk.path), "-b",
         disk.path.resolve(), path)
    made = dataclasses.replace(disk, path=pathlib.Path(path))
    made.save_facts()
    return made


def _form(path):
    return "qcow2" if path.suffix == ".qcow2" else "raw"


def partition_image(disk, name, path):
    """Copies one partition of a disk (raw or qcow2, not in use by QEMU) into a raw file."""
    offset, size = disk.offsets[name], disk.sizes[name]
    call("qemu-img", "dd", "-f", _form(disk.path), "-O", "raw", f"bs={MIB}", f"if={disk.path}", f"of={path}",
         f"skip={offset // MIB}", f"count={(offset + size) // MIB}")
    return path


def extract_store(disk, outdir):
    """Copies the files of the store of a machine that is off into OUTDIR; replays its journal."""
    outdir = pathlib.Path(outdir)
    outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="store-") as temporary:
        image = partition_image(disk, "store", pathlib.Path(temporary) / "store.img")
        # As the next mount would do; 1 means that it replayed or corrected something.
        done = subprocess.run(["e2fsck", "-fp", image], check=False, capture_output=True, text=True)
        if done.returncode > 1:
            raise BenchError(f"the store is damaged:\n{done.stdout}{done.stderr}")
        call("debugfs", "-R", f"rdump / {outdir.resolve()}", image)
    return outdir


def main():
    parser = argparse.ArgumentParser(description="Builds the test machine's disk in the cache.")
    parser.add_argument("--modules", action="store_true", help="the disk with a modular kernel")
    parser.add_argument("--swap-mib", type=int, default=512)
    parser.add_argument("--prepare", metavar="DIR", help="also copy it into DIR")
    parser.add_argument("--add", metavar="HOST:GUEST", action="append", default=[],
                        help="file to put into the copy")
    parser.add_argument("--store", metavar="DISK", help="extract DISK's store into --prepare DIR")
    options = parser.parse_args()
    if options.store:
        extract_store(Disk.load(options.store), options.prepare)
        return
    disk = build_disk(Recipe(swap_mib=options.swap_mib, modules=options.modules))
    if options.prepare:
        files = dict(pair.split(":", 1) for pair in options.add)
        disk = prepare_disk(files, options.prepare, disk)
    print(disk.path)
    print("\n".join(disk.menu))


if __name__ == "__main__":
    main()
