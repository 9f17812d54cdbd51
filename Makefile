# Everything here installs what it needs (Debian packages, as root or by sudo) and leaves nothing else on the machine.

CARGO ?= cargo
ONRAMP := target/release/onramp

.PHONY: all deps build demo test lint kernels bench clean

all: build

# Debian packages: building, running, and the kernel matrix.
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

bench: build
	$(ONRAMP) bench

clean:
	$(CARGO) clean
