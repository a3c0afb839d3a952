# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot needs and does not find, or finds damaged: disks, drivers, initrds, a clean root, room
on the store. Several in one campaign, since each visit costs half a minute, and each way home a
minute more.
"""
import hashlib
import re
import time

import aftermath
import campaign
import pytest
from image import Disk, partition_image
from packages import call

MIB = 1 << 20
HIBERNATED = "printf 'S1SUSPEND\\0' | dd of=/dev/nvme0n1p4 bs=1 seek=4086 conv=notrunc status=none; sync"
# An archive in front of the initrd in which /dev/console is a folder: as if there were none.
NO_CONSOLE = """set -e
mkdir -p /root/first/dev/console
cd /root/first
find dev | cpio --quiet -oH newc >/root/first.cpio
cat /root/first.cpio {initrd} >/root/initrd
cp /root/initrd {initrd}
rm -r /root/first /root/first.cpio /root/initrd
sync"""


def digest(disk, name, work):
    """Hash of a partition's bytes, of a machine that is off."""
    copy = partition_image(disk, name, work / "partition")
    with open(copy, "rb") as image:
        found = hashlib.file_digest(image, "sha256").hexdigest()
    copy.unlink()
    return found


def test_cases_52_56_dirty_root_hibernation_and_damaged_initrds(home, tmp_path):
    """Case 56: a dirty root is not written to; it and a hibernated system send the machine home, and
    count as nobody's failure. Case 52: no console for PID 1. An initrd is cut short after arming:
    the boot archive lies in front of it and works."""
    guest, label = home()
    disk = Disk.load(guest.disk)
    older, oldest = disk.kernels[1], disk.kernels[0]
    guest.run(NO_CONSOLE.format(initrd=f"/boot/initrd.img-{older}"))
    campaign.start_held(guest, f"{label},{older},{oldest}")

    # The root is mounted, so that its journal needs recovery from now on.
    guest.kill()
    before = digest(disk, "root", tmp_path)
    guest.start()
    guest.wait("boot 0, attempt 1: root-dirty", 300)
    guest.wait("recount: rebooting", 60)
    guest.kill()
    assert digest(disk, "root", tmp_path) == before

    guest.start()
    done = []

    def once(command):
        def act(match):
            if match[0] not in done:
                done.append(match[0])
                guest.run(command)
        return act

    # Once it is announced, the referee looks no more.
    campaign.react(guest, 900, {r"boot 0 of \d+ \(\S+, attempt 2\) begins": once(HIBERNATED)},
                   until=r"waits: /dev/nvme0n1p4 holds a hibernated system")
    campaign.wait_idle_shell(guest, 300)
    assert "boot 0, attempt 2: hibernated" in guest.console()
    guest.run(f"mkswap -U {disk.uuids['swap']} /dev/nvme0n1p4")
    guest.send("recount resume --yes --notice 2 >/dev/console 2>&1")
    initrd = f"/boot/initrd.img-{oldest}"
    campaign.react(guest, 1500, {
        r"boot 1 of \d+ \(\S+, attempt 1\) begins":
            once(f"truncate -s $(( $(stat -c %s {initrd}) / 2 )) {initrd}; sync")})
    console = guest.console()
    store = campaign.take_store(guest, tmp_path / "store")
    assert len(done) == 2
    assert campaign.failures(store) == {(0, 1): "root-dirty", (0, 2): "hibernated"}
    assert campaign.statuses(store) == {(boot, 1, 1): "ok" for boot in (1, 2, 3)}
    assert re.search(r"Initramfs unpacking failed", console)
    assert "Warning: unable to open an initial console" in console
    assert not aftermath.examine(disk, tmp_path).troubles


def disk_words(where, read_only=""):
    """QEMU's words for a disk with the store (vda) and one with the arena (sda)."""
    return ["-drive", f"file={where / 'store'},format=raw,if=none,id=store,cache=none{read_only}",
            "-device", "virtio-blk-pci,drive=store",
            "-drive", f"file={where / 'arena'},format=raw,if=none,id=arena,cache=none",
            "-device", "virtio-scsi-pci,id=scsi", "-device", "scsi-hd,drive=arena,bus=scsi.0"]


# Three disks behind three drivers; the first is built in, the others come with the initrd.
THREE_DISKS = """set -e
mount /dev/nvme0n1p3 /mnt
cp -r /mnt/tiny /root/tiny
umount /mnt
e2label /dev/nvme0n1p2 OLD
e2label /dev/nvme0n1p3 OLD
printf 'virtio_blk\nvirtio_scsi\nsd_mod\n' >>/etc/initramfs-tools/modules
update-initramfs -u -k $(uname -r)
modprobe -a virtio_blk virtio_scsi sd_mod
for i in $(seq 100); do [ -b /dev/vda ] && [ -b /dev/sda ] && break; sleep 0.1; done
recount format --store /dev/vda --arena /dev/sda
sync"""


@pytest.mark.long
def test_kernels_that_lack_a_driver_and_a_read_only_store(base_disk, new_disk, machine, tmp_path):
    """Case 64: GRUB cannot clear the key of a read-only store, so that the default boots, and the
    referee ends it there. Then kernels to which root, store or arena is missing, for want of a
    driver, and one that cannot mount the store: each is booked and goes home."""
    for name in ("store", "arena"):
        with open(tmp_path / name, "wb") as image:
            image.truncate(96 * MIB)
    guest = machine(new_disk(base_disk), extra=disk_words(tmp_path))
    guest.start()
    guest.wait_shell(300)
    campaign.slim(guest)
    guest.run(THREE_DISKS, 300)
    campaign.prepare(guest, "/root/tiny", campaign.TREE_TINY[1])
    label = campaign.label(guest, "6.12")
    words = {"root": "initcall_blacklist=nvme_init", "store": "module_blacklist=virtio_blk",
             "arena": "module_blacklist=virtio_scsi", "ext4": "initcall_blacklist=ext4_init_fs"}
    campaign.start_held(guest, label, *(f"{label}={word}" for word in words.values()), retries=1)

    guest.extra = disk_words(tmp_path, ",readonly=on")
    guest.send("systemctl reboot")
    guest.wait("the store can be read, but not written; what it holds of", 300)
    guest.wait("recount's block is removed from custom.cfg instead", 60)
    assert "recount.token" not in guest.console()
    campaign.wait_idle_shell(guest, 300)

    guest.extra = disk_words(tmp_path)
    guest.send("systemctl reboot")
    guest.wait(r"waits: recount's block in custom.cfg is missing", 300)
    campaign.wait_idle_shell(guest, 300)
    guest.send("recount resume --yes --notice 2 >/dev/console 2>&1")
    campaign.follow(guest, 2400)
    campaign.wait_idle_shell(guest, 300)
    guest.poweroff(180)

    store = tmp_path / "found"
    store.mkdir()
    call("e2fsck", "-fn", tmp_path / "store")
    call("debugfs", "-R", f"rdump / {store}", tmp_path / "store")
    boots = {what: campaign.boot_of(store, word) for what, word in words.items()}
    assert campaign.failures(store) == {
        (boots["root"], 1): "root-missing",
        (boots["arena"], 1): "arena-missing",
        # Without a store only the referee can tell, and not why.
        (boots["store"], 1): "not-reached",
        (boots["ext4"], 1): "not-reached",
    }
    [sane] = set(range(1, 6)) - set(boots.values())
    assert campaign.statuses(store) == {(sane, 1, 1): "ok"}
    console = guest.console()
    assert re.search(r"cannot find the store \(file system \S+\): No such file", console)
    assert re.search(r"cannot mount the store /dev/vda: No such device", console)


def throttle(guest, drive, bytes_per_s):
    """1: from now on the disk takes what it is asked for and does not answer; 0: it does again."""
    guest.qmp("block_set_io_throttle", device=drive, bps=bytes_per_s, bps_rd=0, bps_wr=0, iops=0,
              iops_rd=0, iops_wr=0)


@pytest.mark.long
def test_case_66_disk_that_stops_answering(home, tmp_path):
    """Case 66: once the root is mounted, nothing that waits for the disk ever returns. The worker hangs
    in the root's modules, which may take long: when the step's time is over, PID 1 reboots over its
    head, and a second worker books it. A disk that has nothing to do with us is left alone. The kernel
    must not reset a controller meanwhile: QEMU's then waits for the disk itself."""
    other = tmp_path / "other"
    with open(other, "wb") as image:
        image.truncate(16 * MIB)
    guest, label = home(extra=["-drive", f"file={other},format=raw,if=none,id=other",
                               "-device", "nvme,drive=other,serial=other"])
    patience = "nvme_core.io_timeout=1000000"
    campaign.start_held(guest, label, f"{label}={patience}", f"{label}={patience} fault=other")
    guest.send("systemctl reboot")
    now = {"cmdline": ""}

    def own(_):
        if patience in now["cmdline"] and "other" not in now["cmdline"] and "at_s" not in now:
            throttle(guest, "disk", 1)
            now["at_s"] = time.monotonic()

    def other_disk(bytes_per_s):
        return lambda _: "other" in now["cmdline"] and throttle(guest, "other", bytes_per_s)

    campaign.react(guest, 3000, {
        # It is said twice, since the console of a busy host may lose a letter.
        r"ommand line.*\n": lambda m: now.update(cmdline=m[0]),
        r"Run /recount-init as init process": other_disk(1),
        r"writes its record": other_disk(0),
        # The root's: no disk is looked for any more.
        r"EXT4-fs \(nvme\dn1p1\): mounted filesystem": own,
        r"rebooting over the worker.s head": lambda _: throttle(guest, "disk", 0),
    })
    back_s = min(s for s in guest.boots_s if s > now["at_s"])
    assert 150 < back_s - now["at_s"] < 1300
    assert "the deadline has passed: rebooting over the worker's head" in guest.console()
    store = campaign.take_store(guest, tmp_path / "store")
    boot = campaign.boot_of(store, patience, but="fault=other")
    assert campaign.failures(store) == {(boot, 1): "timeout"}
    messages = campaign.files(store, campaign.boot_of(store, "fault=other"))["dmesg-1.txt"]
    assert len(re.findall("/dev/nvme.n1 does not answer: what is on it is not known", messages)) == 1
    statuses = campaign.statuses(store)
    assert statuses.pop((boot, 1, 2)) == "ok"
    assert len(statuses) == 2 and {attempt for _, _, attempt in statuses} == {1}
    assert set(statuses.values()) == {"ok"}


# Leaves two: for reached-1.json and environment-1.json.
NO_INODES = """set -e
mount LABEL=RECOUNT /mnt
mkdir /mnt/full
cd /mnt/full
seq $(( $(df --output=iavail /mnt | tail -1) - 2 )) | xargs touch
df -i /mnt
cd /
umount /mnt"""


def test_case_64_full_store(home, tmp_path):
    """Case 64: no room for a record: the console shows it, the default boots, nothing is armed."""
    guest, label = home()
    campaign.start_held(guest, label)
    guest.run(NO_INODES, 120)
    guest.send("systemctl reboot")
    guest.wait("this record could not be written", 300)
    guest.wait(r'recount:\s+"wall_ns":\s*\d+', 60)
    guest.wait("this boot ends without a result; the machine goes home", 60)
    # The referee cannot write either: nothing is armed, and the machine stays at home.
    guest.wait("write .*No space left on device", 300)
    campaign.wait_idle_shell(guest, 300)
    time.sleep(10)
    assert guest.run("uname -r").out.strip()
    guest.run("recount stop")
    store = campaign.take_store(guest, tmp_path / "store")
    names = set(campaign.files(store, 0))
    assert names == {"attempt-1.json", "reached-1.json", "environment-1.json"}
    assert b"next_entry=recount" not in (store / "grub/grubenv").read_bytes()


@pytest.mark.long
def test_missing_archive_and_foreign_token(home, tmp_path):
    """recount.cpio is gone: not-reached. Case 24: with another attempt's token nothing is run."""
    guest, label = home()
    campaign.start_held(guest, label)
    store = "mount LABEL=RECOUNT /mnt && {} && umount /mnt"
    guest.run(store.format("mv /mnt/recount.cpio /mnt/away"))
    guest.send("systemctl reboot")
    guest.wait("this entry cannot be booted; rebooting", 300)
    campaign.wait_idle_shell(guest, 300)
    guest.wait("not-reached; to be tried again", 120)
    guest.wait("waits: recount.cpio on the store is missing", 60)
    guest.run("recount stop")
    guest.run(store.format("mv /mnt/away /mnt/recount.cpio"))
    guest.run("recount resume --yes --no-reboot --notice 2", 120)
    guest.run(store.format("grub-editenv /mnt/grub/grubenv set recount_token=2020-01-01-a-0000-1-0"))
    guest.send("systemctl reboot")
    guest.wait("is armed, so nothing is run", 300)
    guest.wait("GRUB never took it", 300)
    campaign.follow(guest, 900)
    store = campaign.take_store(guest, tmp_path / "store")
    assert campaign.failures(store) == {(0, 1): "not-reached"}
    assert campaign.statuses(store) == {(1, 1, 1): "ok"}
