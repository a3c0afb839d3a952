# SPDX-License-Identifier: GPL-3.0-or-later
"""The bench itself: a disk that boots, a shell, GRUB's one-shot, power cuts, reading back."""
import re

import image

BOOT_S = 180

# A one-shot by hand, as GRUB's manual has it, in the file that 41_custom sources.
ONE_SHOT = """\
search --no-floppy --fs-uuid --set=root {uuid}
set bench_default="$default"
load_env
if [ "${{bench_once}}" ]; then
	set default="${{bench_once}}"
	set bench_once=
	save_env bench_once
fi
menuentry 'bench once' --id bench-once {{
	linux /boot/vmlinuz-{release} root=UUID={uuid} ro console=ttyS0
	initrd /boot/initrd.img-{release}
}}
"""


def test_default_then_one_shot_then_default(base_disk, new_disk, machine, tmp_path):
    disk = new_disk(base_disk)
    guest = machine(disk)
    newest, older = base_disk.kernels[-1], base_disk.kernels[0]
    assert newest.startswith("6.12") and older.startswith("5.10")

    guest.start()
    assert guest.wait_shell(BOOT_S) == newest
    assert guest.run("exit 3", check=False).rc == 3
    done = guest.run("cat; echo problem >&2", stdin=b"text \xc3\xa4")
    assert (done.out, done.err) == ("text ä", "problem\n")

    text = tmp_path / "custom.cfg"
    text.write_text(ONE_SHOT.format(uuid=disk.uuids["root"], release=older))
    guest.put(text, "/boot/grub/custom.cfg")
    guest.get("/boot/grub/custom.cfg", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == text.read_bytes()
    guest.run("grub-editenv /boot/grub/grubenv set bench_once=bench-once")
    guest.run("mkdir /mnt/store && mount LABEL=RECOUNT /mnt/store && "
              "echo kept >/mnt/store/before && umount /mnt/store")
    guest.send("systemctl reboot")
    guest.wait(r"GNU GRUB", BOOT_S)
    guest.wait(rf"Linux version {re.escape(older)} ", BOOT_S)
    assert guest.wait_shell(BOOT_S) == older

    # A power cut: what was flushed stays, and GRUB goes back to its default.
    guest.run("mount LABEL=RECOUNT /mnt/store && echo flushed >/mnt/store/after && "
              "sync /mnt/store/after")
    guest.kill()
    stored = image.extract_store(disk, tmp_path / "store")
    assert (stored / "before").read_text() == "kept\n"
    assert (stored / "after").read_text() == "flushed\n"

    guest.start()
    assert guest.wait_shell(BOOT_S) == newest
    guest.poweroff()
