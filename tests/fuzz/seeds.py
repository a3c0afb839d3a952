# SPDX-License-Identifier: GPL-3.0-or-later
"""The seeds of the fuzz targets: samples of each format, made from what other tests use, and what
is wrong with them, one thing each. One file a seed; NAME.dict are words for the fuzzer."""
import bz2
import gzip
import json
import lzma
import pathlib
import struct
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cli"))
import fakemachine  # pylint: disable=wrong-import-position

CUT = b"\x1c"
SIGNATURE = b"# GRUB Environment Block\n"
WRONG = (None, "", "../x", "a\x1b[2Jb", -1, 1.5, 1e300, [], {})


def parts(*values):
    """An input of several parts."""
    return CUT.join(v.encode() if isinstance(v, str) else v for v in values)


def damaged(value):
    """Copies of a JSON value, each with one thing in it that is wrong."""
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            for child in damaged(value[key]):
                yield dict(value, **{key: child})
    elif isinstance(value, list):
        yield value + value
        for i, item in enumerate(value[:2]):
            for child in damaged(item):
                yield value[:i] + [child] + value[i + 1:]
    else:
        yield from WRONG


def documents(sample):
    """The text of a JSON document, good and damaged."""
    yield json.dumps(sample).encode()
    yield json.dumps(dict(sample, schema=99)).encode()
    for document in damaged(sample):
        yield json.dumps(document).encode()
    for text in (b"[]", b"{", b'{"a":01}', b'{"a":"\xff"}', b'{"a":"\\u0000"}', b'{"a":1.}',
                 b'{"a":1e}', b'{"a":"\xe2\x82\xac\xf0\x9f\x98\x80"}', b"{}x", b"{\x01}",
                 b"[" * 20 + b"]" * 20, b'{"a":-1.5e+3}', b"}", b'{"a":\x00}', b'{"a":"\n"}',
                 b'{"a":"\xe0\x80\x80"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xf4\x90\x80\x80"}'):
        yield text


def golden(name):
    """A golden file of the unit tests."""
    return json.loads((TESTS / "unit/golden" / name).read_text(encoding="utf-8"))


def plan():
    """plan.json"""
    sample = golden("plan.json")
    yield json.dumps(sample, indent="\t").encode()
    yield from documents(sample)
    first = dict(sample["entries"][0], twin_of=sample["entries"][1]["label"])
    yield json.dumps(dict(sample, entries=[first] + sample["entries"][1:])).encode()


def record():
    """Of each kind."""
    trial = golden("trial.json")
    void = dict(trial, status="void", void=["oom", "load-died"])
    kinds = [[trial, void, dict(trial, status="timeout")],
             [{"token": "a-0007-2-0badcafe", "boot": 7, "attempt": 2, "entry": "6.12.117",
               "armed_utc": "2026-11-30T00:14:07Z", "plan_sha256": "a" * 64}],
             [{"token": "t", "uname": "Linux 6.1", "cmdline": "a=\"b c\"\t\u20ac",
               "reached_monotonic_ns": 4200000000}],
             [{"token": "t", "done_monotonic_ns": 77}],
             [{"reason": "panic", "evidence": "panic-1.txt"}, {"reason": "timeout"}]]
    for number, samples in enumerate(kinds):
        for sample in samples:
            for text in documents(sample):
                yield bytes([number]) + text


def prepared():
    """prepared/manifest.json"""
    sample = golden("plan.json")
    yield from documents({"schema": 1, "workload": sample["workloads"][0], "jobs": 2,
                          "build_uid": 65534, "arena_uuid": sample["arena"]["uuid"],
                          "toolchain": sample["toolchain"]})


def envblock():
    """Blocks of good and of careless writers."""
    def block(lines, size=1024, fill=b"#"):
        body = SIGNATURE + lines
        return body + fill * (size - len(body))

    blocks = [block(b"next_entry=recount-e01\n"), block(b""), block(b"a=1\n", 512),
              block(b"a=b\\\\c\\\nd\nz=1\n"), block(b"a=1\na=2\nb=3\n"), block(b"a=1\n", fill=b"\0"),
              block(b"# WARNING: do not edit\nsaved_entry=x\n"), block(b"a=1\n", 2048),
              block(b"a=1\n") + b"\n", block(b"a=1\nno equals\nb=2\n"), block(b"a=1\nb=2"),
              block(b" next_entry=third\n"), block(b"boot_counter=2\nboot_success=0\n"),
              block(b"a=1\0\nb=2\n"), block(b"only words\n"), block(b"#a\n##\n"),
              block(b"x=" + b"y" * 996 + b"\n"), block(b"x=" + b"y" * 900 + b"\n", 1024),
              block(b"k=v\n").replace(b"\n", b"\r\n"), b"", b"# Grub environment block\n",
              block(b"a=1\n", 300)]
    for bytes_ in blocks:
        for key, value in (("next_entry", "recount-e02"), ("a", "x\\y\nz"), ("", "v"), ("k=", "v"),
                           ("x", "y" * 200), ("a", "")):
            yield parts(key, value, bytes_)


def cmdline():
    """Command lines with quotes."""
    for key in ("recount.token", "a", "a-b"):
        for line in ("quiet splash foo=bar recount.token=7 -- --help\n", "a_b=1 a=\"b c\" \"a=d e\"",
                     "recount.token=a recount.token=b", "a", "\"a\"", "a=", "a=\"\"", "=a a =b",
                     "a=\"b", "\"a=b", "a=" + "x" * 40, "-- a=1", "--quiet a=1", "a\tb\n\nc"):
            yield parts(key, line)


def kernel_image():
    """Headers, each word of them once wrong."""
    image = fakemachine.bzimage("6.1.0-57-amd64")[:0xa00]
    yield image
    for at in (0x1fe, 0x202, 0x206, 0x20e, 0x20f, 0x236):
        for byte in (0, 0xff):
            yield image[:at] + bytes([byte]) + image[at + 1:]
    for version in ("../../etc/x", "a b", "6.1;reboot", "x" * 300, "-6", ".6", "6", "6.1+~:@%_"):
        yield fakemachine.bzimage(version)[:0xa00]
    yield image[:0x238]
    yield image[:0x805]
    yield fakemachine.bzimage("6.1")[:0x200] + b""


def newc(name, body=b""):
    """One member of a cpio."""
    fields = [1, 0o100755, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + body + b"\0" * (-len(body) % 4)


def lz4_legacy(raw):
    """As `lz4 -l`, literals only."""
    count = len(raw) - 15
    token = b"\xf0" + b"\xff" * (count // 255) + bytes([count % 255])
    block = token + raw
    return b"\x02\x21\x4c\x18" + struct.pack("<I", len(block)) + block


def initrd():
    """Archives, plain and compressed by every method, whole and not."""
    main = newc("init", b"#!/bin/sh\n") + newc("TRAILER!!!")
    early = newc("kernel/x86/microcode/GenuineIntel.bin", b"m" * 40) + newc("TRAILER!!!")
    packed = [gzip.compress(main, mtime=0), bz2.compress(main), lzma.compress(main),
              lzma.compress(main, format=lzma.FORMAT_ALONE), lz4_legacy(main), fakemachine.initrd(),
              b"\x89LZO\0\r\n\x1a\n" + b"x" * 40, b"\x1f\x9e" + b"x" * 40]
    zstd = subprocess.run(["zstd", "-q", "-c"], input=main, capture_output=True, check=False)
    packed.append(zstd.stdout)
    bootconfig = b"key = value\n\0"
    tail = bootconfig + struct.pack("<II", len(bootconfig), sum(bootconfig)) + b"#BOOTCONFIG\n"
    yield from (main, early, early + main, b"", b"\0" * 16, b"junk", b"070701", main + tail,
                newc("kernel") + newc("kernel/a") + newc("early_cpio", b"1") + newc("TRAILER!!!"),
                main.replace(b"070701", b"070702"), main.replace(b"00000001", b"0000000g", 1),
                newc("x", b"y" * 99)[:150], main[:-3], b"#BOOTCONFIG\n" * 3,
                main[:94] + b"00000000" + main[102:], main[:94] + b"ffffffff" + main[102:],
                gzip.compress(b"no archive", mtime=0), gzip.compress(main[:-24] + b"x", mtime=0),
                gzip.compress(b"070701" + b"\0" * 200000 + b"TRAILER!!!", mtime=0),
                gzip.compress(b"070701" + bytes(65530) + b"TRAI" + bytes(70000) + b"LER!!!"),
                gzip.compress(b"070701" + b"x" * 65525 + b"TRAILER!!!" + bytes(9)))
    for stream in packed:
        yield stream
        yield early + stream
        yield stream + b"\0" * 16
        yield stream[:len(stream) // 2]


MENU = r"""
set default="0"
if [ -s $prefix/grubenv ]; then load_env; fi
if [ "${next_entry}" ] ; then set default="${next_entry}"; set next_entry=; save_env next_entry
else set default="${saved_entry}"; fi
if [ x"${feature_menuentry_id}" = xy ]; then menuentry_id_option="--id"; else menuentry_id_option=""; fi
function savedefault { if [ -z "${boot_once}" ]; then saved_entry="${chosen}"; save_env saved_entry; fi; }
while [ ! -f /x -a -n "$a" -o ! a = b ]; do echo; done
for i in 1 2; do echo $i; done
set superusers="root"; password_pbkdf2 root x
menuentry 'One' --class gnu --unrestricted $menuentry_id_option 'one-id' {
	search --no-floppy --fs-uuid --set=root 1234-abcd
	linux /boot/vmlinuz-6.1 root=UUID=1 ro "a=b c" 'quiet' splash\ x -- --help
	initrd /boot/initrd.img-6.1 /boot/ucode.img
}
submenu "Adv > opts" --id=adv {
	menuentry "Two (recovery mode)" --id two { search.fs_uuid 9 root; linux16 /vmlinuz-2 single; }
	menuentry Three --hotkey=x --users me { linuxefi /boot/vmlinuz-3 $? $unset ${a}b $ "$x\"" ; }
}
. $prefix/x.cfg
source $prefix/custom.cfg
blscfg
"""


def menu():
    """Whole menus, then small ones for what they lack."""
    def env(lines):
        body = SIGNATURE + lines
        return body + b"#" * (1024 - len(body))

    debian = (TESTS / "unit/grub/debian.cfg").read_bytes()
    yield debian
    for default in ("0", "1>2", "one-id", "Adv >> opts>two", "adv>Three", "7", "saved", "-1", "2 x"):
        yield parts(MENU.replace("blscfg", "").replace('default="0"', f'default="{default}"')
                    .replace("set next_entry=", ""), "mitigations=off",
                    env(b"saved_entry=adv>two\nboot_counter=1\n"), "set superusers=x", "GRUB2_PASSWORD")
    yield parts(MENU, "", env(b"saved_entry=one-id\nenv_block=(hd0)+1\n"))
    yield fakemachine.grub_cfg(["6.1.0-57-amd64", "6.12.9-amd64"]).encode()
    for text in ("menuentry", "menuentry a {", "}", "if x; then", "fi", "done", "echo 'open",
                 'echo "open', "set a=$a$a\n" * 40, "set a=xyxyxyxy\n" + "set a=$a$a\n" * 20,
                 "if [ " + "! " * 50 + "a ]; then set b=1; fi", "submenu a {\n" * 40,
                 "test a = b; [ a ]; [ ]; [ -z a ]; [ -d / ]; [ a != b ]; [ a -gt b ]",
                 "if [ a == a ]; then set default=1; elif [ b ]; then x; else y; fi",
                 "menuentry $x { linux /a; }", "load_env -f /x y", "load_env -f /grubenv y",
                 "set a='x  y'\nmenuentry $a b { linux /v $a \"$a\"; }", "a\\\nb;;c # d\n",
                 "menuentry a { linux /v-rescue-1 1 rd.break; }", "menuentry --id x { }",
                 "menuentry a { linux /v \"a\\b 'c\" dyndbg=\"file x +p\" crashkernel=1 \"quiet\"; }",
                 "set default=0x0\nmenuentry a { }", "set default=recount-e01", "''" * 3 + " ''"):
        yield parts(text, "x=1")


def program(interpreter=False):
    """A small static ELF program."""
    kind = 3 if interpreter else 1
    ehdr = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400078, 64, 0, 0,
                                                     64, 56, 1, 0, 0, 0)
    phdr = struct.pack("<IIQQQQQQ", kind, 5, 0, 0x400000, 0x400000, 120, 120, 4096)
    return ehdr + phdr + b"\x90" * 8


def cpio():
    """Programs, and archives of one."""
    good = program()
    yield from (good, program(True), good[:60], good[:100], b"", b"#!/bin/sh\n", good[:4] + b"\1" +
                good[5:], good[:16] + b"\1" + good[17:], good[:96] + b"\xff" * 8 + good[104:])
    whole = newc("recount-init", good) + newc("TRAILER!!!")
    whole += b"\0" * (-len(whole) % 512)
    # The writer's fields: inode 1, the others 0.
    yield b"C" + whole
    for at in range(0, 240, 3):
        yield b"C" + whole[:at] + b"9" + whole[at + 1:]
    yield b"C" + whole + b"x" * 512
    yield b"C" + whole[:512]
    yield b"C" + newc("other") + newc("TRAILER!!!")
    yield b"Cshort"


def modindex():
    """The text files of a modules folder."""
    dep = ("kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko\n"
           "kernel/lib/crc16.ko:\nkernel/fs/jbd2/jbd2.ko: kernel/lib/crc16.ko\n/abs/dm-mod.ko:\n"
           "../../evil.ko:\nkernel/../x.ko:\nno colon\n# comment: x\n.hidden:\n")
    alias = ("alias fs-ext4 ext4\nalias pci:v*d*sv*sd*bc01sc08i* dm_mod\nalias cpu:[a-b]-x crc16\n"
             "bad line\nalias short\nalias fs-none none\nalias x .y\n")
    soft = ("softdep ext4 pre: crc16 none post: dm_mod\nsoftdep dm_mod post: ext4\nsoftdep .x pre: a\n"
            "softdep crc16 pre: ext4 .bad\nother\n")
    builtin = "kernel/fs/proc.ko\nkernel/block/x-y.ko\n"
    for wanted in ("fs-ext4", "ext4", "dm-mod", "pci:v1d2sv3sd4bc01sc08i02", "cpu:a-x", "proc", "x_y",
                   "nothing", "fs-none", "x" * 5000):
        yield parts(wanted, dep, alias, soft, builtin, b"\xb0\x07\xf4\x57", b"\xb0\x07\xf4\x57")
    yield parts("a", dep)
    yield parts("a", "")
    yield parts("a", ".:\n.:\n" * 20 + "a:\n", "", "softdep . pre: a\n" * 20)
    chain = "".join(f"m{i}.ko: m{i + 1}.ko\n" for i in range(80)) + "m80.ko:\n"
    yield parts("m0", chain)
    yield parts("m40", chain)


def modalias():
    """PCI devices and others."""
    net = "pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00\n"
    disk = "pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02\n"
    yield from (parts(net, disk, "cpu:type:x86\n"), parts(disk, net, disk), parts(disk, "virtio:d2v1",
                "acpi:X:\n"), parts("", "", ""), parts("a\nb", "a", "a" * 5000),
                parts(disk.replace("bc01", "bc0D"), disk, "usb:v1"), parts("pci:", "x", "y"))


def ext4():
    """A superblock."""
    block = bytearray(1024)
    block[0x38:0x3b] = b"\x53\xef\x01"
    yield bytes(block)
    block[0x60] = 4
    block[0x3a] = 2
    yield bytes(block)
    yield bytes(block[:1000])
    yield bytes(2048)


def mountinfo():
    """Mounts."""
    good = ("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
            "23 22 0:5 / /proc rw - proc proc rw\n30 22 8:2 /@ /mnt/a\\040b\\011 rw master:1 - btrfs "
            "/dev/sda\\134 rw\n31 22 8:1 / / rw - ext4 /dev/sda1\n")
    yield good.encode()
    yield from (b"short\n", b"1 2 3:4 / / - x\n", b"1 2 x / / rw - a b c\n", b"1 2 3:4 / \\9 rw - a \n",
                b" - \n", b"1 - 2 3:4 5 6 7 8\n", b"1 2 3:4 / /a\\777 rw - ext4 \n", good.encode()[:-1])


def pstore():
    """Records of efi-pstore and what systemd makes of them."""
    one = "Panic#1 Part1\n<0>[    5.1] Kernel panic - not syncing: x\n"
    two = "Panic#1 Part2\n<4>[    5.0] before\nOops: 0002"
    yield from (parts(one, two), parts(two, one), parts(one, two, one + two, one), parts("no words", ""),
                parts("Oops#2 Part1\nx", one), parts("", "", one), parts("Kernel panic", "Panic#x"),
                parts(one, "", "", two), parts("Panic#4294967296 Part1\n", "Oops: "))
    for token in ("2026-11-30-a-0001-1-0badcafe", "2026-11-29-a-0001-1-0badcafe", ""):
        said = f"<5>[    0.0] Kernel command line: quiet recount.token={token} ro\n"
        yield from (parts(one + said, two), parts(one, two + said), parts("", "", one + said))


def options():
    """Command lines, a word a line."""
    lines = ["--help", "-h", "--version", "--root\n/\nstart", "--root\n/none\nstart", "--bogus", "--roo",
             "start\n--rounds\n6\n--jobs\n4\n--seed\n7\n--yes\n--no-reboot\n--format\njson",
             "start\n--rounds\n0", "start\n--seed\n-1", "start\n--format\nxml", "start\n--format\ntext",
             "start\n--loads\nnone,mem,io", "start\n--loads\nnone,none", "start\n--loads\nfoo",
             "start\n--append\n6.1=mitigations=off\n--kernels\n6.*\n--baseline\n6.1\n--swap\n/dev/x",
             "start\n--append\n=x", "start\n--append\nx", "start\n--kernels\n\nx", "start\nextra",
             "prepare\n--tree\n/src\n--target\nvmlinux\n--product\nx\n--config\ndefconfig\na\nb\nc",
             "prepare\n--notice\n30\n--force\n--store\n/dev/a\n--arena\n/dev/b", "stop\n--rounds\n3",
             "start\n--rounds", "start\n--rouns\n3", "start\n--help", "start\n-V", "start\n--zzzzzzzzz",
             "start\n" + "--append\na=b\n" * 31, "", "--root"]
    for line in lines:
        for pad in range(6):  # the size chooses the verb
            yield line.encode() + b"\n" * pad


def target():
    """Words behind make."""
    for words in ("vmlinux", "bzImage", "init/", "-C tools/lib/api", "-C", "-C a b", "all x", "", "  ",
                  "a\tb", "modules", "x " * 70, "a\x1b", "-Cx", "-C /etc"):
        for product in ("", "vmlinux", "a/", "/etc", "../x", "a/../b", "x" * 1100, "a\nb"):
            yield parts(words, product)


def version():
    """Three each."""
    for three in (("6.1.0-57-amd64", "6.12.117+deb12-amd64", "7.3.0-rc2-mine"), ("6.1~rc1", "6.1", "6.1-1"),
                  ("6.8.0-rc1", "6.8.0", "6.8.0-a"), ("01", "1", "001"), ("", "a", "~"), ("x-686-pae", "x",
                  "x_x86_64"), ("5.14.0-362.el9_3.x86_64", "6.5.6-300.fc39.x86_64", "6.6.20+rpt-rpi-v8"),
                  ("y" * 200, "-rc1", "-rc"), ("\u20ac", "\xff", "z")):
        yield parts(*three)


JSON_WORDS = ['"', "{", "}", "[", "]", ":", ",", "null", "true", "1e9", "-1", "\\u001b", "../"]
WORDS = {
    "plan": JSON_WORDS, "record": JSON_WORDS, "prepared": JSON_WORDS,
    "envblock": ["# GRUB Environment Block\n", "next_entry=", "\\\n", "#\n"],
    "cmdline": [" -- ", '"', "=", "recount.token"],
    "menu": ["menuentry ", "submenu ", "{", "}", "if [ ", " ]; then\n", "elif ", "else\n", "fi\n",
             "while ", "do\n", "done\n", "set ", "default=", "$", "${", "linux ", "initrd ",
             "search --fs-uuid ", "--id ", "load_env\n", "! ", " -a ", " -o ", "-z ", "-n ", "function "],
    "modindex": ["alias ", "softdep ", "pre: ", "post: ", ".ko: ", "kernel/", "../"],
    "mountinfo": [" - ", "\\040", "8:1"],
    "pstore": ["Panic#1 Part1\n", "Oops: ", "Kernel panic", "recount.token="],
    "options": ["--", "start\n", "prepare\n", "=", "rounds", "append", "loads"],
    "initrd": ["070701", "TRAILER!!!", "#BOOTCONFIG\n"],
    "version": ["-rc", "~", ".fc", "+deb", "-amd64"],
}


def quoted(word):
    """As libFuzzer's dictionaries have it."""
    return "".join(c if c.isalnum() or c in " .:#=-_/!" else f"\\x{ord(c):02x}" for c in word)


def make(folder):
    """Writes all of them below @folder, anew."""
    makers = [plan, record, prepared, envblock, cmdline, kernel_image, initrd, menu, cpio, modindex,
              modalias, ext4, mountinfo, pstore, options, target, version]
    for maker in makers:
        own = folder / maker.__name__
        own.mkdir(parents=True, exist_ok=True)
        for old in own.iterdir():
            old.unlink()
        for number, seed in enumerate(maker()):
            (own / f"{number:04}").write_bytes(seed)
        if maker.__name__ in WORDS:
            text = "".join(f'"{quoted(word)}"\n' for word in WORDS[maker.__name__])
            (folder / f"{maker.__name__}.dict").write_text(text, encoding="ascii")
