# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a management controller (QEMU's ipmi-bmc-sim), whose watchdog resets a kernel that
hangs before anything of ours runs. Its clock is QEMU's: the limit is made short in the plan, which is
where recount reads it from."""
import json
import re
import time

import campaign
import pytest

LIMIT_S = 300
# The machine must keep its BMC through a reboot, so one QEMU goes on.
BMC = {"keep_ram": True, "extra": ["-device", "ipmi-bmc-sim,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0"]}

# Of the disk's kernels the generic one alone has drivers for it. It becomes the machine's own: its
# initrd gets its modprobe back.
MAKE_DEFAULT = r"""set -e
rm /etc/initramfs-tools/hooks/zz-bench-strip
update-initramfs -u -k {release}
cfg=/boot/grub/grub.cfg
menu=$(grep -o "gnulinux-advanced-[^']*" $cfg | head -n 1)
entry=$(grep -o "gnulinux-{release}-advanced-[^']*" $cfg | head -n 1)
sed -i "s/set default=\"0\"/set default=\"$menu>$entry\"/" $cfg
grep "set default=\"$menu>$entry\"" $cfg
sync"""


def seconds_of(store, boot):
    """{attempt: for how long the BMC's watchdog was to be armed with it} of a boot."""
    return {int(name.split("-")[1][:-5]): json.loads(text).get("bmc_s")
            for name, text in campaign.files(store, boot).items() if name.startswith("attempt-")}


def who_says(guest, text):
    """Whose lines on the console have TEXT, in their order."""
    return ["recount-init" if before.endswith("recount: ") else
            "referee" if re.search(r"recount\[\d+\]: $", before) else "start"
            for before in re.findall(f"^(.*){re.escape(text)}", guest.console(), re.M)]


@pytest.mark.long
def test_case_66_bmc_ends_a_hang_before_pid_1(modules_disk, new_disk, machine, tmp_path):
    """Case 66: the BMC resets a kernel that waits for a root without end, and nobody comes. A kernel
    that cannot stop its watchdog goes home and is tried again without it. Good boots are left alone,
    and so is the machine at home."""
    guest = machine(new_disk(modules_disk), bus="virtio", **BMC)
    guest.start()
    guest.wait_shell(300)
    campaign.slim(guest)
    campaign.prepare(guest, *campaign.TREE_TINY)
    kernels = guest.run("recount kernels").out
    label, release = re.search(r"^ +(\S+) +(\S+-\d+-amd64) ", kernels, re.M).groups()
    # The cloud kernel that runs has no driver, so there is no BMC to speak of.
    assert "BMC" not in kernels + guest.run("recount check", 120).out
    guest.run(MAKE_DEFAULT.format(release=release), 600)
    guest.send("systemctl reboot")
    assert guest.wait_shell(600) == release

    guest.run("modprobe -a ipmi_si ipmi_devintf && ls /dev/ipmi0")
    check = guest.run("recount check", 120).out
    assert re.search(r"^warn +bmc +6\.12\S+ could not stop the BMC's watchdog \(it has no ipmi_si\)", check, re.M)
    assert re.search(r"^\w+ +watchdog .* one that hangs before recount starts is reset by the BMC's", check, re.M)
    assert re.search(r"not reset by the BMC's watchdog when it hangs early:\n +5\.10", guest.run("recount kernels").out)

    # Armed by each who reboots into an entry, stopped in each boot.
    campaign.start(guest, f"--kernels '{label}' --loads none --rounds 2")
    campaign.follow(guest, 3600, until=r"campaign \S+-a is over")
    assert campaign.wait_idle_shell(guest, 600) == release
    assert who_says(guest, "the BMC's watchdog is armed, 1200 s") == ["start", "referee", "recount-init"]
    assert who_says(guest, "the BMC's watchdog is stopped") == ["recount-init"] * 3

    campaign.start_held(guest, label, f"{label}=rdinit=/nope root=/dev/nope rootwait",
                        f"{label}=module_blacklist=ipmi_si", retries=1, bmc_s=LIMIT_S)
    guest.send("systemctl reboot")
    hung_s = []
    campaign.react(guest, 3600, {
        r"Waiting for root device /dev/nope": lambda _: hung_s.append(time.monotonic()),
    }, until=r"campaign \S+-b is over")
    over_s = time.monotonic()
    assert campaign.wait_idle_shell(guest, 600) == release
    armed_s = [line.at_s for line in guest.lines if "the BMC's watchdog is armed, 300 s" in line.text]
    # Had nobody stopped it, it would fire by then.
    time.sleep(max(0, armed_s[-1] + LIMIT_S + 15 - time.monotonic()))
    assert guest.boots_s[-1] < over_s
    store = campaign.take_store(guest, tmp_path / "store")

    hang, deaf = (campaign.boot_of(store, word) for word in ("rootwait", "module_blacklist=ipmi_si"))
    [sane] = set(range(1, 4)) - {hang, deaf}
    assert campaign.failures(store) == {(hang, 1): "not-reached", (deaf, 1): "bmc-not-stopped"}
    assert campaign.statuses(store) == {(deaf, 1, 2): "ok", (sane, 1, 1): "ok"}
    # Never where the reboot is left to a person, as that into the canary was.
    assert seconds_of(store, 0) == {1: None}
    assert seconds_of(store, hang) == {1: LIMIT_S}
    assert seconds_of(store, deaf) == {1: LIMIT_S, 2: None}
    assert seconds_of(store, sane) == {1: LIMIT_S}

    [hung_s] = hung_s
    back_s = min(s for s in guest.boots_s if s > hung_s)
    assert LIMIT_S - 10 < back_s - max(s for s in armed_s if s < hung_s) < LIMIT_S + 30
    console = guest.console()
    assert console.count("the BMC's watchdog has reset this machine") == 1
    assert "cannot stop the BMC's watchdog, armed for 300 s" in campaign.files(store, deaf)["dmesg-1.txt"]
    # Stopped by the referee, where the kernel before could not; and from that kernel the machine came
    # home before one for which it is armed.
    assert re.search(r"attempt 1: bmc-not-stopped[\s\S]*the BMC's watchdog is stopped, \d+ s before its end",
                     console)
    assert "the BMC's watchdog is stopped" in campaign.files(store, sane)["dmesg-1.txt"]
