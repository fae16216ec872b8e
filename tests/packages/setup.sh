#!/usr/bin/env bash
# Installs what making and testing packages needs and this machine lacks; with the argument `images`, what images need, too.
set -euo pipefail

packages=()
for program in debootstrap lintian dpkg-deb dpkg-shlibdeps; do
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || packages+=("$program")
done
packages=("${packages[@]/dpkg-shlibdeps/dpkg-dev}")
if [ "${1:-}" = images ]; then
    command -v buildah >/dev/null || packages+=(buildah)
fi
if [ "${#packages[@]}" -gt 0 ]; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -q </dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${packages[@]}" </dev/null
fi
