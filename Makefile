# Everything here installs what it needs (Debian packages, as root or by sudo) and leaves nothing else on the machine.

CARGO ?= cargo
ONRAMP := $(or $(CARGO_TARGET_DIR),target)/release/onramp

# Runs at once of `make reproduce`.
JOBS ?= 1

# Seconds per algorithm of `make fuzz`.
FUZZ_SECONDS ?= 60

.PHONY: all deps build demo test lint kernels fuzz bench reproduce clean

all: build

# Debian packages: building, running, fuzzing, and the kernel matrix.
deps:
	@.ci/deps

build: deps
	$(CARGO) build --release --workspace

# The main job for all to see, in under four minutes.
demo: build
	@.ci/demo $(ONRAMP)

test: deps
	@.ci/test

lint: deps
	@.ci/lint

kernels: build
	@ONRAMP_BIN=$(ONRAMP) tests/kernels/run.sh

# Longer than `make test` does: make fuzz FUZZ_SECONDS=600
fuzz: deps
	@bpf/host/fuzz/run.sh --seconds $(FUZZ_SECONDS)

bench: build
	$(ONRAMP) bench

# The sources' claims with real kernel TCP: hours, on a machine that is idle. QUICK=--quick: about an hour. JOBS: runs at once.
reproduce: build
	$(ONRAMP) lab reproduce --all $(QUICK) --jobs $(JOBS) -o runs/reproduce

clean:
	$(CARGO) clean
