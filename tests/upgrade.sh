#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# upgrade.sh REV [SERIES...]: builds another revision of this repository, has this one take over what that one attached in
# guests, under a thousand flows, and back if that one can. On every kernel of `onramp lab kernel list`, or what is named.
#
# CARGO_TARGET_DIR  where this revision is built; else target/. The other one is built in upgrade/ below it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if [ "$#" = 0 ]; then
	sed -n 's/^# \{0,1\}//; 3,6p' "$0"
	exit 2
fi
target=$(readlink -f "${CARGO_TARGET_DIR:-target}")
revision=$(git rev-parse --verify --short "$1^{commit}")
shift
former=$target/upgrade/onramp-$revision
if [ ! -x "$former" ]; then
	tree=$target/upgrade/tree
	git worktree add --force --detach "$tree" "$revision"
	trap 'git worktree remove --force "$tree"' EXIT
	(cd "$tree" && CARGO_TARGET_DIR=$target/upgrade/target cargo build --release --quiet -p onramp)
	cp "$target/upgrade/target/release/onramp" "$former"
fi

cargo build --release --quiet -p onramp -p onramp-lab-program
program=$(cargo test --release --quiet --no-run -p onramp-tests --test cli_takeover --message-format=json |
	jq -r 'select(.reason == "compiler-artifact" and .target.name == "cli_takeover") | .executable')
series=("$@")
if [ "${#series[@]}" = 0 ]; then
	mapfile -t series < <("$target/release/onramp" --json lab kernel list | jq -r '.kernels[] | select(.release) | .series')
fi
for kernel in "${series[@]}"; do
	echo "from $revision to this revision, on $kernel:"
	"$target/release/onramp" lab guest --kernel "$kernel" --memory 2500 --seconds 4000 \
		--env ONRAMP_REQUIRE=1 --env ONRAMP_BIN=/bin/onramp --env ONRAMP_FORMER=/bin/onramp-former \
		--program sh --program ip --file "$former:/bin/onramp-former" --file "$program:/tests/cli_takeover" \
		-- /tests/cli_takeover --ignored --test-threads=1 --nocapture a_thousand_flows
done
