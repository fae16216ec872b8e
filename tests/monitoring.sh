#!/usr/bin/env bash
# monitoring.sh FOLDER: unpacks Prometheus and postgres_exporter below FOLDER, from Debian's packages. They are not installed:
# that would start their services. Does nothing if they are there.
set -euo pipefail

folder=$1
[ -x "$folder/usr/bin/promtool" ] && [ -x "$folder/usr/bin/prometheus-postgres-exporter" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without lists of packages, as in a fresh container, there is nothing to choose from.
if ! apt-cache show prometheus >/dev/null 2>&1; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -q </dev/null
fi
(cd "$work" && apt-get download -q prometheus prometheus-postgres-exporter 2>&1 | grep -v 'unsandboxed' || true)
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
[ -x "$work/root/usr/bin/promtool" ] && [ -x "$work/root/usr/bin/prometheus-postgres-exporter" ]
mkdir -p "$folder"
cp -r "$work/root/usr" "$folder/"
