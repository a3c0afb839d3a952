# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine as a folder whose store is a real ext4 on a loop device, for the verbs that mount it.

That takes root and loop devices; without them the tests are skipped, and the QEMU tests are what
remains.
"""
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import struct
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RECOUNT_BUILD", TOP / "build"))
RECOUNT = BUILD / "recount"
UUIDS = {name: f"0000000{i}-1111-2222-3333-444444444444"
         for i, name in enumerate(("root", "store", "arena"), 1)}
PLAIN_EXT4 = "none,has_journal,extent,dir_index,filetype,sparse_super,large_file,64bit"
KERNELS = ("6.1.0-9-amd64", "6.12.3-amd64")
HOME = KERNELS[0]
TOOLS = tuple(f"usr/bin/{name}" for name in ("sh", "make", "gcc", "as", "ld"))
BLOCK = "### BEGIN recount"
UNIT = "etc/systemd/system/recount-referee.service"
LINK = "etc/systemd/system/multi-user.target.wants/recount-referee.service"


def loop_device(image):
    if os.geteuid() != 0:
        pytest.skip("mounting the store takes root")
    done = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no loop device: " + done.stderr.strip())
    return done.stdout.strip()


def kernel_image(version):
    head = bytearray(0x1000)
    struct.pack_into("<H", head, 0x1fe, 0xaa55)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x020f)
    struct.pack_into("<H", head, 0x20e, 0x0600)
    struct.pack_into("<H", head, 0x236, 1)
    text = f"{version} (builder@host) #1\0".encode()
    head[0x800:0x800 + len(text)] = text
    return bytes(head)


def initrd():
    name = b"TRAILER!!!\0"
    head = b"070701" + b"".join(b"%08X" % n for n in (0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, len(name), 0))
    return gzip.compress((head + name).ljust(512, b"\0"))


def menu_entry(version):
    return f"""menuentry 'Debian {version}' $menuentry_id_option 'gnulinux-{version}' {{
	search --no-floppy --fs-uuid --set=root {UUIDS['root']}
	linux	/boot/vmlinuz-{version} root=UUID={UUIDS['root']} ro quiet console=ttyS0
	initrd	/boot/initrd.img-{version}
}}
"""


GRUB_CFG = ("set default=\"0\"\n" + "".join(map(menu_entry, KERNELS)) + """
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
""")


def make_ext4(image, label, uuid, mib, folder=None):
    image.write_bytes(b"")
    os.truncate(image, mib << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", PLAIN_EXT4, "-L", label, "-U", uuid]
                   + (["-d", str(folder)] if folder else []) + [str(image)], check=True)


class Machine:
    """A folder that looks like a machine with two kernels, a prepared store and an arena."""

    def __init__(self, folder, tools=TOOLS):
        self.tmp = folder
        self.root = folder / "root"
        self.image = folder / "store.img"
        self.loop = None
        for path in ("dev", "proc/self", "proc/sys/kernel", "sys/class/block", "sys/fs/pstore",
                     "etc/systemd/system", "boot/grub", "usr/lib/systemd", "usr/bin"):
            (self.root / path).mkdir(parents=True)
        self.write("proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{HOME} ro\n")
        self.write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n")
        self.write("proc/sys/kernel/osrelease", HOME + "\n")
        self.write("proc/cpuinfo", "processor : 0\nprocessor : 1\n")
        self.write("proc/meminfo", "MemTotal: 1024000 kB\n")
        self.write("boot/grub/grub.cfg", GRUB_CFG)
        self.write("usr/lib/systemd/systemd", "")
        for version in KERNELS:
            self.write(f"boot/vmlinuz-{version}", kernel_image(version))
            self.write(f"boot/initrd.img-{version}", initrd())
        self.tools = {}
        for tool in {*TOOLS, *tools}:
            self.write(tool, tool)
        for tool in tools:
            self.tools["/" + tool] = hashlib.sha256(tool.encode()).hexdigest()
        self.disk("sda1", 8, 1, 64)
        make_ext4(self.root / "dev/sda1", "", UUIDS["root"], 64)
        self.disk("sdb2", 8, 18, 256)
        make_ext4(self.root / "dev/sdb2", "RECOUNT-ARENA", UUIDS["arena"], 256)
        self.make_store(folder)

    def make_store(self, folder):
        prepared = folder / "store" / "prepared"
        prepared.mkdir(parents=True)
        (prepared / "manifest.json").write_text(json.dumps({
            "schema": 1, "jobs": 2, "build_uid": 65534, "arena_uuid": UUIDS["arena"],
            "workload": {"name": "kernel", "dir": "linux", "clean": ["make", "clean"],
                         "build": ["make"], "product": ".", "product_sha256": "1" * 64,
                         "tree_sha256": "2" * 64, "build_ns": 13 * 10**9},
            "toolchain": self.tools}))
        make_ext4(self.image, "RECOUNT", UUIDS["store"], 128, folder / "store")
        self.loop = loop_device(self.image)
        (self.root / "dev/sdb1").symlink_to(self.loop)
        self.disk("sdb1", 8, 17, 128)

    def write(self, path, content):
        data = content if isinstance(content, bytes) else content.encode()
        (self.root / path).write_bytes(data)

    def disk(self, name, major, minor, mib):
        folder = self.root / "sys/class/block" / name
        (folder / "holders").mkdir(parents=True)
        (folder / "dev").write_text(f"{major}:{minor}\n")
        (folder / "size").write_text(f"{mib << 11}\n")
        (folder / "partition").write_text("1\n")
        (folder / "ro").write_text("0\n")

    def lose_store(self):
        for path in sorted((self.root / "sys/class/block/sdb1").glob("*")):
            path.rmdir() if path.is_dir() else path.unlink()
        (self.root / "sys/class/block/sdb1").rmdir()

    def recount(self, *words, code=0):
        done = subprocess.run([RECOUNT, "--root", self.root, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def start(self, swap=None, **how):
        loads = ("--loads", "none,mem", "--swap", swap) if swap else ("--loads", "none")
        return self.recount("start", "--yes", "--no-reboot", "--rounds", "2", *loads, **how)

    def outside(self):
        """Name, mode, owner and content of everything in /boot and /etc."""
        out = {}
        for top in ("boot", "etc"):
            for path in sorted((self.root / top).rglob("*")):
                st = path.lstat()
                content = os.readlink(path) if path.is_symlink() else \
                    path.read_bytes() if path.is_file() else None
                out[str(path.relative_to(self.root))] = (st.st_mode, st.st_uid, st.st_gid, content)
        return out

    # The store is read and written as it lies on the disk: what was not synced is not there.
    def debugfs(self, *commands):
        done = subprocess.run(["debugfs", "-w", "-f", "-", self.image], input="\n".join(commands),
                              capture_output=True, text=True, check=True)
        return done.stdout

    def exists(self, path):
        done = subprocess.run(["debugfs", "-R", f"stat {path}", self.image], capture_output=True,
                              text=True, check=True)
        return "Inode:" in done.stdout

    def get(self, path):
        assert self.exists(path), path
        return subprocess.run(["debugfs", "-R", f"cat {path}", self.image], capture_output=True,
                              check=True).stdout

    def flush(self):
        """What debugfs wrote into the image, the loop device does not know."""
        subprocess.run(["blockdev", "--flushbufs", self.loop], check=True)

    def put(self, tmp, path, content):
        source = tmp / "put"
        source.write_bytes(content)
        self.flush()
        self.debugfs(f"rm {path}", f"write {source} {path}")
        self.flush()

    def keys(self):
        block = self.get("grub/grubenv")
        assert len(block) == 1024
        return dict(line.split("=", 1) for line in block.decode().splitlines() if "=" in line)

    def grub_takes(self, tmp):
        """What GRUB's guard does when it boots the armed entry."""
        keys = self.keys()
        text = (f"# GRUB Environment Block\nnext_entry=\nrecount_token={keys['recount_token']}\n"
                f"recount_taken={keys['recount_token']}\n")
        self.put(tmp, "grub/grubenv", text.encode().ljust(1024, b"#"))

    # What recount-init leaves of a boot.
    def put_record(self, boot, name, record):
        self.put(self.tmp, f"campaigns/{campaign_id()}/boots/{boot:04}/{name}",
                 json.dumps(record).encode())

    def put_reached(self, boot, number):
        self.put_record(boot, f"reached-{number}.json", {
            "token": attempt(self, boot, number)["token"], "uname": "x", "cmdline": "ro",
            "reached_monotonic_ns": 1})

    def put_trial(self, boot, number, status, void=()):
        planned = self.plan()["boots"][boot]
        trial = planned["trials"][0]
        self.put_record(boot, f"trial-01-{number}.json", {
            "schema": 1, "boot": boot, "round": planned["round"], "entry": planned["entry"],
            "attempt": number, "trial": 1, "workload": trial["workload"], "load": trial["load"],
            "jobs": trial["jobs"], "status": status, "void": list(void), "wall_ns": 13 * 10**9,
            "arena_fstype": "ext4"})

    def put_done(self, boot, number):
        self.put_record(boot, f"done-{number}.json", {
            "token": attempt(self, boot, number)["token"], "done_monotonic_ns": 2})

    def put_failed(self, boot, number, reason):
        self.put_record(boot, f"failed-{number}.json", {"reason": reason})

    def plan(self):
        return json.loads(self.get(f"campaigns/{campaign_id()}/plan.json"))

    def detach(self):
        if self.loop:
            subprocess.run(["losetup", "-d", self.loop], check=True)

    def active(self):
        return self.get("active").decode().strip() if self.exists("active") else None


def campaign_id():
    return datetime.date.today().strftime("%Y-%m-%d") + "-a"


def attempt(m, boot, number):
    return json.loads(m.get(f"campaigns/{campaign_id()}/boots/{boot:04}/attempt-{number}.json"))
