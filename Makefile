# SPDX-License-Identifier: GPL-2.0-only
# `make run` measures this machine's file systems, `make simulate` simulates 80 cores, `make test` runs
# every test. All set up what they need.

# Make splits names at blanks, and a virtual environment cannot lie below a colon.
ifneq ($(words $(CURDIR))$(findstring :,$(CURDIR)),1)
$(error $(CURDIR) contains a blank or a colon, which make and Python cannot handle; move the clone to another path)
endif

# Environment modules of a cluster set these for another Python.
unexport PYTHONHOME PYTHONPATH
VENV := .venv
# One name for all lines of a recipe, however long it takes to read them.
NOW := $(shell date +%Y%m%d-%H%M%S)
OUTPUT ?= results/quick-$(NOW)
SIMULATED ?= results/simulated-$(NOW)
# A directory is measured where file systems cannot be mounted, as by an ordinary user or in a container.
MEDIA := $$($(VENV)/bin/python -m fscale.system.powers || echo --media dir)

.PHONY: help run simulate test test-unit test-guest test-packages fuzz kills mutants lanefs-torture check build setup setup-apps setup-vm lock clean
.PHONY: packages packages-check packages-test fresh docs man wheel deb generated
# Two installations at once do not go, but objects are compiled on all CPUs, or as -j says.
.NOTPARALLEL:
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

help:
	@echo "make run     set up, run the quick suite on real file systems (10 minutes), write a report"
	@echo "             As root it asks before it installs Debian packages; YES=1 agrees, YES=0 goes on without"
	@echo "make simulate  set up, simulate three workloads on 1 to 80 cores (some minutes), write a report"
	@echo "make test    set up, run every test"
	@echo "make test-unit  run the quick unit tests: no root, guests or network (3 minutes on two idle cores)"
	@echo "make fresh [COMMAND=LINE]  run a line for a shell, by default make run and make test, in a clone below"
	@echo "             /root of a new, minimal Debian 12 root, as a newcomer would (root only; 40 minutes)"
	@echo "make test-guest  set up, boot guests and test them (half an hour), and a machine over ssh (hours)"
	@echo "make test-packages  build the packages in roots of Debian 12 and 13, use and remove them there (root; half an hour)"
	@echo "make fuzz    try 2000 results directories of strangers on the commands that read them (hours)"
	@echo "make kills   kill a run at 200 random moments and see that the machine is put back (root; some ten minutes)"
	@echo "make mutants [ONLY=FILE]  change the code that judges, one place at a time, and see what no unit test notices"
	@echo "             (some 20 minutes on two idle cores, extrapolated)"
	@echo "make lanefs-torture  test lanefs in guests: a million random operations, 2000 bad images, 1500 power cuts"
	@echo "             on each of three kernels (some seven hours on two idle cores, extrapolated; it goes on after Ctrl-C)"
	@echo "make check   set up, run formatters, linters and type checker only"
	@echo "make setup-apps  set up, install the applications that are measured (no mail server is started)"
	@echo "make build   compile the C workloads and the tools of lanefs"
	@echo "make docs    build the site and the man pages in build/docs (two minutes at first)"
	@echo "make wheel   build the package of Python in build/wheel; make deb: those of Debian in build/packages (root)"
	@echo "make generated  write the generated pages of docs/reference and docs/results anew"
	@echo "make lock    pin the Python packages anew"
	@echo "make clean   remove what was built (results/ stays)"

run: setup
	bin/fscale run configs/suites/quick.toml $(MEDIA) --remeasure 0.1 --output $(OUTPUT)
	bin/fscale report $(OUTPUT)

simulate: setup-vm
	bin/fscale simulate --fs tmpfs --workload DRBL,DRBH,MWCM --cores 1,2,4,8,16,32,64,80 \
		--jobs $(shell nproc) --output $(SIMULATED)
	bin/fscale report $(SIMULATED)

# What measures needs the machine to itself. Guests of lanefs measure nothing. Two more workers than
# CPUs: browsers, downloads and child processes are waited for. What fails among so many may have had
# no CPU for longer than it waits: it is run again alone, and the first of them to fail there fails all.
# Code is checked while packages are unpacked.
ALONE := tests/integration
WORKERS := $(shell expr $$(nproc) + 2)
test: setup packages-check
	$(MAKE) check & $(MAKE) packages-test; installed=$$?; wait $$! && exit $$installed
	bin/fscale restore --wait 300 # a CPU that a killed run left offline would be missing to all of them
	$(VENV)/bin/python -m pytest --ignore $(ALONE) --durations 40 --numprocesses $(WORKERS) --dist worksteal || \
		{ test $$? -eq 1 && $(VENV)/bin/python -m pytest --last-failed --last-failed-no-failures none --maxfail 1; }
	$(VENV)/bin/python -m pytest $(ALONE) --durations 40

test-unit: $(VENV)/.installed-dev build
	$(VENV)/bin/python -m pytest tests/unit --ignore tests/unit/lanefs \
		-m 'not root and not live and not guest and not slow' --numprocesses $(WORKERS) --dist worksteal

COMMAND ?= make run && make test
fresh:
	setup/fresh-root.sh '$(subst ','\'',$(COMMAND))'

test-guest: packages-test setup $(VENV)/.installed-dev
	$(VENV)/bin/python -m pytest -m guest

test-packages: packages-test setup $(VENV)/.installed-dev
	$(VENV)/bin/python -m tests.packages

fuzz: packages-test setup $(VENV)/.installed-dev
	FSCALE_FUZZ=2000 $(VENV)/bin/python -m pytest tests/unit/analysis/test_hostile_results.py -k fuzz --timeout 0

kills: packages-test setup $(VENV)/.installed-dev
	FSCALE_KILLS=200 $(VENV)/bin/python -m pytest tests/integration/test_runner_kill.py

mutants: packages-check $(VENV)/.installed-dev
	$(VENV)/bin/python -m tests.mutants $(ONLY)

lanefs-torture: packages-test setup $(VENV)/.installed-dev
	$(VENV)/bin/python -m tests.lanefs.torture

check: packages-check $(VENV)/.installed-dev
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python -m docs.scripts.check
	shellcheck bin/fscale setup/*.sh .ci/run apps/exim/*.sh fscale/vm/init/*.sh fscale/sim/*.sh docs/ci/*.sh

# Sphinx is needed for this alone, so it has a lock and an environment of its own.
DOCS := build/docs
SPHINX := PYTHONPATH=. $(DOCS)/venv/bin/sphinx-build -q -W --keep-going
$(DOCS)/venv/.installed: docs/requirements.lock
	python3 -m venv $(DOCS)/venv
	$(DOCS)/venv/bin/pip install -q --disable-pip-version-check --require-hashes -r docs/requirements.lock
	touch $@

docs: $(DOCS)/venv/.installed generated man
	$(VENV)/bin/python -m docs.scripts.check
	for kind in run cell compare commute conflicts predictions; do \
		bin/fscale schema $$kind > $(DOCS)/schemas/$$kind.schema.json || exit; done
	$(SPHINX) -b html docs $(DOCS)/html
	@echo $(DOCS)/html/index.html

# A page for each command, from the same source as its help. PYTHON is one that can import fscale.
PYTHON := $(VENV)/bin/python
man: $(DOCS)/venv/.installed
	$(PYTHON) -m docs.scripts.reference
	mkdir -p $(DOCS)/schemas # the configuration names it
	$(SPHINX) -b man docs $(DOCS)/man

WHEEL := build/wheel
wheel: $(VENV)/.installed
	rm -rf $(WHEEL)
	$(VENV)/bin/pip wheel -q --no-deps --disable-pip-version-check -w $(WHEEL) .
	@ls $(WHEEL)/*.whl

deb:
	dpkg-checkbuilddeps || { setup/agree.sh these && apt-get update -qq && \
		apt-get build-dep -y -qq --no-install-recommends ./ >/dev/null; }
	rm -rf build/packages
	debian/rules clean binary
	@ls build/packages/*.deb

generated: $(VENV)/.installed build
	$(VENV)/bin/python -m docs.scripts.reference
	$(VENV)/bin/python -m docs.scripts.record
	$(VENV)/bin/python -m docs.scripts.results
	$(MAKE) -C microbench docs

build:
	$(MAKE) $(JOBS) -C microbench
	$(MAKE) $(JOBS) -C apps
	$(MAKE) $(JOBS) -C fscale/lockprofile
	$(MAKE) $(JOBS) -C fscale/calibrate
	$(MAKE) $(JOBS) -C fscale/commute
	$(MAKE) $(JOBS) -C fscale/sim
	$(MAKE) $(JOBS) -C lanefs tools

# Downloads leave CPUs idle, so what needs no Python is compiled meanwhile.
setup: packages
	$(MAKE) $(VENV)/.installed & $(MAKE) build; built=$$?; wait $$! && exit $$built
	$(if $(filter setup,$(MAKECMDGOALS)),@echo "fscale is set up. Type next: bin/fscale doctor; bin/fscale run quick --output results/first")

setup-apps: setup
	setup/install.sh setup/packages-apps.txt
	apps/exim/install.sh

setup-vm: setup
	setup/install.sh setup/packages-vm.txt

packages:
	setup/install.sh setup/packages-run.txt

packages-check:
	setup/install.sh setup/packages-check.txt

packages-test:
	setup/install.sh setup/packages-run.txt setup/packages-check.txt setup/packages-test.txt \
		setup/packages-apps.txt setup/packages-vm.txt
	apps/exim/install.sh

# pip compiles what it installs on one CPU, tests of the packages as well: most of its time.
PIP_INSTALL = $(VENV)/bin/pip install -q --no-compile --disable-pip-version-check --require-hashes -r $<
COMPILE = $(VENV)/bin/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib
$(VENV)/.installed: requirements.lock | packages
	python3 -m venv $(VENV)
	$(PIP_INSTALL)
	$(COMPILE)
	touch $@

# What measures needs none of these.
$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	$(PIP_INSTALL)
	$(COMPILE)
	touch $@

# Versions stay as they are pinned where they can: the first resolution has all packages, and gives
# its versions to both locks. That of development has only what is not in the other one.
UV = $(VENV)/bin/uv pip compile -q --python-version 3.11 --no-emit-index-url --no-annotate --no-header
VERSIONS := build/versions.txt
DEV := pyproject.toml --extra dev --extra dask
lock:
	$(VENV)/bin/pip install -q uv
	mkdir -p build
	grep -hoE '^[a-z0-9._-]+==[^ ]+' requirements.lock requirements-dev.lock > $(VERSIONS)
	$(UV) -o $(VERSIONS) $(DEV)
	$(UV) --generate-hashes -c $(VERSIONS) -o requirements.lock pyproject.toml
	$(UV) --generate-hashes -c $(VERSIONS) $$(sed -n 's/==.*//; /^[a-z]/s/^/--no-emit-package /p' requirements.lock) \
		-o requirements-dev.lock $(DEV)
	sed -i '1i -r requirements.lock' requirements-dev.lock
	$(UV) --generate-hashes -o docs/requirements.lock docs/requirements.in

clean:
	rm -rf build
