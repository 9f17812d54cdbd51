#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# paths.sh [--quick] [PROFILE...]: records kernel TCP over profiles, fits a path to each recording, and compares times over the
# path with those of kernel TCP over the profile. A row of CSV for each recording; the last line counts. A path that is given is
# right if cubic and ramp take as long within a tenth, and in the same order unless they differ by less than a fiftieth. A recording
# of a run that is not valid does not count. PROFILE is a name, or the path of a file.
# --quick: over a few profiles, as `make test` does.
#
# BYTES             size of transfers; else 10M, and 2M over bod
# CARGO_TARGET_DIR  where programs are built, and runs go, below paths/; else target/
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=tests/options.sh
. tests/options.sh
options --quick "$@"
target=$(readlink -f "${CARGO_TARGET_DIR:-target}")
lab=$target/release/onramp-lab
work=$target/paths
quick=$option
profiles=("${words[@]}")
if [ "${#profiles[@]}" = 0 ] && [ -n "$quick" ]; then
	profiles=(cable geo leo-handover terrestrial)
elif [ "${#profiles[@]}" = 0 ]; then
	mapfile -t profiles < <(basename -s .toml profiles/*.toml)
fi

# compare DIR PROFILE BYTES OPTION...: one run of each arm; the result is DIR.json. 5: a run was not measured in full.
compare() {
	local directory=$1 profile=$2 bytes=$3 status=0
	shift 3
	rm -rf "$directory"
	"$lab" --quiet --json compare --profile "$profile" --bytes "$bytes" -n 1 -o "$directory" "$@" >"$directory.json" || status=$?
	if [ "$status" != 0 ] && [ "$status" != 5 ] && [ ! -s "$directory.json" ]; then
		exit 1
	fi
}

# row PROFILE BYTES ARM NUMBER: the path of the recording of this arm, which is the run of this number.
row() {
	local profile=$1 bytes=$2 arm=$3 recording=$work/$1-recorded/$4-$3/recording status=0
	rm -f "$work/fitted.toml"
	"$lab" --quiet --json sim path "$recording" --bytes "$bytes" --write-profile "$work/fitted.toml" \
		>"$work/path.json" 2>"$work/path.err" || status=$?
	case $status in
	0)
		"$lab" --quiet --json sim compare --profile "$work/fitted.toml" --bytes "$bytes" --arms cubic,ramp -n 1 >"$work/simulated.json"
		;;
	5) echo '{}' >"$work/simulated.json" ;;
	*)
		cat "$work/path.err" >&2
		return
		;;
	esac
	jq -n -r --arg profile "$profile" --arg arm "$arm" --slurpfile kernel "$work/$profile-kernel.json" \
		--slurpfile recorded "$work/$profile-recorded.json" --slurpfile path "$work/path.json" \
		--slurpfile simulated "$work/simulated.json" '
		def seconds($of; $name): [$of[0].arms[]? | select(.arm == $name) | .runs[0] | select(.valid) | .seconds][0];
		# Of a path that is not given, as the check has it.
		def fitted($name): seconds($simulated; $name)
			// [$path[0].checked.arms[] | select(.arm == $name) | .seconds][-1];
		def order($one; $other): if ($one - $other | fabs) <= 0.02 * ([$one, $other] | min) then 0 elif $one < $other then -1 else 1 end;
		def near($real; $made): ($made / $real - 1 | fabs) <= 0.1;
		($path[0].checked.disagreements | length == 0) as $given |
		[seconds($kernel; "cubic"), fitted("cubic"), seconds($kernel; "ramp"), fitted("ramp")] as [$c, $fc, $r, $fr] |
		(if any($c, $fc, $r, $fr; . == null) then null
			else near($c; $fc) and near($r; $fr) and order($c; $r) * order($fc; $fr) >= 0 end) as $right |
		([$recorded[0].arms[] | select(.arm == $arm) | .runs[0].valid][0]) as $valid |
		[$profile, $kernel[0].bytes, $arm, $valid,
			($c, $fc, $r, $fr | if . == null then "" else . * 1000 | round / 1000 end),
			(if $right == null or ($valid | not) then "unknown" elif $given then (if $right then "given" else "given, wrong" end)
				elif $right then "refused though right" else "refused" end),
			([$path[0].checked.disagreements[].kind] | unique | join(" "))] | @csv'
}

mkdir -p "$work"
echo "profile,bytes,recorded,valid,cubic_seconds,cubic_fitted_seconds,ramp_seconds,ramp_fitted_seconds,verdict,disagreements"
for file in "${profiles[@]}"; do
	profile=$(basename -s .toml "$file")
	bytes=${BYTES:-$([ "$profile" = bod ] && echo 2M || echo 10M)}
	compare "$work/$profile-kernel" "$file" "$bytes" --arms cubic,ramp
	compare "$work/$profile-recorded" "$file" "$bytes" --arms ramp,hystart --record
	row "$profile" "$bytes" ramp 000
	row "$profile" "$bytes" hystart 001
done | tee "$work/rows.csv"
awk '/"given"/ { given++ } /"given, wrong"/ { wrong++ } /"unknown"/ { unknown++ } { all++ }
	END {
		# What refuses all is never wrong either, and worth nothing.
		if (given * 5 < all) wrong++
		printf "%d of %d paths given\n%d passed, %d failed, %d skipped\n", given + wrong, all, all - wrong - unknown, wrong, unknown
		exit wrong > 0
	}' "$work/rows.csv"
