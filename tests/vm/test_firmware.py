# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole campaigns under UEFI, under Secure Boot, and with /boot on other file systems."""
import json
import re

import campaign
import pytest
from image import ROOT_EXT4, fill_partition
from packages import call
from test_campaign import LISTING, visits

# Copies a signed kernel without its signature: data directory 4 of the PE header names it.
STRIP = rb"""
local $/;
open(my $in, '<:raw', $ARGV[0]) or die;
my $image = <$in>;
my $at = unpack('V', substr($image, 0x3c, 4)) + 24 + 112 + 4 * 8;
my ($offset, $size) = unpack('VV', substr($image, $at, 8));
die 'not signed' if !$size;
substr($image, $at, 8) = "\0" x 8;
open(my $out, '>:raw', $ARGV[1]) or die;
print $out substr($image, 0, $offset);
close($out) or die;
"""
# Copies it with one byte of its code changed: the signature is there, and wrong.
SPOIL = rb"""
local $/;
open(my $in, '<:raw', $ARGV[0]) or die;
my $image = <$in>;
substr($image, length($image) / 2, 1) ^= "\1";
open(my $out, '>:raw', $ARGV[1]) or die;
print $out $image;
close($out) or die;
"""


def boot_kinds(guest):
    """[(is it recount's, release or "")] of every way through GRUB."""
    return [(title.startswith("recount"), release) for title, release in visits(guest.console())]


def environment(store, boot):
    return json.loads((campaign.newest(store) / f"boots/{boot:04d}/environment-1.json").read_text())


def start_at_home(machine, disk, **options):
    guest = machine(disk, **options)
    guest.start()
    guest.wait_shell(300)
    return guest


def test_unattended_cycle_in_uefi(base_disk, new_disk, machine, tmp_path):
    """GRUB's EFI side takes the one-shot, clears it and comes home as the BIOS one does."""
    guest = start_at_home(machine, new_disk(base_disk), firmware="uefi")
    default, older = base_disk.kernels[-1], base_disk.kernels[0]
    campaign.prepare(guest, *campaign.TREE_TINY)
    assert re.search(r"^ok +grub +GRUB \(EFI\)", guest.run("recount check", 120).out, re.M)
    before = guest.run(LISTING, 120).out
    campaign.start(guest, "--rounds 1", "--loads none", f"--kernels {older}")
    campaign.follow(guest, 900)
    assert campaign.wait_idle_shell(guest, 300) == default
    assert guest.run(LISTING, 120).out == before
    store = campaign.take_store(guest, tmp_path / "store")
    # Home, canary, home, the older kernel, home; the machine's own boots are quiet.
    assert boot_kinds(guest) == [(False, ""), (True, default), (False, ""), (True, older),
                                 (False, "")]
    assert campaign.statuses(store) == {(1, 1, 1): "ok"} and not campaign.failures(store)
    assert environment(store, 1)["lockdown"].startswith("[none]")


def test_case_70_unsigned_kernel_is_left_out_under_secure_boot(base_disk, new_disk, machine,
                                                               tmp_path):
    """Case 70: the signed ones make their rounds; lockdown is noted and fails nothing."""
    guest = start_at_home(machine, new_disk(base_disk), firmware="secure")
    campaign.slim(guest)
    default, older = base_disk.kernels[-1], base_disk.kernels[0]
    guest.run(f"perl - /boot/vmlinuz-{older} /boot/vmlinuz-{older}-unsigned && "
              f"cp /boot/initrd.img-{older} /boot/initrd.img-{older}-unsigned", 120, STRIP)
    campaign.prepare(guest, *campaign.TREE_TINY)
    fit, skipped = guest.run("recount kernels", 120).out.split("skipped:")
    assert f"vmlinuz-{older}-unsigned  not signed, and Secure Boot is on" in skipped
    assert f"vmlinuz-{older} " in fit and f"vmlinuz-{default} " in fit and "unsigned" not in fit
    check = guest.run("recount check", 120).out
    assert re.search(rf"^warn +kernels +/boot/vmlinuz-{re.escape(older)}-unsigned is left out: "
                     "not signed", check, re.M)
    # The pattern means both.
    campaign.start(guest, "--rounds 1", "--loads none", f"--kernels '{older}*'")
    campaign.follow(guest, 1200)
    assert campaign.wait_idle_shell(guest, 300) == default
    store = campaign.take_store(guest, tmp_path / "store")
    assert boot_kinds(guest) == [(False, ""), (True, default), (False, ""), (True, older),
                                 (False, "")]
    assert campaign.statuses(store) == {(1, 1, 1): "ok"} and not campaign.failures(store)
    assert "[integrity]" in environment(store, 1)["lockdown"]


@pytest.mark.long
def test_kernel_that_shim_refuses_comes_home(base_disk, new_disk, machine, tmp_path):
    """A signature that does not fit is only seen by GRUB: its entry reboots, the rest goes on."""
    guest = start_at_home(machine, new_disk(base_disk), firmware="secure")
    campaign.slim(guest)
    default, older = base_disk.kernels[-1], base_disk.kernels[0]
    guest.run(f"perl - /boot/vmlinuz-{older} /boot/vmlinuz-{older}-spoiled && "
              f"cp /boot/initrd.img-{older} /boot/initrd.img-{older}-spoiled", 120, SPOIL)
    campaign.prepare(guest, *campaign.TREE_TINY)
    campaign.start(guest, "--rounds 1", "--loads none", f"--kernels '{older}*'")
    campaign.follow(guest, 1800)
    assert campaign.wait_idle_shell(guest, 300) == default
    store = campaign.take_store(guest, tmp_path / "store")
    plan = json.loads((campaign.newest(store) / "plan.json").read_text())
    boots = {boot["entry"]: boot["boot"] for boot in plan["boots"] if boot["boot"]}
    [spoiled] = [number for label, number in boots.items() if label.endswith("-spoiled")]
    [sound] = [number for label, number in boots.items() if number != spoiled]
    assert campaign.failures(store) == {(spoiled, 1): "not-reached", (spoiled, 2): "not-reached"}
    assert campaign.statuses(store) == {(sound, 1, 1): "ok"}
    assert guest.console().count("this entry cannot be booted; rebooting") == 2


# How the test's own file system for /boot is made, in an empty file.
MAKE = {
    "xfs": lambda uuid, path: call("mkfs.xfs", "-q", "-f", "-m", f"uuid={uuid}", path),
    "btrfs": lambda uuid, path: call("mkfs.btrfs", "-q", "-U", uuid, path),
    "ext4": lambda uuid, path: call("mkfs.ext4", "-q", "-F", "-O", ROOT_EXT4, "-U", uuid, path),
}
# As the distribution's installer would have it, but for grub-install on UEFI.
MOVE_BOOT = """set -e
mkdir /mnt/boot
mount -t {fstype} /dev/disk/by-uuid/{uuid} /mnt/boot
cp -r /boot/. /mnt/boot/
umount /mnt/boot
rm -r /boot
mkdir /boot
echo 'UUID={uuid} /boot {fstype} {options} 0 0' >>/etc/fstab
mount /boot
{install}
grub-mkconfig -o /boot/grub/grub.cfg
sync
"""
INSTALL_BIOS = "grub-install --target=i386-pc /dev/nvme0n1"
INSTALL_UEFI = "sed -i 's,/boot/grub,/grub,; s,fs_uuid [^ ]*,fs_uuid {uuid},' " \
               "/boot/EFI/debian/grub.cfg"


@pytest.mark.long
@pytest.mark.parametrize("fstype, firmware, options", [
    ("xfs", "bios", "defaults"), ("btrfs", "bios", "defaults"), ("vfat", "uefi", "umask=0077"),
    pytest.param("ext4", "bios", "data=journal", id="case_23_ext4-data=journal")])
def test_boot_partition_after_a_power_cut(base_disk, new_disk, machine, tmp_path, fstype, firmware,
                                          options):
    """GRUB replays no journal: the block in custom.cfg must be there for it as soon as `start`
    has ended. vfat is the ESP. Case 23 with data=journal."""
    disk = new_disk(base_disk)
    if fstype == "vfat":
        uuid, install = disk.uuids["esp"], INSTALL_UEFI
    else:
        uuid, install = disk.uuids["boot"], INSTALL_BIOS
        fill_partition(disk, "boot", lambda path: MAKE[fstype](uuid, path))
    guest = start_at_home(machine, disk, firmware=firmware)
    guest.run(MOVE_BOOT.format(fstype=fstype, uuid=uuid, options=options,
                               install=install.format(uuid=uuid)), 600)
    guest.send("systemctl reboot")
    default = guest.wait_shell(300)
    assert "BOOT_IMAGE=/vmlinuz-" in guest.run("cat /proc/cmdline").out
    assert guest.run("findmnt -no FSTYPE /boot").out.strip() == fstype
    campaign.prepare(guest, *campaign.TREE_TINY)
    before = guest.run(LISTING, 120).out
    guest.run(f"recount start --yes --no-reboot --notice 2 --rounds 1 --loads none "
              f"--kernels {default}", 300)
    # What a cut does to the root is not asked here; its journal is emptied by hand.
    guest.run("fsfreeze --freeze /")
    earlier = len(boot_kinds(guest))
    guest.kill()
    guest.start()
    campaign.follow(guest, 900)
    assert boot_kinds(guest)[earlier] == (True, default)
    assert campaign.wait_idle_shell(guest, 300) == default
    assert guest.run(LISTING, 120).out == before
    store = campaign.take_store(guest, tmp_path / "store")
    assert campaign.statuses(store) == {(1, 1, 1): "ok"} and not campaign.failures(store)
