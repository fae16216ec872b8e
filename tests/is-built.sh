#!/usr/bin/env bash
# is-built.sh LIBRARY STAMP
# Whether a library is what the sources of this clone make: it was left there when STAMP was made, and nothing has changed since.
set -euo pipefail
cd "$(dirname "$0")/.."

library=$1 stamp=$2
[ -e "$stamp" ] && [ -e "$library" ] && [ ! "$library" -nt "$stamp" ] || exit 1
newer=$(find . -name target -prune -o -name .git -prune -o -type f -newer "$stamp" \
    \( -name '*.rs' -o -name '*.sql' -o -name '*.control' -o -name 'Cargo.*' -o -path './.cargo/*' \) -print -quit)
[ -z "$newer" ]
