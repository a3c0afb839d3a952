# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages for the test machine: finds, downloads and unpacks them, cached by content.

The mirrors are those of this machine's own apt; its lists and state are not touched. Everything is
kept below ${XDG_CACHE_HOME:-~/.cache}/recount: apt/ (lists), debs/ (downloads), root-KEY.tar.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

SERIES = ("5.10", "6.1", "6.12")
PACKAGES = (
    "initramfs-tools", "systemd-sysv", "udev", "kmod", "procps", "e2fsprogs", "util-linux",
    "grub-common", "grub2-common", "grub-pc-bin",
    "gcc", "libc6-dev", "make", "bc", "perl", "flex", "bison", "zstd", "libelf-dev", "libssl-dev",
    "strace", "libgsl27", "libarchive13", "libinih1", "libmd0", "libblkid1", "libkmod2",
)
SOURCE_PACKAGE = "linux-source-6.1"
# What UEFI loads; unpacked, never installed: their maintainer scripts want a running UEFI.
LOADER_PACKAGES = ("shim-signed", "grub-efi-amd64-signed")
SHIM = "usr/lib/shim/shimx64.efi.signed"
GRUB = "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_MAX_AGE_S = 3 * 24 * 3600
UNUSED_MAX_AGE_S = 14 * 24 * 3600

# What the packages bring and no test reads: documents and translations.
EXCLUDES = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*",
            "/usr/share/lintian/*", "/usr/share/bug/*", "/usr/share/i18n/*")


class BenchError(Exception):
    """The bench cannot be built or driven here; the text says why and what to do."""


def cache_dir():
    """Cache folder of the bench; made when missing."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "recount"
    path.mkdir(parents=True, exist_ok=True)
    return path


def log(text):
    print(f"bench: {text}", flush=True)


@contextlib.contextmanager
def cache_lock():
    """Lets one process at a time build in the cache; the others wait."""
    with open(cache_dir() / "lock", "w", encoding="ascii") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("waiting for another build in the cache")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def touch_and_prune(path):
    """Notes that a cached image is in use; drops those of its kind unused for UNUSED_MAX_AGE_S."""
    os.utime(path)
    for other in path.parent.glob(path.name.split("-")[0] + "-*" + path.suffix):
        if time.time() - other.stat().st_mtime > UNUSED_MAX_AGE_S:
            other.unlink()
            pathlib.Path(str(other) + ".json").unlink(missing_ok=True)


def call(*argv, **options):
    """Runs a program; BenchError with the end of its output when it fails. Returns its output."""
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} failed with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def mirrors():
    """(archive URI, security URI) of this machine's apt."""
    found = {}
    out = call("apt-get", "indextargets", "--format", "$(ORIGIN)\t$(CODENAME)\t$(REPO_URI)")
    for line in out.splitlines():
        origin, codename, uri = line.split("\t")
        if origin != "Debian":
            continue
        if codename.endswith("-security"):
            found.setdefault("security", uri)
        elif "-" not in codename:
            found.setdefault("archive", uri)
    if len(found) != 2:
        raise BenchError("this machine's apt knows no Debian archive with a security suite: "
                         "add both to its sources and run apt-get update")
    return found["archive"].rstrip("/"), found["security"].rstrip("/")


def sources():
    """The deb lines of the test machine."""
    archive, security = mirrors()
    signed = f"[signed-by={KEYRING}]"
    return [f"deb {signed} {archive} bookworm main",
            f"deb {signed} {security} bookworm-security main",
            f"deb {signed} {security} bullseye-security main"]


class Apt:
    """apt-get and apt-cache with the test machine's sources, beside this machine's own state."""

    def __init__(self):
        self.dir = cache_dir() / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (self.dir / part).mkdir(parents=True, exist_ok=True)
        (self.dir / "status").touch()
        text = "".join(line + "\n" for line in sources())
        listed = self.dir / "sources.list"
        if not listed.exists() or listed.read_text() != text:
            listed.write_text(text)
            (self.dir / "stamp").unlink(missing_ok=True)
        self.options = []
        for name, value in (("Dir::State", self.dir), ("Dir::State::lists", self.dir / "lists"),
                            ("Dir::State::status", self.dir / "status"),
                            ("Dir::Cache", self.dir / "cache"),
                            ("Dir::Etc::sourcelist", listed),
                            ("Dir::Etc::sourceparts", "/dev/null"),
                            ("APT::Architecture", "amd64"), ("APT::Sandbox::User", "root"),
                            ("Acquire::Languages", "none"), ("Acquire::Retries", "3")):
            self.options += ["-o", f"{name}={value}"]
        # Looking names up takes seconds: what the present lists answered is kept beside them.
        self.known_file = self.dir / "versions.json"
        self.known = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(self.known_file.read_text())
            if kept["stamp"] == (self.dir / "stamp").stat().st_mtime:
                self.known = kept["known"]

    def refresh(self, max_age_s):
        """Fetches the lists when they are older than max_age_s."""
        stamp = self.dir / "stamp"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < max_age_s:
            return
        log("fetching package lists")
        call("apt-get", *self.options, "update")
        self.known = {}
        stamp.touch()

    def versions(self, pattern):
        """[(package, version)] of every package whose whole name matches, newest first."""
        if pattern not in self.known:
            self.known[pattern] = self._look_up(pattern)
            stamp = self.dir / "stamp"
            if stamp.exists():
                self.known_file.write_text(json.dumps({"stamp": stamp.stat().st_mtime,
                                                       "known": self.known}))
        return [tuple(pair) for pair in self.known[pattern]]

    def _look_up(self, pattern):
        names = [n for n in call("apt-cache", *self.options, "pkgnames").split()
                 if re.fullmatch(pattern, n)]
        if not names:
            return []
        shown = call("apt-cache", *self.options, "show", "--no-all-versions", *names)
        fields = re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", shown, re.M | re.S)
        return sorted(fields, key=_VersionKey, reverse=True)

    def download(self, name, version):
        """Path of NAME's .deb in the cache; downloads it when missing."""
        debs = cache_dir() / "debs"
        debs.mkdir(exist_ok=True)
        quoted = version.replace(":", "%3a")
        have = sorted(debs.glob(f"{name}_{quoted}_*.deb"))
        if not have:
            log(f"downloading {name} {version}")
            call("apt-get", *self.options, "download", f"{name}={version}", cwd=debs)
            have = sorted(debs.glob(f"{name}_{quoted}_*.deb"))
        return have[0]


class _VersionKey:
    """Orders (package, version) pairs as dpkg does."""

    def __init__(self, pair):
        self.version = pair[1]

    def __lt__(self, other):
        return subprocess.run(["dpkg", "--compare-versions", self.version, "lt", other.version],
                              check=False).returncode == 0


def kernel_pattern(series, flavour):
    """Regular expression for the signed images of a series: linux-image-SERIES.PATCH[...]-FLAVOUR."""
    return rf"linux-image-{re.escape(series)}\.\d+[-+.a-z0-9]*?-{flavour}"


def newest_kernel(apt, series, flavour="cloud-amd64"):
    """(package, version) of the newest kernel image of a series."""
    flavours = r"(?<!cloud-)(?<!rt-)amd64" if flavour == "amd64" else re.escape(flavour)
    found = apt.versions(kernel_pattern(series, flavours))
    if not found:
        raise BenchError(f"no {flavour} kernel {series} in the archives apt knows")
    return found[0]


def plan(apt):
    """What the root tar holds: its packages with kernels, and the versions that make its key."""
    kernels = [newest_kernel(apt, series) for series in SERIES]
    base = apt.versions("|".join(re.escape(name) for name in PACKAGES))
    missing = set(PACKAGES) - {name for name, _ in base}
    if missing:
        raise BenchError(f"packages not found: {' '.join(sorted(missing))}")
    return kernels, kernels + base


def loader_versions(apt):
    """[(package, version)] of shim and GRUB as Debian signs them."""
    found = apt.versions("|".join(re.escape(name) for name in LOADER_PACKAGES))
    missing = set(LOADER_PACKAGES) - {name for name, _ in found}
    if missing:
        raise BenchError(f"packages not found: {' '.join(sorted(missing))}")
    return found


def unpack_loaders(apt, versions, folder):
    """Unpacks what loader_versions() found into FOLDER: SHIM and GRUB lie below it then."""
    folder.mkdir()
    for name, version in versions:
        call("dpkg-deb", "-x", apt.download(name, version), folder)


def root_tar(apt):
    """(path of the root file system's tar, [kernel packages]); built once per set of versions."""
    apt.refresh(LISTS_MAX_AGE_S)
    kernels, versions = plan(apt)
    key = hashlib.sha256(repr((sorted(versions), PACKAGES, EXCLUDES, 1)).encode()).hexdigest()[:16]
    tar = cache_dir() / f"root-{key}.tar"
    if tar.exists():
        touch_and_prune(tar)
        return tar, [name for name, _ in kernels]
    apt.refresh(600)
    if plan(apt) != (kernels, versions):
        return root_tar(apt)
    started = time.monotonic()
    log("building the root file system (mmdebstrap; takes some minutes)")
    debs = cache_dir() / "debs"
    debs.mkdir(exist_ok=True)
    partial = tar.with_suffix(".part.tar")
    include = list(PACKAGES) + [name for name, _ in kernels]
    call("mmdebstrap", "--variant=minbase", "--architectures=amd64", "--mode=root",
         f"--include={','.join(include)}", "--skip=essential/unlink,download/empty",
         "--aptopt=APT::Keep-Downloaded-Packages \"true\"",
         "--aptopt=APT::Install-Recommends \"false\"",
         *[f"--dpkgopt=path-exclude={glob}" for glob in EXCLUDES],
         f"--setup-hook=mkdir -p \"$1/var/cache/apt/archives\" && "
         f"cp -al {debs}/. \"$1/var/cache/apt/archives/\" 2>/dev/null || "
         f"cp -a {debs}/. \"$1/var/cache/apt/archives/\"",
         "--essential-hook=mkdir -p \"$1/etc/initramfs-tools/conf.d\" && "
         "printf 'MODULES=list\\nBUSYBOX=no\\n' > \"$1/etc/initramfs-tools/conf.d/bench\"",
         f"--customize-hook=cp -n \"$1\"/var/cache/apt/archives/*.deb {debs}/ && "
         "rm -f \"$1\"/var/cache/apt/archives/*.deb",
         "bookworm", partial, *sources())
    partial.rename(tar)
    log(f"root file system built in {time.monotonic() - started:.0f} s, "
        f"{tar.stat().st_size >> 20} MiB")
    return tar, [name for name, _ in kernels]


if __name__ == "__main__":
    with cache_lock():
        print(*root_tar(Apt()))
