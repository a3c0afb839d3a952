# SPDX-License-Identifier: GPL-3.0-or-later
"""The command on fake machines: what it says, what it refuses, and that it changes nothing."""
import json
import os
import re
import struct
import subprocess

import pytest

from fakemachine import (OTHER, RECOUNT, ROOT_UUID, RUNNING, bzimage, grub_cfg, image, initrd, lines,
                         run, signed)

VERBS = ("kernels", "format", "prepare", "check", "plan", "start", "status", "stop", "resume",
         "report", "uninstall", "referee")

DONE, FAILED, USAGE, REFUSED = range(4)


def call(*argv):
    """The command, on this machine."""
    return subprocess.run([str(RECOUNT), *argv], text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)


# --- usage -------------------------------------------------------------------------------------

def test_usage_names_every_verb():
    result = call("--help")
    assert result.returncode == DONE and result.stderr == ""
    for verb in VERBS:
        assert re.search(rf"^  {verb}\b", result.stdout, re.M)


def test_no_verb_is_wrong_usage():
    result = call()
    assert result.returncode == USAGE and result.stdout == ""
    assert "usage: recount" in result.stderr


def test_version():
    result = call("--version")
    assert result.returncode == DONE and re.match(r"recount \d", result.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_tells_its_options(verb):
    result = call(verb, "--help")
    assert result.returncode == DONE and result.stderr == ""
    assert result.stdout.startswith(f"usage: recount {verb}")
    assert "--root DIR" in result.stdout
    for line in result.stdout.splitlines():
        assert len(line) <= 90


def test_help_lists_only_what_the_verb_takes():
    assert "--loads" in call("start", "--help").stdout
    assert "--loads" not in call("report", "--help").stdout


@pytest.mark.parametrize("argv, words", [
    (["chek"], ['no verb "chek"', '"check" is near', "see recount check --help"]),
    (["frobnicate"], ['no verb "frobnicate"', "see recount --help"]),
    (["check", "--rouns", "3"], ["--rouns", "--rounds is near", "see recount check --help"]),
    (["check", "--frobnicate"], ["there is no option --frobnicate", "see recount check --help"]),
    (["status", "--rounds", "3"], ["recount status takes no --rounds", "recount status --help"]),
    (["start", "--loads", "none,foo"], ['no load "foo"', "none, mem, io, process"]),
    (["start", "--loads", "io,none,io"], ['"io" is named twice']),
    (["start", "--rounds", "0"], ["--rounds 0", "from 1 to 1000"]),
    (["start", "--rounds", "3x"], ["--rounds 3x", "from 1 to 1000"]),
    (["start", "--rounds"], ["--rounds: a value is missing"]),
    (["start", "--seed", "9007199254740992"], ["below 2^53"]),
    (["start", "--append", "6.1.0-57"], ["--append", "LABEL='words"]),
    (["start", "--append", "6.1.0-57=quiet -- --help"], ["--append", "would hide"]),
    (["report", "--format", "yaml"], ["--format yaml", "text or json"]),
    (["check", "word"], ['"word" is one word too many']),
    (["--root", "/nonexistent", "check"], ["--root /nonexistent", "no such folder"]),
    (["--rounds", "3", "check"], ["takes no --rounds"]),
    (["format"], ["--store DEV --arena DEV"]),
    (["prepare"], ["--tree SRC"]),
])
def test_wrong_usage(argv, words):
    result = call(*argv)
    assert result.returncode == USAGE
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


# --- kernels -----------------------------------------------------------------------------------

def test_kernels_lists_what_can_be_booted(machine):
    machine.write("boot/vmlinuz-6.5.0-empty", bzimage("6.5.0-empty"))
    machine.write("boot/initrd.img-6.5.0-empty", b"")
    before = machine.state()
    result = machine.recount("kernels")
    assert result.returncode == DONE
    head, first, second, skipped, empty = result.stdout.splitlines()
    assert head.split() == ["LABEL", "VERSION", "IMAGE", "INITRD"]
    assert first.split()[1:3] == [RUNNING, f"vmlinuz-{RUNNING}"]
    assert second.split()[1:3] == [OTHER, f"vmlinuz-{OTHER}"]
    assert skipped == "skipped:"
    assert empty.split()[0] == "vmlinuz-6.5.0-empty" and "initrd is empty" in empty
    assert machine.state() == before


def test_kernels_takes_patterns(machine):
    result = machine.recount("kernels", "--kernels", "6.12*")
    assert result.returncode == DONE
    assert OTHER in result.stdout and RUNNING not in result.stdout


def test_case_70_kernels_skips_unsigned_ones_under_secure_boot(machine):
    guid = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
    machine.write(f"sys/firmware/efi/efivars/SecureBoot-{guid}", b"\x06\0\0\0\1")
    machine.write(f"sys/firmware/efi/efivars/SetupMode-{guid}", b"\x06\0\0\0\0")
    machine.kernel(RUNNING, signed(bzimage(RUNNING)))
    result = machine.recount("kernels")
    assert result.returncode == DONE
    fit, skipped = result.stdout.split("skipped:")
    assert RUNNING in fit and OTHER not in fit
    assert OTHER in skipped and "not signed" in skipped
    # The run goes on with the others.
    result = machine.recount("check")
    assert lines(result, "no") == [] and result.returncode == DONE
    assert any(f"vmlinuz-{OTHER} is left out: not signed" in line for line in lines(result, "warn"))


# --- check: a fit machine ----------------------------------------------------------------------

def test_check_of_a_fit_machine_whose_store_cannot_be_read(machine):
    before = machine.state()
    result = machine.recount("check", "--swap", "/dev/sda4")
    assert lines(result, "no") == []
    assert result.returncode == DONE
    assert any("the store cannot be read" in line for line in lines(result, "warn"))
    for area in ("grub", "default", "root", "store", "arena", "swap", "kernels", "watchdog"):
        assert re.search(rf"^ok +{area} ", result.stdout, re.M), area
    assert result.stdout.endswith("Nothing was changed.\n")
    assert machine.state() == before


def test_check_reads_the_store(mounted):
    mounted.prepared()
    mounted.attach()
    before = mounted.state()
    result = mounted.recount("check", "--swap", "/dev/sda4")
    assert lines(result, "no") == []
    assert result.returncode == DONE
    assert "linux-6.12, builds here: 5 min 02 s cold, -j4" in result.stdout
    assert result.stdout.endswith("0 obstacles, 0 warnings. Nothing was changed.\n")
    assert mounted.state() == before


def test_plan_prints_everything_and_writes_nothing(mounted):
    mounted.prepared()
    mounted.attach()
    before = mounted.state()
    argv = ("plan", "--rounds", "3", "--seed", "7", "--swap", "sda4", "--append",
            "6.12.9=mitigations=off nosmt")
    result = mounted.recount(*argv)
    assert result.returncode == DONE, result.stderr
    text = result.stdout
    assert "3 kernels, 3 rounds, 4 loads = 36 trials in 9 boots (+1 trial boot)" in text
    assert re.search(r"^about \d+ (h|min) .*; seed 7; baseline 6\.1\.0-57$", text, re.M)
    assert "make clean; make -j4 vmlinux" in text
    assert "6.12.9+mitigations=off,nosmt" in text
    command_lines = re.findall(r"^    root=.*$", text, re.M)
    assert len(command_lines) == 3
    for line in command_lines:
        assert "quiet" not in line
        assert line.endswith("panic=10 rd.shell=0 rd.emergency=reboot noresume")
    assert sum("mitigations=off nosmt panic=10" in line for line in command_lines) == 1
    boots = re.findall(r"^ +(\d+)  (?:round (\d+)|canary) +(\S+) +(.*)$", text, re.M)
    assert [int(b[0]) for b in boots] == list(range(10))
    assert boots[0][1:] == ("", "6.1.0-57", "none")
    for number in "123":
        of_round = [b for b in boots if b[1] == number]
        assert sorted(b[2] for b in of_round) == ["6.1.0-57", "6.12.9",
                                                  "6.12.9+mitigations=off,nosmt"]
        assert len({b[3] for b in of_round}) == 1
    assert mounted.recount(*argv).stdout == text
    assert mounted.state() == before


def test_plan_skips_mem_without_swap_and_says_so(mounted):
    mounted.prepared()
    mounted.attach()
    result = mounted.recount("plan", "--loads", "none,mem")
    assert result.returncode == DONE
    assert "skipped: the mem load" in result.stderr and "--swap DEV" in result.stderr
    assert "1 load =" in result.stdout
    result = mounted.recount("plan", "--loads", "mem")
    assert result.returncode == REFUSED and "no load is left" in result.stderr


def test_plan_while_a_campaign_is_active_says_so(mounted):
    mounted.prepared()
    mounted.put_on("sda2", {"active": "2026-11-30-a\n"})
    mounted.attach()
    before = mounted.state()
    result = mounted.recount("plan", "--rounds", "3")
    assert result.returncode == DONE, result.stderr
    assert "3 rounds, 3 loads" in result.stdout and "active" not in result.stdout
    for words in ("campaign 2026-11-30-a is active", "recount start would be refused",
                  "recount status shows it", "recount stop ends it"):
        assert words in result.stderr
    assert mounted.state() == before


def test_plan_while_active_is_damaged_says_so(mounted):
    mounted.prepared()
    mounted.put_on("sda2", {"active": "../elsewhere\n"})
    mounted.attach()
    result = mounted.recount("plan", "--loads", "none")
    assert result.returncode == DONE and "1 load =" in result.stdout
    assert '"active" is damaged' in result.stderr and "recount stop removes it" in result.stderr


@pytest.mark.parametrize("argv, words", [
    (["--kernels", "5.*"], ["no"]),
    (["--kernels", "6.1*,5.4*"], ["--kernels 5.4*", "no such kernel", "recount kernels"]),
    (["--baseline", "7.0"], ["--baseline 7.0", "no entry", "recount kernels"]),
    (["--append", "7.0=x=y"], ["--append 7.0", "no kernel has this label", "recount kernels"]),
])
def test_plan_refuses(mounted, argv, words):
    mounted.prepared()
    mounted.attach()
    before = mounted.state()
    result = mounted.recount("plan", *argv)
    assert result.returncode == REFUSED and result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert mounted.state() == before


def test_another_name_of_a_kernel_is_no_warning(machine):
    before = machine.recount("check", "--swap", "/dev/sda4")
    (machine.root / "vmlinuz").symlink_to(f"boot/vmlinuz-{RUNNING}")
    (machine.root / "boot/vmlinuz-copy").write_bytes(bzimage(OTHER))
    result = machine.recount("check", "--swap", "/dev/sda4")
    assert result.stdout == before.stdout
    assert "the same file as" in machine.recount("kernels").stdout


# --- check: bad input --------------------------------------------------------------------------

def refused(machine, words, *argv, verb="check"):
    """It is refused with a line that has all of these words, and not a byte is different."""
    before = machine.state()
    result = machine.recount(verb, *argv)
    assert result.returncode == REFUSED, result.stdout + result.stderr
    obstacles = lines(result, "no")
    assert any(all(word in line for word in words) for line in obstacles), (words, obstacles)
    assert machine.state() == before
    return result


REFUSING = ("check", "plan", "start")


@pytest.mark.parametrize("argv", [["check"], ["plan"], ["start", "--yes"], ["report"],
                                  ["prepare", "--tree", "/usr"]])
def test_not_root(argv):
    options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    result = subprocess.run([str(RECOUNT), *argv], text=True, capture_output=True, check=False,
                            stdin=subprocess.DEVNULL, timeout=60, **options)
    assert result.returncode == REFUSED, result.stdout + result.stderr
    assert "as root" in result.stdout + result.stderr


@pytest.mark.parametrize("verb", REFUSING)
def test_no_store(machine, verb):
    run("e2label", machine.root / "dev/sda2", "OTHER")
    argv = ("--yes",) if verb == "start" else ()
    result = refused(machine, ["store", "no partition is labelled RECOUNT",
                               "recount format --store"], *argv, verb=verb)
    # What only follows from it is not said.
    assert "nothing is prepared" not in result.stdout + result.stderr
    assert not [line for line in lines(result, "no") if line.startswith("tree")]


def second_store(machine):
    machine.disk("sdb1", 17, 16 << 20, 2048)
    machine.mkfs("sdb1", "mke2fs", "-q", "-L", "RECOUNT")


def test_two_stores(machine):
    second_store(machine)
    refused(machine, ["store", "/dev/sda2", "/dev/sdb1", "labelled RECOUNT", "e2label"])


READING = ("status", "report", "referee", "resume")


@pytest.mark.parametrize("verb", (*READING, *REFUSING, "stop", "uninstall"))
def test_two_stores_are_refused_by_every_verb(machine, verb):
    if os.geteuid() != 0:
        pytest.skip("needs root, which is asked for first")
    second_store(machine)
    before = machine.state()
    result = machine.recount(verb)
    said = result.stdout + result.stderr
    assert result.returncode == REFUSED, said
    for word in ("several partitions are labelled RECOUNT", "/dev/sda2, /dev/sdb1", "e2label DEV"):
        assert word in said
    assert machine.state() == before


@pytest.mark.parametrize("verb", READING)
def test_no_store_is_refused_by_those_that_read_it(machine, verb):
    if os.geteuid() != 0:
        pytest.skip("needs root, which is asked for first")
    run("e2label", machine.root / "dev/sda2", "OTHER")
    before = machine.state()
    result = machine.recount(verb)
    assert result.returncode == REFUSED, result.stdout + result.stderr
    assert "no partition is labelled RECOUNT" in result.stderr
    assert "recount format --store DEV" in result.stderr
    assert machine.state() == before


@pytest.mark.parametrize("verb", ["status", "report", "referee"])
def test_mounted_store_is_refused_by_those_that_read_it(machine, verb):
    if os.geteuid() != 0:
        pytest.skip("needs root, which is asked for first")
    machine.mounts("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   "27 25 8:2 / /mnt/store rw - ext4 /dev/sda2 rw\n")
    before = machine.state()
    result = machine.recount(verb)
    assert result.returncode == REFUSED, result.stdout + result.stderr
    assert "it is mounted at /mnt/store (umount it)" in result.stderr
    assert machine.state() == before


@pytest.mark.parametrize("verb, words", [("stop", "nothing to do"),
                                         ("uninstall", "nothing of recount is left")])
def test_without_a_store_there_is_nothing_to_stop(machine, verb, words):
    if os.geteuid() != 0:
        pytest.skip("needs root, which is asked for first")
    run("e2label", machine.root / "dev/sda2", "OTHER")
    before = machine.state()
    result = machine.recount(verb)
    assert result.returncode == DONE and words in result.stdout
    assert "no store found" in result.stderr
    assert machine.state() == before


def test_a_clone_of_the_store(machine):
    machine.disk("sdb1", 17, 64 << 20, 2048)
    run("cp", "--sparse=always", machine.root / "dev/sda2", machine.root / "dev/sdb1")
    run("e2label", machine.root / "dev/sdb1", "OTHER")
    refused(machine, ["store", "UUID of /dev/sda2", "tune2fs -U random"])


def test_case_22_store_on_lvm(machine):
    machine.write("sys/class/block/sda2/dm/uuid", "LVM-abc\n")
    refused(machine, ["store", "/dev/sda2", "LVM", "plain partition"])


def test_case_22_store_on_md(machine):
    (machine.root / "sys/class/block/sda2/md").mkdir()
    refused(machine, ["store", "/dev/sda2", "md", "plain partition"])


def test_case_22_store_on_vfat(machine):
    machine.mkfs("sda2", "mkfs.vfat", "-n", "RECOUNT")
    refused(machine, ["store", "/dev/sda2 is vfat, not ext4", "recount format"])


def crc32c(data):
    """CRC-32C, bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_case_22_store_on_btrfs(machine):
    """A superblock of btrfs (Documentation: On-disk Format), which is all that a probe reads."""
    block = bytearray(4096)
    block[0x20:0x30] = bytes(range(16))
    struct.pack_into("<QQ", block, 0x30, 0x10000, 1)
    block[0x40:0x48] = b"_BHRfS_M"
    struct.pack_into("<QQ", block, 0x70, 64 << 20, 1 << 20)
    struct.pack_into("<QII", block, 0x88, 1, 4096, 16384)
    block[0x12b:0x132] = b"RECOUNT"
    struct.pack_into("<I", block, 0, crc32c(block[0x20:]))
    with open(image(machine.root / "dev/sda2", 64), "r+b") as f:
        f.seek(0x10000)
        f.write(block)
    refused(machine, ["store", "/dev/sda2 is btrfs, not ext4", "recount format"])


def test_case_22_store_on_zfs(machine):
    """What a probe reads of zfs: the magic numbers of its uberblocks."""
    with open(image(machine.root / "dev/sda2", 64), "r+b") as f:
        for label in (0, 256 << 10):
            for block in range(128, 192):
                f.seek(label + block * 1024)
                f.write(struct.pack("<QQ", 0x00bab10c, 5000))
    # None is found: a zfs has no label that could be RECOUNT.
    refused(machine, ["store", "no partition is labelled RECOUNT", "recount format"])


@pytest.mark.parametrize("fstype, argv", [
    ("ext4", ["mke2fs", "-q", "-t", "ext4"]), ("vfat", ["mkfs.vfat"]), ("xfs", None),
    ("btrfs", None)])
@pytest.mark.parametrize("stack", ["", "LVM-abc"], ids=["plain", "lvm"])
def test_case_22_boot_may_lie_where_grub_can_read_it(machine, fstype, argv, stack):
    machine.disk("sdb5", 21, 16 << 20, 2048)
    if argv:
        machine.mkfs("sdb5", *argv, mib=16)
    if stack:
        machine.write("sys/class/block/sdb5/dm/uuid", stack + "\n")
    machine.mounts("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   f"28 25 8:21 / /boot rw - {fstype} /dev/sdb5 rw\n")
    assert lines(machine.recount("check"), "no") == []


def test_store_with_features_that_grub_may_not_know(machine):
    machine.mkfs("sda2", "mke2fs", "-q", "-t", "ext4", "-O", "metadata_csum", "-L", "RECOUNT")
    refused(machine, ["store", "/dev/sda2", "metadata_csum", "recount format"])


def test_store_that_is_mounted(machine):
    machine.mounts("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   "27 25 8:2 / /mnt/my\\040store rw - ext4 /dev/sda2 rw\n")
    refused(machine, ["store", "/dev/sda2 is mounted at /mnt/my store", "umount"])


def test_store_is_the_root(machine):
    run("e2label", machine.root / "dev/sda2", "OTHER")
    run("e2label", machine.root / "dev/sda1", "RECOUNT")
    refused(machine, ["store", "/dev/sda1 holds the machine's own root file system"])


def test_store_and_arena_on_one_file_system(machine):
    """The arena's partition holds the very file system of the store."""
    run("cp", "--sparse=always", machine.root / "dev/sda2", machine.root / "dev/sda3")
    run("e2label", machine.root / "dev/sda3", "RECOUNT-ARENA")
    refused(machine, ["arena", "store and arena are one file system", "must be two"])


def test_no_arena(machine):
    run("e2label", machine.root / "dev/sda3", "OTHER")
    refused(machine, ["arena", "no partition is labelled RECOUNT-ARENA", "recount format"])


def test_case_64_store_has_less_space_than_the_plan_needs(machine):
    refused(machine, ["store", "/dev/sda2 has", "the plan needs", "fewer --rounds"],
            "--rounds", "200")


def test_arena_has_less_space_than_the_plan_needs(machine):
    machine.write("proc/meminfo", "MemTotal: 8388608 kB\n")
    refused(machine, ["arena", "/dev/sda3 has", "the plan needs"])
    result = machine.recount("check", "--loads", "none")
    assert lines(result, "no") == []


def test_case_38_custom_cfg_is_not_sourced(machine):
    machine.grub(grub_cfg([RUNNING, OTHER]).split("### BEGIN /etc/grub.d/41_custom ###")[0])
    refused(machine, ["grub", "/boot/grub/grub.cfg does not source custom.cfg",
                      "chmod +x /etc/grub.d/41_custom"])


def test_no_grub(machine):
    (machine.root / "boot/grub/grub.cfg").unlink()
    refused(machine, ["grub", "no grub.cfg", "install it"])


def test_default_is_not_the_running_kernel(machine):
    machine.grub(grub_cfg([OTHER, RUNNING]))
    refused(machine, ["default", f"boots {OTHER}", f"but {RUNNING} runs",
                      f"grub-set-default 'gnulinux-advanced-{ROOT_UUID}>"
                      f"gnulinux-{RUNNING}-advanced-{ROOT_UUID}'"])


def test_default_that_is_no_entry(machine):
    machine.grub(grub_cfg([RUNNING, OTHER], default="gnulinux-5.4-gone"))
    refused(machine, ["default", "gnulinux-5.4-gone", "grub-set-default"])


def test_default_in_the_submenu_by_id(machine):
    machine.grub(grub_cfg([OTHER, RUNNING], default=f"gnulinux-advanced-{ROOT_UUID}>"
                                                    f"gnulinux-{RUNNING}-advanced-{ROOT_UUID}"))
    assert lines(machine.recount("check"), "no") == []


@pytest.mark.parametrize("panic, words", [("", "no panic= on its command line"),
                                          ("panic=0", "has panic=0")])
def test_default_entry_that_would_stop_at_a_panic(machine, panic, words):
    before = machine.recount("check")
    machine.grub(grub_cfg([RUNNING, OTHER], panic=panic))
    result = machine.recount("check")
    new = set(lines(result, "warn")) - set(lines(before, "warn"))
    assert result.returncode == DONE and len(new) == 1
    [line] = new
    assert all(word in line for word in ["default", words, "panic=10", "update-grub"])


def test_half_a_block_in_custom_cfg(machine):
    machine.write("boot/grub/custom.cfg", "set x=1\n### END recount ###\n")
    refused(machine, ["grub", "/boot/grub/custom.cfg has only one of the lines", "by hand"])


def test_case_19_boot_counter(machine):
    machine.write("boot/grub/grubenv",
                  "# GRUB Environment Block\nboot_counter=2\n".ljust(1024, "#"))
    refused(machine, ["grub", "boot_counter", "grub-editenv - unset boot_counter"])


def test_root_on_btrfs(machine):
    machine.mounts("25 1 0:25 /@ / rw - btrfs /dev/sda1 rw,subvol=/@\n")
    refused(machine, ["root", "btrfs", "ext4 or xfs"])


def test_root_on_lvm(machine):
    machine.write("sys/class/block/sda1/dm/uuid", "LVM-abc\n")
    refused(machine, ["root", "lies on LVM", "plain partition"])


def test_root_on_luks(machine):
    machine.write("sys/class/block/sda1/dm/uuid", "CRYPT-LUKS2-abc\n")
    refused(machine, ["root", "lies on crypt", "plain partition"])


def test_toolchain_on_another_file_system(machine):
    machine.mounts("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   "27 25 8:17 / /usr rw - ext4 /dev/sdb1 rw\n")
    refused(machine, ["tools", "/usr/bin/make", "mounted at /usr", "move the toolchain"])


def test_no_compiler(machine):
    (machine.root / "usr/bin/gcc").unlink()
    refused(machine, ["tools", "there is no gcc", "install"])


def test_no_systemd(machine):
    (machine.root / "usr/lib/systemd/systemd").unlink()
    refused(machine, ["systemd", "referee"])


def test_hibernated_system(machine):
    """What a kernel leaves in the swap partition (kernel/power/swap.c)."""
    with open(machine.root / "dev/sda4", "r+b") as f:
        f.seek(4096 - 10)
        f.write(b"S1SUSPEND\0")
    refused(machine, ["/dev/sda4 holds a hibernated system", "mkswap"])


@pytest.mark.parametrize("swap, words", [
    ("/dev/sdz9", ["/dev/sdz9: no such partition", "lsblk -f"]),
    ("/dev/sda3", ["/dev/sda3 is ext4, not swap", "mkswap"]),
])
def test_swap_that_is_none(machine, swap, words):
    refused(machine, ["swap", *words], "--swap", swap)


def test_running_kernel_is_gone(machine):
    (machine.root / f"boot/vmlinuz-{RUNNING}").unlink()
    refused(machine, ["kernels", f"the running kernel {RUNNING}", "recount kernels"])


@pytest.mark.parametrize("content, words", [
    (b"", ["initrd is empty"]),
    (b"\x1f\x8b\x08\0\0\0\0\0\0\x03cut", ["initrd"]),
])
def test_damaged_initrd_leaves_out_that_kernel_alone(machine, content, words):
    machine.write(f"boot/initrd.img-{OTHER}", content)
    before = machine.state()
    result = machine.recount("check")
    assert lines(result, "no") == []
    assert any(all(w in line for w in [f"/boot/vmlinuz-{OTHER} is left out", *words])
               for line in lines(result, "warn"))
    assert machine.state() == before


def without_initrd(machine, version):
    """A kernel that cannot do without."""
    (machine.root / f"boot/initrd.img-{version}").unlink()
    machine.write(f"boot/config-{version}", "CONFIG_BLK_DEV_INITRD=y\nCONFIG_EXT4_FS=m\n")


def test_kernel_without_the_initrd_that_it_needs(machine):
    without_initrd(machine, OTHER)
    before = machine.state()
    result = machine.recount("check")
    assert lines(result, "no") == []
    assert any(f"/boot/vmlinuz-{OTHER} is left out" in line and "ext4" in line
               for line in lines(result, "warn"))
    assert machine.state() == before


@pytest.mark.parametrize("makers, command", [
    (["usr/sbin/update-initramfs"], "update-initramfs -u -k "),
    (["usr/bin/dracut"], "dracut --force --kver "),
    (["usr/bin/dracut", "usr/sbin/update-initramfs"], "update-initramfs -u -k "),
], ids=["debian", "dracut", "both"])
@pytest.mark.parametrize("content, words", [
    (b"", "its initrd is empty (0 bytes); rebuild it: "),
    (initrd()[:-12], "its initrd is damaged; rebuild it: "),
    (b"<html></html>", "its initrd is in no format that a kernel can unpack; rebuild it: "),
    (None, "it has no initrd, but ext4 is a module that it needs first; make it: "),
], ids=["empty", "cut", "unknown", "missing"])
def test_remedy_of_an_initrd_is_a_command(machine, makers, command, content, words):
    for maker in makers:
        machine.write(maker, "")
    for version in (RUNNING, OTHER):
        if content is None:
            without_initrd(machine, version)
        else:
            machine.write(f"boot/initrd.img-{version}", content)
    result = machine.recount("kernels")
    for version in (RUNNING, OTHER):
        assert f"{words}{command}{version}\n" in result.stdout
    # That of the running kernel is an obstacle, and start shows nothing but obstacles.
    for verb in REFUSING:
        refused(machine, ["kernels", f"the running kernel {RUNNING}", words + command + RUNNING],
                *(["--yes"] if verb == "start" else []), verb=verb)


def test_comforts_are_warnings(machine):
    (machine.root / "sys/class/watchdog/watchdog0").rmdir()
    machine.write("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")
    result = machine.recount("check")
    assert result.returncode == DONE
    warnings = lines(result, "warn")
    assert any(line.startswith("watchdog") and "power button" in line for line in warnings)
    assert any(line.startswith("turbo") and "no_turbo" in line for line in warnings)
    assert any(line.startswith("swap") and "mem load will be skipped" in line
               for line in warnings)


@pytest.mark.parametrize("watchdog", [True, False], ids=["watchdog", "no-watchdog"])
@pytest.mark.parametrize("node, cure", [
    (None, "the power button"), ("dev/ipmi0", "ipmitool -I lanplus -H BMC chassis power cycle"),
    ("dev/ipmi/0", "ipmitool -I lanplus -H BMC chassis power cycle")], ids=["no-bmc", "ipmi0", "ipmi-0"])
def test_check_says_what_cures_an_early_hang(machine, watchdog, node, cure):
    if not watchdog:
        (machine.root / "sys/class/watchdog/watchdog0").rmdir()
    if node:
        machine.write(node, "")
    result = machine.recount("check")
    line = watchdog_line(result)
    assert line.startswith("ok" if watchdog else "warn")
    assert "hangs before recount starts needs" in line and cure in line
    assert ("found, for hangs in trials" in line) == watchdog
    # Neither kernel could stop the BMC's watchdog.
    assert len([line for line in lines(result, "warn") if line.startswith("bmc")]) == (2 if node else 0)


def watchdog_line(result):
    [line] = re.findall(r"^\w+ +watchdog .*$", result.stdout, re.M)
    return line


def with_ipmi(machine, *versions):
    for version in versions:
        machine.write(f"usr/lib/modules/{version}/modules.dep",
                      "kernel/drivers/char/ipmi/ipmi_devintf.ko.xz: kernel/drivers/char/ipmi/ipmi_msghandler.ko.xz\n"
                      "kernel/drivers/char/ipmi/ipmi_si.ko.xz:\n"
                      "kernel/drivers/char/ipmi/ipmi_msghandler.ko.xz:\n")


@pytest.mark.parametrize("watchdog", [True, False], ids=["watchdog", "no-watchdog"])
def test_check_says_which_early_hangs_the_bmc_cures(machine, watchdog):
    if not watchdog:
        (machine.root / "sys/class/watchdog/watchdog0").rmdir()
    machine.write("dev/ipmi0", "")
    with_ipmi(machine, RUNNING)
    result = machine.recount("check")
    assert result.returncode == DONE
    line = watchdog_line(result)
    assert line.startswith("ok" if watchdog else "warn")
    assert "of the other kernels one that hangs before recount starts is reset by the BMC's, 20 min after" in line
    assert watchdog or "a kernel that hangs in a trial needs a power cycle" in line
    [other] = [line for line in lines(result, "warn") if line.startswith("bmc")]
    assert "6.12.9 could not stop the BMC's watchdog (it has no ipmi_si)" in other
    assert "ipmitool -I lanplus -H BMC chassis power cycle" in other
    # Of kernels that are not asked for nothing is said.
    result = machine.recount("check", "--kernels", RUNNING)
    assert not [line for line in lines(result, "warn") if line.startswith("bmc")]
    assert "recount starts is reset by the BMC's, 20 min after the reboot" in watchdog_line(result)
    with_ipmi(machine, OTHER)
    result = machine.recount("check")
    assert not [line for line in lines(result, "warn") if line.startswith("bmc")]
    assert "; a kernel that hangs before recount starts is reset by the BMC's, 20 min" in watchdog_line(result)


def test_bmcs_watchdog_that_somebody_else_has_is_not_used(machine):
    machine.write("dev/ipmi0", "")
    with_ipmi(machine, RUNNING, OTHER)
    (machine.root / "sys/module/ipmi_watchdog").mkdir(parents=True)
    result = machine.recount("check")
    assert result.returncode == DONE
    [line] = [line for line in lines(result, "warn") if line.startswith("bmc")]
    assert "its watchdog is not used: ipmi_watchdog has it (rmmod ipmi_watchdog" in line
    assert "needs a power cycle" in watchdog_line(result)
    assert "the BMC's watchdog does not reset it: ipmi_watchdog" in machine.recount("kernels").stdout


def test_kernels_tells_which_the_bmcs_watchdog_does_not_guard(machine):
    assert "watchdog" not in machine.recount("kernels").stdout
    machine.write("dev/ipmi0", "")
    with_ipmi(machine, RUNNING)
    out = machine.recount("kernels").stdout
    assert out.endswith("not reset by the BMC's watchdog when it hangs early:\n"
                        "  6.12.9  it has no ipmi_si to stop it later\n")
    with_ipmi(machine, OTHER)
    assert "watchdog" not in machine.recount("kernels").stdout


def test_plan_arms_the_bmcs_watchdog_for_kernels_that_can_stop_it(mounted):
    mounted.write("dev/ipmi0", "")
    with_ipmi(mounted, OTHER)
    mounted.prepared()
    mounted.attach()
    out = mounted.recount("plan").stdout
    entries = out[out.index("\nentries\n"):out.index("\nboots, in order\n")]
    assert entries.count("BMC's watchdog armed before each boot, 1200 s") == 1
    assert entries.rindex("BMC's watchdog armed") > entries.index(f"/boot/vmlinuz-{OTHER}")


# --- check: what the store holds ---------------------------------------------------------------

def test_nothing_prepared(mounted):
    mounted.attach()
    refused(mounted, ["tree", "nothing is prepared", "recount prepare --tree"])


@pytest.mark.parametrize("argv, words", [
    (["--tree", "linux-7.0.tar.xz"], ["linux-6.12 is prepared, not linux-7.0",
                                      "recount prepare --tree linux-7.0.tar.xz"]),
    (["--target", "init/"], ["another target is prepared", "--target 'init/'"]),
])
def test_another_tree_or_target_is_prepared(mounted, argv, words):
    mounted.prepared()
    mounted.attach()
    refused(mounted, ["tree", *words], *argv)
    refused(mounted, ["tree", "linux-6.12 is prepared, not /;"], "--tree", "/")
    result = mounted.recount("check", "--tree", "/src/linux-6.12.tar.xz", "--target", "vmlinux")
    assert lines(result, "no") == []


def test_prepared_in_another_arena(mounted):
    mounted.prepared(arena_uuid="99999999-2222-4333-8444-555555555555")
    mounted.attach()
    refused(mounted, ["tree", "another arena", "recount prepare"])


def test_toolchain_changed_since_prepare(mounted):
    mounted.prepared()
    mounted.write("usr/bin/gcc", "#!another\n")
    mounted.attach()
    refused(mounted, ["tools", "/usr/bin/gcc is not what it was", "recount prepare"])


@pytest.mark.parametrize("verb", ("check", "start"))
def test_a_second_campaign(mounted, verb):
    mounted.prepared()
    mounted.put_on("sda2", {"active": "2026-11-30-a\n"})
    mounted.attach()
    before = mounted.state()
    result = mounted.recount(verb, *(["--yes", "--no-reboot"] if verb == "start" else []))
    assert result.returncode == REFUSED
    assert "active" in result.stdout + result.stderr
    assert "recount stop" in result.stdout + result.stderr
    assert mounted.state() == before


def test_damaged_manifest(mounted):
    mounted.put_on("sda2", {"prepared/manifest.json": '{"schema": 1, "workload": {'})
    mounted.attach()
    result = refused(mounted, ["tree", "nothing is prepared"])
    assert "prepared/manifest.json" in result.stderr


# --- format ------------------------------------------------------------------------------------

def features(path):
    """The features of an ext4 by e2fsprogs."""
    text = run("dumpe2fs", "-h", path).stdout
    return set(re.search(r"^Filesystem features:(.*)$", text, re.M).group(1).split())


def test_format_makes_both(tmp_path):
    store, arena = image(tmp_path / "store", 64), image(tmp_path / "arena", 64)
    result = call("format", "--store", str(store), "--arena", str(arena))
    assert result.returncode == DONE, result.stderr
    assert "recount prepare" in result.stdout
    for path, label in ((store, "RECOUNT"), (arena, "RECOUNT-ARENA")):
        assert run("e2label", path).stdout.strip() == label
        assert features(path) == {"has_journal", "extent", "dir_index", "filetype",
                                  "sparse_super", "large_file", "64bit"}
        assert run("e2fsck", "-fn", path).returncode == 0


@pytest.mark.parametrize("fill, words", [
    (lambda path: run("mke2fs", "-q", "-L", "home", path), 'ext2 "home"'),
    (lambda path: run("mkfs.vfat", path), "vfat"),
    (lambda path: run("mkswap", path), "swap"),
    (lambda path: run("sfdisk", path, input="label: gpt\n,,\n"), "gpt partition table"),
])
def test_format_refuses_what_holds_anything(tmp_path, fill, words):
    store, arena = image(tmp_path / "store", 64), image(tmp_path / "arena", 64)
    fill(arena)
    before = store.read_bytes(), arena.read_bytes()
    result = call("format", "--store", str(store), "--arena", str(arena))
    assert result.returncode == REFUSED
    assert f"{arena} holds" in result.stderr and words in result.stderr
    assert "--force" in result.stderr
    assert (store.read_bytes(), arena.read_bytes()) == before
    result = call("format", "--store", str(store), "--arena", str(arena), "--force")
    assert result.returncode == DONE, result.stderr
    assert run("blkid", "-p", "-s", "LABEL", "-o", "value", arena).stdout == "RECOUNT-ARENA\n"


def test_format_refuses_one_partition_for_both(tmp_path):
    store = image(tmp_path / "store", 64)
    before = store.read_bytes()
    result = call("format", "--store", str(store), "--arena", str(store))
    assert result.returncode == REFUSED and "must be two partitions" in result.stderr
    assert store.read_bytes() == before


@pytest.mark.parametrize("name, words", [("none", "none"), (".", "neither a block device")])
def test_format_refuses_what_is_no_device(tmp_path, name, words):
    result = call("format", "--store", str(tmp_path / name))
    assert result.returncode == REFUSED and words in result.stderr


def test_format_refuses_what_is_too_small(tmp_path):
    result = call("format", "--store", str(image(tmp_path / "store", 8)))
    assert result.returncode == REFUSED and "at least 32 MiB" in result.stderr


# --- report ------------------------------------------------------------------------------------

PLAN = {
    "schema": 1, "id": "2026-11-30-a", "created_utc": "2026-11-30T22:51:59Z", "rtc_offset_s": 0,
    "seed": 7, "boot_mode": "initramfs", "mode": "as-shipped", "baseline": "6.1", "margin": 0.01,
    "rounds_max": 1,
    "limits": {"boot_timeout_ms": 600000, "trial_timeout_ms": 600000,
               "load_start_timeout_ms": 300000, "retries": 2, "boots_max": 16},
    "build_uid": 65534, "process": {"umask": 18, "nice": 0, "oom_score_adj": 0},
    "panic": {"kernel.panic": "10"}, "default_uname": "6.1.0",
    "store_uuid": ROOT_UUID.replace("1", "2"), "root": {"uuid": ROOT_UUID, "fstype": "ext4"},
    "arena": {"uuid": ROOT_UUID.replace("1", "3"), "fstype": "ext4", "bytes": 1 << 30},
    "memtotal_bytes": 1 << 30, "toolchain": {},
    "entries": [{"label": v, "id": f"recount-e0{i}", "version": f"{v}.0", "kernel": f"/boot/{v}",
                 "cmdline": "ro", "kernel_sha256": "c" * 64} for i, v in enumerate(("6.1", "6.12"))],
    "workloads": [{"name": "kernel", "dir": "linux", "clean": ["make", "clean"],
                   "build": ["make", "vmlinux"], "product": "vmlinux",
                   "product_sha256": "a" * 64, "tree_sha256": "b" * 64, "build_ns": 1000}],
    "loads": [{"name": "none", "kind": "none", "bytes": 0, "workers": 0}],
    "boots": [{"boot": b, "round": r, "entry": e,
               "trials": [{"trial": 1, "workload": "kernel", "load": "none", "jobs": 4}]}
              for b, r, e in ((0, 0, "6.1"), (1, 1, "6.1"), (2, 1, "6.12"))],
}


@pytest.fixture
def store(tmp_path):
    """A folder with a store's content: one campaign, one round, two trials."""
    folder = tmp_path / "store" / "campaigns" / "2026-11-30-a"
    (folder / "boots").mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    for boot, (label, wall_ns) in enumerate((("6.1", 251100000000), ("6.12", 247100000000)), 1):
        home = folder / "boots" / f"{boot:04}"
        home.mkdir()
        token = f"2026-11-30-a-{boot:04}-1-00000000"
        (home / "attempt-1.json").write_text(json.dumps(
            {"token": token, "boot": boot, "attempt": 1, "entry": label,
             "armed_utc": "2026-11-30T23:00:00Z", "plan_sha256": "d" * 64}))
        (home / "trial-01-1.json").write_text(json.dumps(
            {"schema": 1, "boot": boot, "round": 1, "entry": label, "attempt": 1, "trial": 1,
             "workload": "kernel", "load": "none", "jobs": 4, "status": "ok", "void": [],
             "wall_ns": wall_ns, "user_ns": 3 * wall_ns, "sys_ns": wall_ns // 2,
             "arena_fstype": "ext4"}))
    return tmp_path / "store"


def test_report_of_a_folder(store):
    result = call("report", str(store))
    assert result.returncode == DONE, result.stderr
    assert re.search(r"^6\.1 +\[1\] +4:11\.1", result.stdout, re.M)
    assert re.search(r"^6\.12 +\[1\] +4:07\.1", result.stdout, re.M)
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_report_as_json(store):
    result = call("report", "--format", "json", str(store), "2026-11-30-a")
    assert result.returncode == DONE, result.stderr
    rows = [r for r in json.loads(result.stdout)["rows"] if r["metric"] == "wall_ns"]
    assert {(r["entry"], r["n"], r["median"]) for r in rows} == {
        ("6.1", 1, 251100000000), ("6.12", 1, 247100000000)}
    assert [r["ratio"] for r in rows if r["entry"] == "6.12"] == [pytest.approx(247.1 / 251.1)]


def test_report_against_another_baseline(store):
    result = call("report", "--format", "json", "--baseline", "6.12", str(store))
    rows = [r for r in json.loads(result.stdout)["rows"] if r["metric"] == "wall_ns"]
    assert [r["ratio"] for r in rows if r["entry"] == "6.1"] == [pytest.approx(251.1 / 247.1)]
    result = call("report", "--baseline", "7.0", str(store))
    assert result.returncode == REFUSED and "--baseline 7.0" in result.stderr


def test_report_of_a_plan_cut_short(store):
    plan = store / "campaigns/2026-11-30-a/plan.json"
    plan.write_text(plan.read_text()[:-200])
    before = plan.read_bytes()
    result = call("report", str(store))
    assert result.returncode == FAILED and result.stdout == ""
    assert "campaigns/2026-11-30-a/plan.json" in result.stderr
    assert "cut short" in result.stderr
    assert plan.read_bytes() == before


def test_report_of_a_damaged_record_names_it(store):
    record = store / "campaigns/2026-11-30-a/boots/0001/trial-01-1.json"
    record.write_text(record.read_text()[:40])
    result = call("report", str(store))
    assert result.returncode == DONE
    assert "boots/0001/trial-01-1.json" in result.stderr
    assert re.search(r"^6\.1 +\[0\]", result.stdout, re.M)


@pytest.mark.parametrize("argv, words", [
    (["{tmp}"], "does not hold a store's content"),
    (["{tmp}/none"], "no such folder"),
    (["{tmp}/store", "2026-01-01-a"], "no campaign 2026-01-01-a"),
])
def test_report_of_what_is_not_there(store, tmp_path, argv, words):
    result = call("report", *(word.format(tmp=tmp_path) for word in argv))
    assert result.returncode == FAILED and result.stdout == "" and words in result.stderr
