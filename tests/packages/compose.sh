#!/usr/bin/env bash
# compose.sh FOLDER: unpacks Docker Compose below FOLDER, from the package of a Debian that has its second version; that of
# Debian 12 does not know files as they are written now. It is not installed, and what it is used for here needs no Docker. Does nothing if it is there.
set -euo pipefail
. "$(dirname "$0")/../debian.sh"

folder=$1 program=usr/libexec/docker/cli-plugins/docker-compose
[ ! -x "$folder/$program" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb ${EDDY_DEBIAN_MIRROR:-http://deb.debian.org/debian} $(release_with 17) main" >"$work/sources.list"
# With lists of its own: those of this machine stay as they are.
apt_get() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
        -o APT::Sandbox::User=root "$@" </dev/null >&2
}
apt_get update
(cd "$work" && apt_get download docker-compose)
dpkg-deb -x "$work"/docker-compose_*.deb "$work/root"
[ -x "$work/root/$program" ]
mkdir -p "$folder"
cp -r "$work/root/usr" "$folder/"
