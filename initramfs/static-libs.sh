#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds static libkmod.a and libcjson.a from the distribution's source packages.
#
# usage: initramfs/static-libs.sh OUTDIR
#
# Gives OUTDIR/libkmod.a, libcjson.a, include/libkmod.h and include/cjson/cJSON.h. Debian ships
# neither archive. Link with -Wl,--gc-sections and, after libkmod.a, -llzma -lzstd -lz.
# A second call does nothing as long as OUTDIR was made by this script from the same sources.
#
# Sources come from apt through a deb-src list of our own, derived from the machine's list; the
# machine's apt set-up is neither changed nor updated, and root is not needed. They are kept in
# ${XDG_CACHE_HOME:-~/.cache}/recount/sources; remove that folder to fetch newer ones.
#
# Environment:
#   KMOD_SRC=DIR, CJSON_SRC=DIR  unpacked sources to use instead (other distributions, no network)
#   CC, AR                       compiler and archiver (default cc, ar)
set -eu

die()
{
	printf 'static-libs.sh: %s\n' "$*" >&2
	exit 1
}

# need COMMAND PACKAGE: the package is Debian's name.
need()
{
	command -v "$1" >/dev/null 2>&1 || die "cannot find $1: install $2"
}

# need_header HEADER PACKAGE
need_header()
{
	printf '#include <%s>\n' "$1" | $CC -E -x c - >/dev/null 2>&1 ||
		die "cannot find the header $1: install $2"
}

[ $# -eq 1 ] || {
	echo 'usage: static-libs.sh OUTDIR' >&2
	exit 2
}

CC=${CC:-cc}
AR=${AR:-ar}
KMOD_SRC=${KMOD_SRC:-}
CJSON_SRC=${CJSON_SRC:-}
out=$1
flags='-std=gnu11 -Os -g -fvisibility=hidden -ffunction-sections -fdata-sections -w'

distribution=unknown
if [ -r /etc/os-release ]; then
	# shellcheck source=/dev/null
	distribution=$(. /etc/os-release && echo "${ID:-unknown}-${VERSION_ID:-rolling}")
fi

stamp="$(cksum <"$0") $distribution CC=$CC KMOD_SRC=$KMOD_SRC CJSON_SRC=$CJSON_SRC"
if [ -e "$out/libkmod.a" ] && [ -e "$out/libcjson.a" ] && [ -e "$out/include/libkmod.h" ] &&
	[ -e "$out/include/cjson/cJSON.h" ] &&
	[ "$stamp" = "$(cat "$out/static-libs.stamp" 2>/dev/null)" ]; then
	exit 0
fi

need "${CC%% *}" gcc
need "${AR%% *}" binutils
need_header stdio.h libc6-dev
need_header lzma.h liblzma-dev
need_header zstd.h libzstd-dev
need_header zlib.h zlib1g-dev

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/static-libs.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The machine's package sources as deb-src, in both of apt's formats.
write_source_lists()
{
	mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	# shellcheck disable=SC2154 # list and parts come from apt-config
	for file in "$list" "$parts"/*.list "$parts"/*.sources; do
		[ -r "$file" ] || continue
		case $file in
		*.sources)
			sed 's/^[Tt]ypes:.*/Types: deb-src/' "$file"
			;;
		*)
			sed -n 's/^[[:space:]]*deb\(-src\)\{0,1\}\([[:space:]]\)/deb-src\2/p' "$file" |
				sort -u
			;;
		esac >"$work/apt/parts/${file##*/}"
	done
	[ -n "$(cat "$work"/apt/parts/* 2>/dev/null)" ] ||
		die 'cannot find a package source in the apt configuration: set KMOD_SRC and CJSON_SRC'
}

# apt-get with our own lists, cache and state only.
private_apt()
{
	apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/apt/parts" \
		-o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
		-o Dir::Cache::archives="$work/apt/cache/archives" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none \
		-o Acquire::IndexTargets::deb-src::Sources::Optional=true "$@"
}

# fetch PACKAGE OPTION: leaves the files of source package PACKAGE in $sources/PACKAGE.
fetch()
{
	[ -d "$sources/$1" ] && return
	need apt-get 'apt, or set KMOD_SRC and CJSON_SRC to unpacked sources'
	if [ ! -d "$work/apt" ]; then
		write_source_lists
		# A third party's repository without sources must not stop us: fetching decides.
		private_apt update >"$work/apt/log" 2>&1 || :
	fi
	mkdir -p "$sources" "$work/fetch/$1"
	(cd "$work/fetch/$1" && private_apt source --download-only "$2" "$1" >>"$work/apt/log" 2>&1) || {
		cat "$work/apt/log" >&2
		die "cannot fetch the source package $1: see apt's words above"
	}
	partial=$(mktemp -d "$sources/partial.XXXXXX")
	mv "$work/fetch/$1"/* "$partial"
	mv "$partial" "$sources/$1"
}

# The one file that matches, or an error.
one_file()
{
	if [ $# -ne 1 ] || [ ! -e "$1" ]; then
		die "cannot find exactly one $1: remove $sources and try again"
	fi
	printf '%s\n' "$1"
}

sources=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/recount/sources/$distribution

if [ -n "$KMOD_SRC" ]; then
	kmod=$(cd "$KMOD_SRC" && pwd)
else
	need tar tar
	need xz xz-utils
	# The .dsc is not on every mirror, and Debian patches nothing in libkmod.
	fetch kmod --tar-only
	mkdir "$work/kmod"
	tar -xf "$(one_file "$sources"/kmod/kmod_*.orig.tar.*)" -C "$work/kmod" --strip-components=1
	kmod=$work/kmod
fi
[ -r "$kmod/libkmod/libkmod.h" ] || die "cannot find libkmod/libkmod.h in $kmod"

if [ -n "$CJSON_SRC" ]; then
	cjson=$(cd "$CJSON_SRC" && pwd)
else
	need dpkg-source dpkg-dev
	need patch patch
	# Debian's patches fix overflows: the upstream archive alone will not do.
	fetch cjson --only-source
	dpkg-source --no-check -x "$(one_file "$sources"/cjson/cjson_*.dsc)" "$work/cjson" \
		>"$work/dpkg-source.log" 2>&1 || {
		cat "$work/dpkg-source.log" >&2
		die 'cannot unpack the source package cjson'
	}
	cjson=$work/cjson
fi
[ -r "$cjson/cJSON.c" ] || die "cannot find cJSON.c in $cjson"

# What kmod's own build would find out about glibc and gcc.
mkdir -p "$work/config" "$work/objects/kmod" "$work/objects/cjson" "$work/include/cjson"
cat >"$work/config/config.h" <<'CONFIG'
#define _GNU_SOURCE 1
#define PACKAGE "kmod"
#define VERSION "static"
#define SYSCONFDIR "/etc"
#define DISTCONFDIR "/lib"
#define MODULE_DIRECTORY "/lib/modules"
#define ENABLE_LOGGING 1
#define ENABLE_XZ 1
#define ENABLE_ZSTD 1
#define ENABLE_ZLIB 1
#define HAVE_SECURE_GETENV 1
#define HAVE_STRUCT_STAT_ST_MTIM 1
#define HAVE_STATIC_ASSERT 1
#define HAVE_NORETURN 1
#define HAVE_DECL_STRNDUPA 1
#define HAVE_DECL_BASENAME 1
#define HAVE_DECL_BE32TOH 1
#define HAVE___BUILTIN_CLZ 1
#define HAVE___BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE___BUILTIN_UADD_OVERFLOW 1
#define HAVE___BUILTIN_UADDL_OVERFLOW 1
#define HAVE___BUILTIN_UADDLL_OVERFLOW 1
#define HAVE___BUILTIN_UMUL_OVERFLOW 1
#define HAVE___BUILTIN_UMULL_OVERFLOW 1
#define HAVE___BUILTIN_UMULLL_OVERFLOW 1
CONFIG
# Older kmod asks whether these are defined (#ifdef), kmod >= 33 for their values (#if). A static
# program cannot dlopen(): naming it away keeps the linker from warning about it.
if ! grep -q '#ifdef ENABLE_OPENSSL' "$kmod/libkmod/libkmod-signature.c"; then
	cat >>"$work/config/config.h" <<'CONFIG'
#define ENABLE_DEBUG 0
#define ENABLE_ELFDBG 0
#define ENABLE_OPENSSL 0
#define ENABLE_XZ_DLOPEN 0
#define ENABLE_ZSTD_DLOPEN 0
#define ENABLE_ZLIB_DLOPEN 0
#include <dlfcn.h>
#define dlopen(file, mode) NULL
#define dlsym(handle, name) NULL
#define dlclose(handle) 0
CONFIG
fi

# shellcheck disable=SC2086 # CC and flags are lists of words
(cd "$work/objects/kmod" && $CC $flags -include "$work/config/config.h" -I"$work/config" \
	-I"$kmod" -I"$kmod/libkmod" -c "$kmod"/libkmod/*.c "$kmod"/shared/*.c) ||
	die "cannot compile libkmod from $kmod"
# shellcheck disable=SC2086
(cd "$work/objects/cjson" && $CC $flags -c "$cjson/cJSON.c") ||
	die "cannot compile cJSON from $cjson"
$AR rcsD "$work/libkmod.a" "$work"/objects/kmod/*.o
$AR rcsD "$work/libcjson.a" "$work"/objects/cjson/*.o
cp "$kmod/libkmod/libkmod.h" "$work/include/libkmod.h"
cp "$cjson/cJSON.h" "$work/include/cjson/cJSON.h"

# The stamp goes last: a run that was cut short is done again.
mkdir -p "$out/include/cjson"
rm -f "$out/static-libs.stamp"
mv "$work/libkmod.a" "$work/libcjson.a" "$out"
mv "$work/include/libkmod.h" "$out/include"
mv "$work/include/cjson/cJSON.h" "$out/include/cjson"
printf '%s\n' "$stamp" >"$out/static-libs.stamp"
