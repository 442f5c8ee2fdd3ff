# make run      set up everything and run the main job with the defaults
# make test     set up everything and run every test
# make check    ruff, mypy --strict, import-linter
# make bench    the benchmarks of benchmarks/, ratios measured in one run
# make nightly  the long sweeps

.PHONY: install run test check bench nightly clean
NEMESIS := .venv/bin/nemesis
PYTEST := .venv/bin/python -m pytest

install:
	@.ci/install

run: install
	$(NEMESIS) run partition-controller

check: install
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

# Unit tests share the cores; a real cluster wants them for itself.
test:
	@.ci/install --tests
	$(PYTEST) -m "not e2e and not nightly" -n 2 -q
	$(PYTEST) -m "e2e and not nightly" -q

bench: install
	.venv/bin/python -m benchmarks

nightly:
	@.ci/install --tests
	$(PYTEST) -m nightly -q

clean:
	$(NEMESIS) clean
