#!/usr/bin/env bash
# strip.sh LIBRARY PROGRAM PRODUCT
# Leaves in the folder PRODUCT what is shipped of a built library: pg_eddy.so without symbols, and its symbols in
# pg_eddy.so.debug, which it names. What the server looks up by name (functions of SQL, the output plugin) is in a table of
# its own (.dynsym), which stays. And the program of the engine, pg_eddy_engine, without symbols.
set -euo pipefail

library=$1 program=$2 product=$3
mkdir -p "$product"
if [ ! "$product/pg_eddy_engine" -nt "$program" ]; then
    objcopy --strip-all "$program" "$product/pg_eddy_engine.new"
    chmod 755 "$product/pg_eddy_engine.new"
    mv -f "$product/pg_eddy_engine.new" "$product/pg_eddy_engine"
fi
if [ "$product/pg_eddy.so" -nt "$library" ]; then
    exit 0
fi
objcopy --only-keep-debug --compress-debug-sections "$library" "$product/pg_eddy.so.debug"
chmod 644 "$product/pg_eddy.so.debug"
# The link has the name and a checksum of the file that is there now.
objcopy --strip-unneeded --add-gnu-debuglink="$product/pg_eddy.so.debug" \
    "$library" "$product/pg_eddy.so.new"
mv -f "$product/pg_eddy.so.new" "$product/pg_eddy.so"
