#!/usr/bin/env python3
"""licences.py CARGO FEATURE: the crates of others that the library contains, with their licences, as text.

Cargo says which crates are linked and where their sources are; each crate's own files of licences and notices are quoted.
A crate without such a file is named with the licence that it declares.
"""

import json
import pathlib
import re
import subprocess
import sys

cargo, feature = sys.argv[1:]
RULE = "=" * 78


def run(*arguments):
    command = [cargo, *arguments, "--locked"]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


features = ["--no-default-features", "--features", feature]
tree = run("tree", "--package", "pg_eddy", *features, "--edges", "normal,no-proc-macro",
           "--prefix", "none", "--format", "{p}")
linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
# Of this platform: the sources of what others need are not here.
host = subprocess.run(["rustc", "-vV"], check=True, text=True, stdout=subprocess.PIPE).stdout
host = re.search("^host: (.*)$", host, re.MULTILINE).group(1)
metadata = run("metadata", "--format-version", "1", "--filter-platform", host)
packages = json.loads(metadata)["packages"]
others = [p for p in packages if p["source"] and (p["name"], "v" + p["version"]) in linked]

name = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
for package in sorted(others, key=lambda p: (p["name"], p["version"])):
    print(f"{RULE}\n{package['name']} {package['version']}: {package['license'] or 'see below'}\n{RULE}\n")
    folder = pathlib.Path(package["manifest_path"]).parent
    # C sources that a crate brings along are one folder down.
    files = [f for f in sorted([*folder.glob("*"), *folder.glob("*/*")]) if f.is_file() and name.match(f.name)]
    for file in (f for f in files if f.suffix in ("", ".md", ".txt") or "LICENSE" in f.name):
        print(f"--- {file.relative_to(folder)}\n")
        print(file.read_text(encoding="utf-8", errors="replace").rstrip(), "\n")
