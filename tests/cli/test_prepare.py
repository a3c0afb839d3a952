# SPDX-License-Identifier: GPL-3.0-or-later
"""`recount prepare` on real partitions: two loop devices, which a private view of /dev and /sys
shows as plain ones. Takes root."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from fakemachine import RECOUNT, TOP, image, run

DONE, FAILED, USAGE, REFUSED = range(4)
TINY = TOP / "tests/vm/guest/tiny"
NOBODY = 65534

# In a mount namespace of its own: nothing of this is seen outside, or left.
VIEW = r"""
set -e
mount -t tmpfs none /run
mount -t tmpfs none /sys/class/block
mount -t tmpfs -o mode=0755 none /dev
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/random c 1 8; mknod -m 666 /dev/urandom c 1 9
i=0
for number in $NUMBERS; do
    i=$((i + 1)); d=/sys/class/block/part$i
    mkdir -p $d/holders
    echo $number >$d/dev; echo $SECTORS >$d/size; echo 0 >$d/ro; echo $i >$d/partition
    echo 2048 >$d/start
    mknod /dev/part$i b $(echo $number | tr : ' ')
done
touch /run/of-the-machine
exec "$@"
"""


@pytest.fixture
def partitions(tmp_path):
    """Store and arena on loop devices."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount the arena")
    if subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode:
        pytest.skip("needs two free loop devices")
    images = [image(tmp_path / name, 64) for name in ("store", "arena")]
    run(RECOUNT, "format", "--store", images[0], "--arena", images[1])
    loops = [run("losetup", "--find", "--show", path).stdout.strip() for path in images]
    yield loops
    for loop in loops:
        subprocess.run(["losetup", "--detach", loop], check=False)


@pytest.fixture
def tree(tmp_path):
    """A tree of a few C files that builds in a second."""
    folder = tmp_path / "tiny-1.0"
    shutil.copytree(TINY, folder)
    return folder


def prepare(partitions, *argv, cwd=None, before=(), **more):
    """The command in that view, started by the words in @before."""
    numbers = [os.stat(loop).st_rdev for loop in partitions]
    environment = dict(os.environ, SECTORS=str((64 << 20) // 512),
                       NUMBERS=" ".join(f"{os.major(n)}:{os.minor(n)}" for n in numbers))
    return subprocess.run([*before, "unshare", "--mount", "--propagation", "private", "sh", "-c", VIEW, "sh",
                           str(RECOUNT), "prepare", *map(str, argv)], env=environment, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=120,
                          cwd=cwd, **more)


def on(partition, command):
    """What debugfs says of a partition."""
    return run("debugfs", "-R", command, partition).stdout


def manifest(partitions):
    """prepared/manifest.json on the store, or None."""
    text = on(partitions[0], "cat prepared/manifest.json")
    return json.loads(text) if text else None


def refused(result, partitions, *words):
    """It is refused in these words, and nothing is prepared."""
    assert result.returncode == REFUSED, result.stdout + result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    assert manifest(partitions) is None


def test_prepares_a_folder(partitions, tree):
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", "tiny.a",
                     "--jobs", "2")
    assert result.returncode == DONE, result.stderr
    found = manifest(partitions)
    work = found["workload"]
    assert (work["dir"], work["clean"], work["build"]) == (
        "tiny-1.0", ["make", "clean"], ["make", "all"])
    assert found["jobs"] == 2 and found["build_uid"] == NOBODY
    assert 0 < work["build_ns"] < 60e9
    assert found["arena_uuid"] == run("blkid", "-p", "-s", "UUID", "-o", "value",
                                      partitions[1]).stdout.strip()
    tools = {pathlib.Path(path).name.split("-")[-1] for path in found["toolchain"]}
    assert {"make", "cc1", "collect2"} <= tools
    # It stays built, so that its space is taken; by the build user, whose tree it is.
    assert re.search(rf"User:\s+{NOBODY}\b", on(partitions[1], "stat tiny-1.0/tiny.a"))
    # The product's hash is that of the file in the arena.
    built = tree.parent / "built"
    on(partitions[1], f"dump tiny-1.0/tiny.a {built}")
    assert run("sha256sum", built).stdout.split()[0] == work["product_sha256"]


def test_a_kernel_tree_is_cleaned_in_parallel(partitions, tree):
    for name in ("Kbuild", "Kconfig"):
        (tree / name).touch()
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", "tiny.a",
                     "--jobs", "2")
    assert result.returncode == DONE, result.stderr
    assert manifest(partitions)["workload"]["clean"] == ["make", "-j2", "clean"]


def test_prepares_an_archive_and_then_uses_it_in_place(partitions, tree):
    archive = tree.parent / "source.tar.gz"
    run("tar", "-C", tree.parent, "-czf", archive, "tiny-1.0")
    options = ("--target", "all")
    result = prepare(partitions, "--tree", archive, *options)
    assert result.returncode == DONE, result.stderr
    first = manifest(partitions)
    assert first["workload"]["dir"] == "source" and first["workload"]["product"] == "."
    result = prepare(partitions, "--tree", "source", *options)
    assert result.returncode == DONE, result.stderr
    assert "which is in the arena" in result.stderr
    second = manifest(partitions)
    assert second["workload"]["tree_sha256"] == first["workload"]["tree_sha256"]
    assert second["workload"]["product_sha256"] == first["workload"]["product_sha256"]


def test_part_of_a_tree_needs_no_config(partitions, tree):
    outer = tree.parent / "outer"
    outer.mkdir()
    tree.rename(outer / "part")
    (outer / "part/.config").unlink()
    (outer / "part/Makefile").write_text(TINY.joinpath("Makefile").read_text()
                                         .replace(" .config", ""))
    result = prepare(partitions, "--tree", outer, "--target", "-C part")
    assert result.returncode == DONE, result.stderr
    work = manifest(partitions)["workload"]
    assert work["clean"] == ["make", "-C", "part", "clean"]
    assert work["build"] == ["make", "-C", "part"] and work["product"] == "part"


def test_configures_with_a_target_or_a_file(partitions, tree):
    (tree / ".config").unlink()
    with open(tree / "Makefile", "a", encoding="ascii") as f:
        f.write("\ntinyconfig:\n\techo made >.config\nolddefconfig:\n\techo completed >>.config\n")
    options = ("--target", "all", "--product", "tiny.a")
    result = prepare(partitions, "--tree", tree, *options, "--config", "tinyconfig")
    assert result.returncode == DONE, result.stderr
    assert on(partitions[1], "cat tiny-1.0/.config") == "made\n"
    mine = tree.parent / "mine.config"
    mine.write_text("mine\n")
    result = prepare(partitions, "--tree", "tiny-1.0", *options, "--config", mine)
    assert result.returncode == DONE, result.stderr
    assert on(partitions[1], "cat tiny-1.0/.config") == "mine\ncompleted\n"


def test_config_through_a_link_stays_in_the_tree(partitions, tree):
    (tree / ".config").unlink()
    victim = tree.parent / "victim"
    victim.write_text("untouched\n")
    (tree / ".config").symlink_to(victim)
    with open(tree / "Makefile", "a", encoding="ascii") as f:
        f.write("\nolddefconfig:\n\techo completed >>.config\n")
    mine = tree.parent / "mine.config"
    mine.write_text("mine\n")
    result = prepare(partitions, "--tree", tree, "--target", "all", "--config", mine)
    assert result.returncode == DONE, result.stderr
    assert on(partitions[1], "cat tiny-1.0/.config") == "mine\ncompleted\n"
    assert victim.read_text() == "untouched\n" and victim.stat().st_uid == os.geteuid()


def test_config_through_a_link_to_a_folder_fills_nothing(partitions, tree):
    (tree / ".config").unlink()
    victim = tree.parent / "victim"
    victim.mkdir()
    (tree / ".config").symlink_to(victim)
    with open(tree / "Makefile", "a", encoding="ascii") as f:
        f.write("\nolddefconfig:\n\techo completed >>.config\n")
    mine = tree.parent / "mine.config"
    mine.write_text("mine\n")
    result = prepare(partitions, "--tree", tree, "--target", "all", "--config", mine)
    assert result.returncode == DONE, result.stderr
    assert on(partitions[1], "cat tiny-1.0/.config") == "mine\ncompleted\n"
    assert not list(victim.iterdir())


# What a command of the tree can see of itself.
CONFESS = r"""
confess = { id; grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status; \
	sed 's/^ */net /' /proc/net/dev; ls -A /run | sed 's/^/run /'; ls -A /tmp | sed 's/^/tmp /'; \
	for fd in /proc/self/fd/*; do echo "fd $$fd $$(readlink $$fd)"; done; \
	sed 's/^/key /' /proc/keys; tty || true; } >facts-$(subst .,-,$@) 2>&1
"""


def confessing(tree):
    """The tree, each target of which writes what it sees to facts-TARGET (no object file by its name)."""
    makefile = (tree / "Makefile").read_text(encoding="ascii")
    makefile = makefile.replace("tiny.a: $(objects)\n", "tiny.a: $(objects)\n\t$(confess)\n")
    makefile = makefile.replace("clean:\n", "clean:\n\t$(confess)\n")
    (tree / "Makefile").write_text(CONFESS + makefile + "\ntinyconfig:\n\t$(confess)\n\t>.config\n",
                                   encoding="ascii")


@pytest.mark.parametrize("kind", ["tiny-a", "clean", "tinyconfig"])
def test_nothing_of_the_tree_has_a_privilege(partitions, tree, kind):
    """The build, its clean and its configuration: the user, capabilities, the network, what is
    open, and who listens."""
    confessing(tree)
    secret = tree.parent / "secret"
    secret.write_text("root's\n")
    hint = pathlib.Path("/tmp") / f"recount-test-{os.getpid()}"
    hint.touch()
    with open(secret, encoding="ascii") as kept:
        os.set_inheritable(kept.fileno(), True)
        result = prepare(partitions, "--tree", tree, "--target", "all", "--config", "tinyconfig",
                         pass_fds=[kept.fileno()], start_new_session=True)
    hint.unlink()
    assert result.returncode == DONE, result.stderr
    facts = on(partitions[1], f"cat tiny-1.0/facts-{kind}").splitlines()
    assert any(line.startswith(f"uid={NOBODY}") and "root" not in line for line in facts), facts
    status = dict(line.split(":", 1) for line in facts if re.match("(Uid|Gid|Groups|Cap|NoNew)", line))
    assert status["Uid"].split() == status["Gid"].split() == [str(NOBODY)] * 4
    assert not status["Groups"].split() and status["NoNewPrivs"].strip() == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name
    # Of interfaces only the loopback of its own namespace, through which nothing went.
    counts = [line.split()[1:] for line in facts if line.startswith("net ") and "|" not in line]
    assert [line[0] for line in counts] == ["lo:"] and set(counts[0][1:]) == {"0"}
    assert [line for line in facts if line.startswith("run ")] == ["run recount"]
    assert f"tmp {hint.name}" not in facts
    open_files = [line.split(" ", 2)[2] for line in facts if line.startswith("fd ")]
    own = re.compile(r"(/dev/null|pipe:\[\d+\]|/proc/\d+/fd|/run/recount/arena/.*)?$")
    assert open_files and all(own.match(name) for name in open_files), open_files
    assert "not a tty" in facts


def test_inherited_capabilities_are_dropped(partitions, tree):
    """Those that are inheritable and ambient would outlive the change of user."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    confessing(tree)
    result = prepare(partitions, "--tree", tree, "--target", "all", "--config", "tinyconfig",
                     before=["setpriv", "--inh-caps", "+net_admin,+sys_admin",
                             "--ambient-caps", "+net_admin,+sys_admin",
                             "--securebits", "+no_setuid_fixup"])
    assert result.returncode == DONE, result.stderr
    facts = on(partitions[1], "cat tiny-1.0/facts-tiny-a").splitlines()
    caps = {line.split(":")[0]: int(line.split(":")[1], 16) for line in facts
            if re.match("Cap(Inh|Prm|Eff|Amb)", line)}
    assert len(caps) == 4 and not any(caps.values()), caps


# keyctl(KEYCTL_JOIN_SESSION_KEYRING, "recount-test")
KEYRING = r"""
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).syscall(250, 1, b"recount-test") < 0:
    os._exit(77)
print(open("/proc/keys").read(), file=sys.stderr)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number is that of x86-64")
def test_session_keys_stay_behind(partitions, tree):
    """Whoever has a session's keyring may use its keys, whatever the user."""
    confessing(tree)
    result = prepare(partitions, "--tree", tree, "--target", "all", "--config", "tinyconfig",
                     before=[sys.executable, "-c", KEYRING])
    if result.returncode == 77:
        pytest.skip("no keyrings here")
    assert result.returncode == DONE, result.stderr
    assert "recount-test" in result.stderr
    assert "recount-test" not in on(partitions[1], "cat tiny-1.0/facts-tiny-a")


# A kernel without network namespaces, for whom it starts: unshare(CLONE_NEWNET) is EINVAL.
NO_NAMESPACES = r"""
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 3, 272), (0x20, 0, 0, 16), (0x45, 0, 1, 0x40000000),
        (0x06, 0, 0, 0x00050016), (0x06, 0, 0, 0x7fff0000)]
rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(rules)))
assert ctypes.CDLL(None, use_errno=True).prctl(22, 2, filter, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


def without_namespaces(*before):
    """Words that start the rest of a command so."""
    return [*before, sys.executable, "-c", NO_NAMESPACES]


def is_connected():
    """Is an interface up beside the loopback?"""
    flags = [int(path.read_text(), 16) for path in pathlib.Path("/sys/class/net").glob("*/flags")]
    return any(flag & 1 and not flag & 8 for flag in flags)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter knows x86-64's numbers only")
def test_kernel_without_network_namespaces(partitions, tree):
    """A build does not start where it would have the network."""
    if not is_connected():
        pytest.skip("needs a network interface that is up")
    result = prepare(partitions, "--tree", tree, "--target", "all", before=without_namespaces())
    refused(result, partitions, "cannot run make", "Network is unreachable")


def test_folder_behind_a_link_is_copied(partitions, tree):
    link = tree.parent / "link"
    link.symlink_to(tree)
    result = prepare(partitions, "--tree", link, "--target", "all")
    assert result.returncode == DONE, result.stderr
    assert "Type: directory" in on(partitions[1], "stat tiny-1.0")
    assert tree.stat().st_uid == os.geteuid() and not (tree / "tiny.a").exists()


def test_archive_of_nothing_but_a_link_is_no_tree(partitions, tree):
    (tree.parent / "out").mkdir()
    (tree.parent / "out/inside").symlink_to(tree)
    archive = tree.parent / "out.tar"
    run("tar", "-C", tree.parent / "out", "-cf", archive, "inside")
    refused(prepare(partitions, "--tree", archive, "--target", "all"), partitions,
            "there is no Makefile in out")


def test_failure_leaves_nothing_prepared(partitions, tree):
    result = prepare(partitions, "--tree", tree, "--target", "all")
    assert result.returncode == DONE and manifest(partitions)
    # What is refused before the tree is touched leaves it prepared.
    result = prepare(partitions, "--tree", "tiny-1.0", "--target", "-C")
    assert result.returncode == REFUSED and manifest(partitions)
    result = prepare(partitions, "--tree", "tiny-1.0", "--target", "nonsense")
    refused(result, partitions, "make in tiny-1.0 failed", "nothing is prepared now")


def leave_running(tree, command):
    with open(tree / "Makefile", "a", encoding="ascii") as f:
        f.write(f"\nleave: tiny.a\n\t{command} >/dev/null 2>&1 & sleep 0.5\n")


def test_what_a_build_leaves_running_is_killed(partitions, tree):
    leave_running(tree, "sleep 600")
    result = prepare(partitions, "--tree", tree, "--target", "leave")
    assert result.returncode == DONE, result.stderr
    assert manifest(partitions)


def test_daemon_that_a_build_starts_is_named(partitions, tree):
    leave_running(tree, "setsid sleep 15")
    result = prepare(partitions, "--tree", tree, "--target", "leave")
    assert result.returncode == FAILED
    assert "has outlived it" in result.stderr
    assert manifest(partitions) is None


def test_tree_without_makefile(partitions, tree):
    (tree / "Makefile").unlink()
    refused(prepare(partitions, "--tree", tree, "--target", "all"), partitions,
            "there is no Makefile in tiny-1.0")


def test_tree_without_config(partitions, tree):
    (tree / ".config").unlink()
    refused(prepare(partitions, "--tree", tree, "--target", "all"), partitions,
            "there is no .config in tiny-1.0", "--config defconfig")


def test_no_such_tree(partitions, tree):
    refused(prepare(partitions, "--tree", tree.parent / "none"), partitions,
            "none", "neither a folder or archive")


def test_archive_with_a_colon_is_no_other_machines(partitions, tree):
    archive = tree.parent / "host:source.tar.gz"
    run("tar", "-C", tree.parent, "--force-local", "-czf", archive, "tiny-1.0")
    result = prepare(partitions, "--tree", "host:source.tar.gz", "--target", "all", cwd=tree.parent)
    assert result.returncode == DONE, result.stderr
    assert manifest(partitions)["workload"]["dir"] == "host:source"


def test_damaged_archive_leaves_no_tree(partitions, tree):
    archive = tree.parent / "cut-1.0.tar.gz"
    run("tar", "-C", tree.parent, "-czf", archive, "tiny-1.0")
    archive.write_bytes(archive.read_bytes()[:-400])
    result = prepare(partitions, "--tree", archive, "--target", "all")
    assert result.returncode == FAILED and "tar failed" in result.stderr
    assert manifest(partitions) is None
    nothing_half_done(partitions, "cut-1.0")


def test_target_that_does_not_build(partitions, tree):
    with open(tree / "word.c", "a", encoding="ascii") as f:
        f.write("#error this is the reason\n")
    refused(prepare(partitions, "--tree", tree, "--target", "all"), partitions,
            "make in tiny-1.0 failed", "this is the reason",
            "tiny-1.0 stays in the arena: recount prepare --tree tiny-1.0 uses it again",
            "mount /dev/part2 /mnt && rm -r /mnt/tiny-1.0; umount /mnt removes it")
    # Then it is no news.
    result = prepare(partitions, "--tree", "tiny-1.0", "--target", "all")
    assert result.returncode == REFUSED and "stays in the arena" not in result.stderr


ROOM = ("/dev/part2 has ", " inodes free", "remove what it need not hold (mount /dev/part2 /mnt",
        "recount format --arena DEV")


def nothing_half_done(partitions, name):
    left = on(partitions[1], "ls")
    assert ".recount-new" not in left and name not in left


def test_folder_that_is_larger_than_the_arena(partitions, tree):
    (tree / "large").write_bytes(b"x" * (70 << 20))
    os.link(tree / "large", tree / "larger")
    with open(tree / "holes", "wb") as f:
        f.truncate(1 << 40)
    result = prepare(partitions, "--tree", tree, "--target", "all")
    refused(result, partitions, *ROOM, f"{tree} needs at least 73 MB")
    assert "cp" not in result.stderr.replace(str(tree), "")
    nothing_half_done(partitions, "tiny-1.0")


def test_holes_and_links_need_no_room(partitions, tree):
    (tree / "large").write_bytes(b"x" * (33 << 20))
    os.link(tree / "large", tree / "larger")
    with open(tree / "holes", "wb") as f:
        f.truncate(100 << 20)
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", "tiny.a")
    assert result.returncode == DONE, result.stderr


def test_archive_that_is_larger_than_the_arena(partitions, tree):
    archive = tree.parent / "source.tar"
    archive.write_bytes(b"x" * (70 << 20))
    result = prepare(partitions, "--tree", archive, "--target", "all")
    refused(result, partitions, *ROOM, f"{archive} needs at least 73 MB")
    assert "tar failed" not in result.stderr
    nothing_half_done(partitions, "source")


def test_archive_that_fills_the_arena(partitions, tree):
    (tree / "large").write_bytes(bytes(80 << 20))
    archive = tree.parent / "source.tar.gz"
    run("tar", "-C", tree.parent, "-czf", archive, "tiny-1.0")
    result = prepare(partitions, "--tree", archive, "--target", "all")
    refused(result, partitions, "tar failed", *ROOM, f"{archive} needs more")
    free = re.search(r"has (\d+) MB and \d+ inodes free", result.stderr)
    assert int(free[1]) > 50  # what is free without it
    nothing_half_done(partitions, "source")


def test_small_files_fill_the_arena(partitions, tree):
    """By their number: an inode costs what du does not count."""
    for number in range(17000):
        (tree / f"empty-{number}").touch()
    result = prepare(partitions, "--tree", tree, "--target", "all")
    refused(result, partitions, "cp failed", *ROOM, f"{tree} needs more")
    nothing_half_done(partitions, "tiny-1.0")


@pytest.mark.parametrize("config", ["/nonexistent/file", "none/mine.config", ".config", "."])
def test_config_that_is_no_file(partitions, tree, config):
    result = prepare(partitions, "--tree", tree, "--target", "all", "--config", config)
    refused(result, partitions, f"--config {config}: there is no such file", "name a file",
            "defconfig")
    assert "copying" not in result.stderr
    nothing_half_done(partitions, "tiny-1.0")


def test_tree_by_the_folder_one_is_in(partitions, tree):
    result = prepare(partitions, "--tree", ".", "--target", "all", cwd=tree)
    assert result.returncode == DONE, result.stderr
    assert manifest(partitions)["workload"]["dir"] == "tiny-1.0"


@pytest.mark.parametrize("word", [".", ".."])
def test_tree_without_a_name(partitions, tree, word):
    hidden = tree.parent / ".hidden"
    hidden.mkdir()
    tree.rename(hidden / "tiny")
    cwd = hidden if word == "." else hidden / "tiny"
    refused(prepare(partitions, "--tree", word, cwd=cwd), partitions,
            f"--tree {word}: in the arena it would have the name of {hidden}",
            "none there may start with a dot", "another name")
    refused(prepare(partitions, "--tree", word, cwd="/"), partitions,
            f"--tree {word} is /, the whole machine", "name the folder of a source tree")


@pytest.mark.parametrize("product", ["..", "/tiny.a"])
def test_product_that_is_no_path_in_the_tree(partitions, tree, product):
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", product)
    refused(result, partitions, "--product", "must be a path inside the tree")
    assert "copying" not in result.stderr


def test_product_that_is_the_whole_tree(partitions, tree):
    options = ("--target", "all", "--product", ".")
    result = prepare(partitions, "--tree", tree, *options)
    assert result.returncode == DONE, result.stderr
    assert manifest(partitions)["workload"]["product"] == "."


def test_whole_tree_without_object_files(partitions, tree):
    (tree / "Makefile").write_text("all:\nclean:\n", encoding="ascii")
    refused(prepare(partitions, "--tree", tree, "--target", "all", "--product", "."), partitions,
            "the build left no object files in the tree", "--product names")


def test_whole_tree_that_clean_leaves(partitions, tree):
    makefile = (tree / "Makefile").read_text(encoding="ascii")
    start = makefile.index("clean:")
    (tree / "Makefile").write_text(makefile[:start] + "clean:\n\ttrue\n", encoding="ascii")
    refused(prepare(partitions, "--tree", tree, "--target", "all", "--product", "."), partitions,
            "the set of object files of tiny-1.0 is still there after its clean")


def test_product_that_differs_between_two_builds(partitions, tree):
    with open(tree / "Makefile", "a", encoding="ascii") as f:
        f.write("\nCFLAGS += -DSTAMP=\\\"$(shell od -An -N4 -tx4 /dev/urandom | tr -d ' ')\\\"\n")
    with open(tree / "word.c", "a", encoding="ascii") as f:
        f.write("const char stamp[] = STAMP;\n")
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", "tiny.a")
    refused(result, partitions, "tiny.a differs between two builds")
    hashes = [line.strip() for line in result.stderr.splitlines() if len(line.strip()) == 64]
    assert len(set(hashes)) == 2


def test_clean_that_cleans_nothing(partitions, tree):
    makefile = (tree / "Makefile").read_text(encoding="ascii")
    start = makefile.index("clean:")
    (tree / "Makefile").write_text(makefile[:start] + "clean:\n\ttrue\n", encoding="ascii")
    result = prepare(partitions, "--tree", tree, "--target", "all", "--product", "tiny.a")
    refused(result, partitions, "tiny.a", "still there after its clean", "mend the clean target")


def test_product_that_is_not_made(partitions, tree):
    refused(prepare(partitions, "--tree", tree, "--target", "all", "--product", "vmlinux"),
            partitions, "the build left no vmlinux", "--product")


def test_product_behind_a_link(partitions, tree):
    """Root reads it: the tree must not choose what else that is."""
    secret = tree.parent / "outside/secret"
    secret.parent.mkdir()
    secret.write_text("root's\n")
    (tree / "out").symlink_to(secret.parent)
    refused(prepare(partitions, "--tree", tree, "--target", "all", "--product", "out/secret"),
            partitions, "out/secret leads through a link")


def test_while_a_campaign_is_active(partitions, tree):
    active = tree.parent / "active"
    active.write_text("2026-11-30-a\n")
    run("debugfs", "-w", "-R", f"write {active} active", partitions[0])
    refused(prepare(partitions, "--tree", tree, "--target", "all"), partitions,
            "2026-11-30-a is active", "recount stop")


def test_store_with_the_arenas_label_is_no_store(partitions, tree):
    run("e2label", partitions[0], "OTHER")
    result = prepare(partitions, "--tree", tree)
    assert result.returncode == REFUSED
    assert "no partition is labelled RECOUNT" in result.stderr
