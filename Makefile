# Everything here installs what it needs (Debian packages, as root or by sudo) and leaves nothing else on the machine.

CARGO ?= cargo
ONRAMP := $(or $(CARGO_TARGET_DIR),target)/release/onramp

# Seconds per algorithm of `make fuzz`.
FUZZ_SECONDS ?= 60

.PHONY: all deps web build book release release-check demo test lint sbom kernels golden fuzz bench reproduce clean

all: build

# Debian packages of what is made: .ci/deps has the groups.
DEPS := build
deps:
	@.ci/deps $(DEPS)

# The page of `onramp serve`, which `onramp` embeds.
web: deps
	@.ci/web

build: web
	$(CARGO) build --release --workspace

# Static programs, packages and images for other machines: target/dist. For both architectures:
# make release ARCHITECTURES="amd64 arm64"
release: DEPS := build release
release: export ARCHITECTURES := $(ARCHITECTURES)
release: deps
	@.ci/oldest
	@.ci/licences
	@.ci/release

# README.md and docs/ as a book: target/book/html/index.html
book: DEPS := build
book: deps
	@.ci/book

# What `make release` has made, installed, run and removed in root file systems of distributions.
release-check: DEPS := build lab release release-check
release-check: export ARCHITECTURES := $(notdir $(wildcard $(or $(CARGO_TARGET_DIR),target)/dist/arm64))
release-check: deps
	@.ci/release-check

# What onramp does, shown in under four minutes.
demo: DEPS := build lab
demo: build
	@.ci/demo $(ONRAMP)

test: DEPS := build lab test page
test: web
	@.ci/test

lint: DEPS := build test
lint: deps
	@.ci/lint

# What the programs are made of: target/sbom/onramp.cdx.json, target/sbom/onramp-lab.cdx.json
sbom: DEPS := build lab
sbom: web
	@.ci/sbom

kernels golden bench reproduce: DEPS := build lab

kernels: build
	@ONRAMP_BIN=$(ONRAMP) tests/kernels/run.sh

# Accepts what the golden results have become. Of the build that `make test` makes: without the tests' crates others have other
# features, and the digests are others.
golden: web
	$(CARGO) build --release --workspace --all-targets
	$(ONRAMP) lab kernel fetch
	tests/golden/make.sh $(ONRAMP)

# Longer than `make test` does: make fuzz FUZZ_SECONDS=600
fuzz: DEPS := build test
fuzz: deps
	@bpf/host/fuzz/run.sh --seconds $(FUZZ_SECONDS)

bench: build
	$(ONRAMP) lab bench

# The sources' claims with real kernel TCP in virtual time: hours. QUICK=--quick: fewer repetitions.
reproduce: build
	$(ONRAMP) lab kernel fetch 6.12
	$(ONRAMP) lab reproduce --all $(QUICK) -o runs/reproduce

clean:
	$(CARGO) clean
