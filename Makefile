# pg_eddy: everything a user or a developer starts. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all

# The PostgreSQL to build against: PG=16, which is fetched if this machine has none, or any that PG_CONFIG names.
# Debian keeps each major version's own pg_config here.
DEBIAN_PG_CONFIG := /usr/lib/postgresql/15/bin/pg_config
ifdef PG
PG_CONFIG := $(shell tests/postgresql.sh $(PG))
$(if $(PG_CONFIG),,$(error no PostgreSQL $(PG)))
else
PG_CONFIG ?= $(if $(wildcard $(DEBIAN_PG_CONFIG)),$(DEBIAN_PG_CONFIG),pg_config)
endif
export PG_CONFIG

# Outside the clone, so that a fresh clone finds the dependencies already built.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pg_eddy/target

# dbt, for the tests of its package.
DBT := $(CARGO_TARGET_DIR)/dbt
export EDDY_DBT ?= $(DBT)/bin/dbt
# Django, SQLAlchemy and Alembic, for tests/frameworks.
FRAMEWORKS := $(CARGO_TARGET_DIR)/frameworks
export EDDY_FRAMEWORKS ?= $(FRAMEWORKS)/bin

# Prometheus and its exporter, for the tests of what docker/monitoring has for them.
export EDDY_MONITORING ?= $(CARGO_TARGET_DIR)/monitoring/usr/bin

CARGO ?= cargo
# One profile for everything: dependencies are compiled once.
PROFILE := --release --locked
PG_MAJOR = $(or $(shell "$(PG_CONFIG)" --version 2>/dev/null | sed -E 's/^[^0-9]*([0-9]+).*/\1/'),15)
FEATURES = --no-default-features --features pg$(PG_MAJOR)
# The same packages and features for building, testing and linting, for the same reason. What runs a server
# without measuring anything needs neither dataflows written by hand nor plots; where both are built, WHOLE=1 has nothing
# compiled twice.
WORKSPACE = $(PROFILE) --workspace $(FEATURES:pg%=pg_eddy/pg%)
SERVER = $(if $(WHOLE),$(WORKSPACE),$(PROFILE) -p pg_eddy -p engine_process -p eddy-tests $(FEATURES:pg%=pg_eddy/pg%))
export EDDY_CARGO_ARGUMENTS = $(WORKSPACE)
# What is compiled for one version is not written over by another's: only `pg_eddy` and the bindings are compiled for each.
LIBRARY = $(CARGO_TARGET_DIR)/release/pg_eddy-$(PG_MAJOR).so
KEEP_LIBRARY = install -C "$(CARGO_TARGET_DIR)/release/libpg_eddy.so" "$(LIBRARY)" && \
	extension/packaging/strip.sh "$(LIBRARY)" "$(CARGO_TARGET_DIR)/release/pg_eddy_engine" "$(PRODUCT)"
# What is shipped of it, inside the clone: whoever installs, perhaps by sudo, has another HOME and so another CARGO_TARGET_DIR.
PRODUCT = $(CURDIR)/target/install/$(PG_MAJOR)
INSTALLATION = --library "$(LIBRARY)" --project "$(CURDIR)"
RUNNER = "$(CARGO_TARGET_DIR)/release/eddy-tests" $(INSTALLATION)
export PGRX_PG_CONFIG_PATH = $(shell command -v "$(PG_CONFIG)")

.PHONY: clippy test-version versions help all setup build demo test install install-symbols uninstall installcheck deb packages docker-test psql lint regress isolation \
	server neighbours dbt frameworks limits installation corpus oracle fuzz crash snapshots independence operations chaos bench docs docs-sql

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install the Debian packages that are missing
	@tests/setup.sh
	@tests/monitoring.sh "$(CARGO_TARGET_DIR)/monitoring"

all: server-build ## what plain `make` does: build what `make install` installs

build: setup ## build everything: the extension, the test runner, the benchmarks
	@$(MAKE) --no-print-directory compile

# Makes of their own: PG_MAJOR is asked for after the packages are there.
.PHONY: compile server-build compile-server
compile:
	$(CARGO) build $(WORKSPACE)
	@$(KEEP_LIBRARY)
	@touch "$(BUILT)"

server-build: setup
	@$(MAKE) --no-print-directory compile-server

# For Cargo the library for another version is in the way of the one that is there: who builds several in turn, with WHOLE=1, has
# each built once.
BUILT = $(PRODUCT)/built
compile-server:
	@if [ -n "$(WHOLE)" ] && tests/is-built.sh "$(LIBRARY)" "$(BUILT)"; then \
		echo "the library for PostgreSQL $(PG_MAJOR) is built"; \
	else \
		echo $(CARGO) build $(SERVER); $(CARGO) build $(SERVER) && $(KEEP_LIBRARY) && touch "$(BUILT)"; \
	fi

demo: server-build ## views over Debian's package dependencies, in a throwaway cluster
	@$(RUNNER) demo

test: build $(DBT)/installed $(FRAMEWORKS)/installed ## run every test
	@$(RUNNER) all $(ARGS)

test-version: server-build ## the layers that a server's version can break: make test-version PG=17 ARGS=--brief
	@$(RUNNER) version $(ARGS)

versions: ## every layer with each of VERSIONS (all), and the table of what passed, in OUTPUT; takes an hour
	@tests/versions.sh "$(or $(OUTPUT),target/versions.md)" $(VERSIONS)

INSTALL = extension/packaging/install.sh
install: ## install what is built into the PostgreSQL of PG_CONFIG, below DESTDIR if that is set
	@$(INSTALL) install "$(PG_CONFIG)" "$(PRODUCT)" "$(DESTDIR)"

install-symbols: ## the library's symbols, too, for debuggers and backtraces
	@$(INSTALL) symbols "$(PG_CONFIG)" "$(PRODUCT)" "$(DESTDIR)"

uninstall: ## take out what was installed
	@$(INSTALL) uninstall "$(PG_CONFIG)" "$(PRODUCT)" "$(DESTDIR)"

# What is packed beside the library: the licences of the crates in it.
DEB_OUTPUT ?= $(CURDIR)/target/deb
deb: server-build ## Debian packages of what is built, in target/deb; DEB_REVISION, DEBFULLNAME, DEBEMAIL
	@tests/packages/setup.sh
	@extension/packaging/licences.py "$(CARGO)" pg$(PG_MAJOR) >"$(PRODUCT)/third-party-licences.txt"
	@extension/packaging/deb.sh $(PG_MAJOR) "$(PRODUCT)" "$(DEB_OUTPUT)"

packages: server-build ## the Debian package in a fresh Debian: installed, used, upgraded, removed; as root
	@tests/packages/setup.sh
	@$(RUNNER) packages

docker-test: deb ## the image of docker/, built on a fresh Debian and run, without a registry; as root
	@tests/packages/setup.sh images
	@tests/packages/compose.sh "$(CARGO_TARGET_DIR)/compose"
	@EDDY_COMPOSE="$(CARGO_TARGET_DIR)/compose/usr/libexec/docker/cli-plugins/docker-compose" $(RUNNER) images

installcheck: compile-server ## the regress suite against the running server of PG_CONFIG, found as psql finds it; ARGS as for regress
	@$(RUNNER) installcheck $(ARGS)

psql: server-build ## psql in a throwaway cluster that has the extension
	@$(RUNNER) psql

clippy: setup ## clippy on what is compiled for each version: make clippy PG=17
	$(CARGO) clippy $(SERVER) -- -D warnings

lint: setup docs ## formatting, clippy, rustdoc, the book, crate boundaries, guards of callbacks, circles between modules
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(WORKSPACE) --no-deps --document-private-items
	@tests/boundaries.sh
	$(CARGO) build $(WORKSPACE) --bin house && "$(CARGO_TARGET_DIR)/release/house" circles .

MKDOCS := $(CARGO_TARGET_DIR)/mkdocs
BOOK ?= $(CARGO_TARGET_DIR)/book

# Not --quiet: what MkDocs does not print it does not count as a warning either.
docs: setup $(MKDOCS)/installed ## the book, into BOOK; warnings and broken links are errors
	$(MKDOCS)/bin/mkdocs build --strict --config-file docs/mkdocs.yml --site-dir "$(BOOK)"

$(MKDOCS)/installed: docs/requirements.txt | setup
	rm -rf $(MKDOCS)
	python3 -m venv $(MKDOCS)
	$(MKDOCS)/bin/pip install --quiet --disable-pip-version-check --requirement docs/requirements.txt
	touch $@

$(DBT)/installed: tests/dbt/requirements.txt | setup
	rm -rf $(DBT)
	python3 -m venv $(DBT)
	$(DBT)/bin/pip install --quiet --disable-pip-version-check --requirement tests/dbt/requirements.txt
	touch $@

dbt: server-build $(DBT)/installed ## the package of docs/dbt, with the dbt of tests/dbt/requirements.txt
	@$(RUNNER) dbt

$(FRAMEWORKS)/installed: tests/frameworks/requirements.txt | setup
	rm -rf $(FRAMEWORKS)
	python3 -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check --requirement tests/frameworks/requirements.txt
	touch $@

frameworks: server-build $(FRAMEWORKS)/installed ## Django, SQLAlchemy and Alembic with views as models
	@$(RUNNER) frameworks

docs-sql: server-build ## the SQL in the book; ARGS="tutorial" selects pages, ARGS=--accept takes the outputs
	@$(RUNNER) docs $(ARGS)

regress isolation: server-build ## one layer; ARGS="name" selects tests, ARGS=--accept takes the outputs
	@$(RUNNER) $@ $(ARGS)

# QUICK=1: minutes instead of hours, no times judged. BENCH_OUTPUT gets JSON lines, plots, verdicts.
BENCH_OUTPUT ?= $(CARGO_TARGET_DIR)/bench-results
BENCH_RUNNER = "$(CARGO_TARGET_DIR)/release/eddy-bench" $(INSTALLATION)
BENCH = $(BENCH_RUNNER) run $(if $(QUICK),--quick) --output "$(BENCH_OUTPUT)"

bench: build ## the engine beside hand-written dataflows, the whole path; bench-NAME, QUICK=1, ARGS
	@$(BENCH) $(ARGS)

# TPC-H: QUICK=1 looks at correctness alone; ARGS="--scale 1 --churn 50 --query 3".
.PHONY: bench-tpch
bench-tpch: build
	@$(BENCH_RUNNER) tpch $(if $(QUICK),--quick) --output "$(BENCH_OUTPUT)" $(ARGS)

bench-%: build
	@$(BENCH) $* $(ARGS)

server neighbours limits corpus oracle crash snapshots independence installation: server-build ## one layer with ARGS
	@$(RUNNER) $@ $(ARGS)

# Upgrades and dumps lead from each of VERSIONS to later ones, for which the extension is built first.
OTHER_VERSIONS = $(filter-out $(PG_MAJOR),$(VERSIONS))
OTHER_SERVERS = $(foreach version,$(OTHER_VERSIONS),--other "$$(tests/postgresql.sh $(version))=$(CARGO_TARGET_DIR)/release/pg_eddy-$(version).so")
operations: server-build ## standbys, backups, upgrades; VERSIONS="15 16 17 18", ARGS="promotion upgrade"
	@$(foreach version,$(OTHER_VERSIONS),$(MAKE) --no-print-directory compile-server PG=$(version);)
	@$(RUNNER) $@ $(OTHER_SERVERS) $(ARGS)

fuzz chaos: server-build ## queries of a generator as views, disturbances of all kinds at once; MINUTES=60, ARGS="--seed 7"
	@$(RUNNER) $@ $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)
