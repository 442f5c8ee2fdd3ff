# make run      set up what a run needs and run the main job with the defaults
# make test     set up everything and run every test but the tidy ones, which are of `make check`
# make check    ruff, mypy --strict, import-linter, the tidy tests
# make bench    the benchmarks of benchmarks/, ratios measured in one run, written into docs/performance.md
# make bench-kafka   the reference and Apache Kafka side by side
# make nightly  the long sweeps, and new examples for the laws

.PHONY: install install-dev run test check bench bench-kafka nightly clean
NEMESIS := .venv/bin/nemesis
PYTEST := .venv/bin/python -m pytest
# What is too long for `make test` belongs to `make nightly`.
SLOWEST := --durations=40 --durations-min=3
# Brokers and workers are new interpreters all the time: they read what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE

install:
	@.ci/install

# What development needs beyond a run.
install-dev:
	@.ci/install --dev

run: install
	$(NEMESIS) run partition-controller

check: install-dev
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTEST) tests/tidy -q

# Real clusters wait most of the time, so two share the cores, but not with unit tests; tests/conftest.py says which two.
# On a new machine the image of the nodes takes minutes: it is built meanwhile.
test:
	@.ci/install --tests
	@.venv/bin/python -m tests.e2e.docker_machine & \
	$(PYTEST) -m "not e2e and not nightly" --ignore tests/tidy -n 2 -q $(SLOWEST); code=$$?; wait; exit $$code
	$(PYTEST) -m "e2e and not nightly" -n 2 --dist loadgroup -q $(SLOWEST)

bench: install-dev
	rm -f .bench.jsonl
	.venv/bin/python -m benchmarks --save .bench.jsonl; code=$$?; \
	.venv/bin/python -m benchmarks page .bench.jsonl && exit $$code

bench-kafka: install-dev
	.venv/bin/python -m benchmarks kafka

nightly:
	@.ci/install --tests
	$(PYTEST) -m nightly -q
	$(PYTEST) -m "not e2e and not nightly" -n 2 -q --hypothesis-profile nightly

clean:
	$(NEMESIS) clean
