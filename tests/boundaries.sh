#!/usr/bin/env bash
# What a crate must not know (ARCHITECTURE.md), checked on the dependency graph and the text.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
broken=0

# must_not_use CRATE DEPTH NAME...: no dependency of that name within DEPTH edges.
must_not_use() {
    local crate=$1 depth=$2 names found
    shift 2
    found=$("$cargo" tree --locked --offline --edges normal --prefix none --format '{p}' \
        --package "$crate" --depth "$depth" | cut -d' ' -f1 | sort -u)
    for names in "$@"; do
        if grep -qx "$names" <<<"$found"; then
            echo "crate $crate must not depend on $names" >&2
            broken=1
        fi
    done
}

must_not_use plan 99 sqlparser planner timely differential-dataflow pgrx pgrx-pg-sys engine pg_eddy
must_not_use planner 99 timely differential-dataflow pgrx pgrx-pg-sys engine pg_eddy
must_not_use engine 99 sqlparser planner pgrx pgrx-pg-sys pg_eddy
must_not_use engine 1 postgres
must_not_use engine_process 99 sqlparser planner pgrx pgrx-pg-sys pg_eddy
must_not_use engine_process 1 timely differential-dataflow
must_not_use pg_eddy 1 timely differential-dataflow sqlparser
must_not_use rules 99 pgrx pgrx-pg-sys timely differential-dataflow sqlparser planner engine
must_not_use harness 99 pgrx pgrx-pg-sys pg_eddy engine planner plan timely
must_not_use house 1 pgrx pg_eddy engine planner plan harness
must_not_use eddy-tests 99 pgrx pgrx-pg-sys pg_eddy engine planner timely plotters
must_not_use eddy-bench 99 pgrx pgrx-pg-sys pg_eddy

# Comments may say "unsafe"; code may only in the three rooms of the extension that touch PostgreSQL's memory.
# The one exception is the counting allocator: the trait is unsafe to implement, and the engine's tests need it without
# PostgreSQL.
outside=$(git ls-files --cached --others --exclude-standard '*.rs' |
    grep -vE '^(extension/src/(pg|hooks|rewrite)/|engine/src/memory\.rs$)' |
    xargs -r grep -nE '(^|[^[:alnum:]_])unsafe([[:space:]]|\{|$)' |
    grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' || true)
if [ -n "$outside" ]; then
    printf 'unsafe code outside extension/src/pg, hooks and rewrite:\n%s\n' "$outside" >&2
    broken=1
fi

# What differs between versions of the server has one place.
scattered=$(git ls-files --cached --others --exclude-standard 'extension/src/*.rs' |
    grep -v '^extension/src/pg/versions/' | xargs -r grep -n 'feature = "pg[0-9]' || true)
if [ -n "$scattered" ]; then
    printf 'versions of the server are told apart outside extension/src/pg/versions:\n%s\n' "$scattered" >&2
    broken=1
fi

# These give a transaction a number though it reads, and a worker that starts waits for the end of those that have one.
numbering=$(git ls-files --cached --others --exclude-standard 'extension/src/*.rs' |
    xargs -r grep -nE 'Spi::(get_|run|connect_mut)' | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' || true)
if [ -n "$numbering" ]; then
    printf 'transactions get a number where they only read (see quiet::first_row):\n%s\n' "$numbering" >&2
    broken=1
fi

# What PostgreSQL calls must not let a panic out: nobody would catch it, and the server would end. It is guarded, or its
# doc comment says after "Unguarded:" why no panic leaves it.
loose=$(git ls-files --cached --others --exclude-standard 'extension/src/*.rs' |
    xargs -r awk '
        /^[[:space:]]*(#\[|\/\/\/)/ { above = above $0; next }
        /extern "C(-unwind)?" fn [a-z_]+[(<]/ && !/^[[:space:]]*type / {
            if (above !~ /pg_guard|Unguarded:/) printf "%s:%d: %s\n", FILENAME, FNR, $0
        }
        { above = "" }')
if [ -n "$loose" ]; then
    printf 'callbacks that are not guarded:\n%s\n' "$loose" >&2
    broken=1
fi

[ "$broken" -eq 0 ] && echo "crate boundaries hold"
