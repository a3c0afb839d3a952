#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the Debian packages named as arguments that are not installed yet, and says which.
set -eu

missing=
for package in "$@"; do
	case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
	'install ok installed') ;;
	*) missing="$missing $package" ;;
	esac
done

if [ -z "$missing" ]; then
	echo "packages: all $# are installed"
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "packages missing (Debian's names; install what your distribution calls them):$missing" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "packages missing: run as root: apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "packages: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # a list of words
apt-get install -q -y --no-install-recommends $missing
