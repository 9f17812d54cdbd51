#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# make.sh ONRAMP: makes the golden results anew: every algorithm and the kernel's own controls over some links, small
# enough to be made again at every change. `onramp lab verify tests/golden/*.json` compares.
set -euo pipefail
onramp=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")"

arms=cubic,bbr,ramp,plain,fixed:exit_window_bytes=1000000,hystart,hystartpp,best,search,threshold,spacing,inflight

# golden KERNEL PROFILE BYTES NAME
golden() {
	local runs
	runs=$(mktemp -d)
	"$onramp" lab compare --kernel "$1" --profile "$2" --bytes "$3" --arms "$arms" --repetitions 1 \
		--output "$runs" --json |
		# What differs from one machine to another.
		jq 'del(.arms[].runs[].host_cpu_seconds)' >"$runs/result"
	mv "$runs/result" "$4.json"
	rm -rf "$runs"
}

# The other kernels: over one link, which shows where they differ.
golden 6.1 geo 1000000 6.1-geo
golden 7.2 geo 1000000 7.2-geo
golden 6.12 geo 3000000 6.12-geo
golden 6.12 geo 100000 6.12-short
golden 6.12 leo 3000000 6.12-leo
golden 6.12 bod 200000 6.12-bod
golden 6.12 terrestrial 3000000 6.12-terrestrial
