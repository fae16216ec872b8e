#!/usr/bin/env bash
# versions.sh OUTPUT [MAJOR...]: every layer of the tests with each version of PostgreSQL, one after the other, and what passed as a table in
# the file OUTPUT. Goes on after failures, which the table has, and fails at the end. Takes a quarter of an hour for each version, on two cores.
set -uo pipefail

output=$1
shift
[ "$#" -gt 0 ] || set -- 15 16 17 18
export WHOLE=1
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

failed=0
for major in "$@"; do
    make --no-print-directory test PG="$major" ARGS="--oracle-transactions 2000" </dev/null 2>&1 | tee "$logs/$major.log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
    sed -n '/^== result$/,$p' "$logs/$major.log" >"$logs/$major"
done

# A line of the report: the layer, `N passed, N failed`, and the seconds; what was not run, and failures, are indented below it.
table() {
    echo "| layer |$(printf ' %s |' "$@")"
    echo "|---|$(printf -- '---|%.0s' "$@")"
    (cd "$logs" && awk '
        FNR == 1 { major = FILENAME; majors[++columns] = major }
        /^[a-z_-]+ +[0-9]+ passed, [0-9]+ failed, / {
            if (!($1 in seen)) { seen[$1] = 1; layers[++rows] = $1 }
            cell[$1, major] = $2 ($4 == "0" ? "" : ", **" $4 " failed**")
        }
        /^[0-9]+ passed, [0-9]+ failed$/ { cell["in all", major] = $1 ($3 == "0" ? "" : ", **" $3 " failed**") }
        END {
            layers[++rows] = "in all"
            for (row = 1; row <= rows; row++) {
                line = "| " layers[row] " |"
                for (column = 1; column <= columns; column++) line = line " " cell[layers[row], majors[column]] " |"
                print line
            }
        }' "$@")
}

# What could not be run with a version, where what it needs is not there.
notes() {
    local major
    for major in "$@"; do
        sed -nE "s/^    (.*: not run here: .*)/- $major: \1/p" "$logs/$major"
    done
}

{
    echo "# Every layer with every version"
    echo
    echo "$(date -u +%F), $(nproc) cores, commit $(git rev-parse --short HEAD): \`make versions VERSIONS=\"$*\"\`. Checks that passed, with these servers:"
    echo
    for major in "$@"; do
        echo "- $("$("$(dirname "$0")/postgresql.sh" "$major")" --version)"
    done
    echo
    table "$@"
    if [ -n "$(notes "$@")" ]; then
        echo
        notes "$@"
    fi
} >"$output"
cat "$output"
exit "$failed"
