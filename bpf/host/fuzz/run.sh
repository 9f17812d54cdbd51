#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh [NAME...]                      the corpus and a fixed number of inputs from a fixed seed; part of `make test`
# run.sh --seconds N [NAME...]          N seconds each, from another seed every time; what is new is kept in the
#                                       build directory; `make fuzz`
# run.sh --minimise [NAME...]           makes the corpus of all that is kept: the fewest inputs that reach as much
# run.sh --reproduce NAME FILE          one input, every call shown
#
# NAME: an algorithm of the registry, or a start, such as start-fast; without, all of them. The corpus is corpus.tar.xz, a directory
# for each. CLANG names the compiler (clang-19); CARGO_TARGET_DIR is where the targets and new inputs go, below fuzz/; else
# target/.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
build=${CARGO_TARGET_DIR:-$here/../../../target}/fuzz
archive=$here/corpus.tar.xz
clang=${CLANG:-clang-19}
# Inputs per algorithm or start in a bounded run: seconds, with the sanitizers on.
declare -A runs=([algorithms]=100000 [starts]=20000)
# Bytes of an input: some hundred steps, each up to 64 ACKs.
options=(-max_len=400 -timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=0)

usage() {
	sed -n 's/^# \{0,1\}//; 3,11p' "$0" >&2
	exit 2
}

mode=bounded
seconds=
case ${1:-} in
--seconds)
	mode=timed
	seconds=${2:-}
	[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage
	shift 2
	;;
--minimise | --reproduce)
	mode=${1#--}
	shift
	;;
-*) usage ;;
esac

mkdir -p "$build"
build=$(readlink -f "$build")
# -O1 keeps what the sanitizers look for. Unsigned numbers wrap where they are meant to; everything else that the
# language leaves undefined ends the run.
compile=("$clang" -std=gnu11 -O1 -g -Wall -Wextra -Werror
	-fsanitize=fuzzer -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
if ! "${compile[@]}" -x c - -o "$build/none" <<<'int LLVMFuzzerTestOneInput(void) { return 0; }' \
	>"$build/compile.log" 2>&1; then
	echo "SKIP fuzz: $clang cannot make a fuzz target (apt-get install clang-19 libclang-rt-19-dev):" \
		"$(tail -n 1 "$build/compile.log")"
	exit
fi
# Which target has each name.
declare -A targets
known=()
for target in algorithms starts; do
	"${compile[@]}" "$here/$target.c" -o "$build/$target"
	while read -r name; do
		targets[$name]=$target
		known+=("$name")
	done < <("$build/$target")
done
for name in "$@"; do
	[[ -v targets[$name] || $mode = reproduce ]] || {
		echo "run.sh: $name is none of ${known[*]}" >&2
		exit 2
	}
done

if [ "$mode" = reproduce ]; then
	[[ $# = 2 && -v targets[$1] ]] || usage
	ONRAMP_FUZZ_NAME=$1 ONRAMP_FUZZ_TRACE=1 exec "$build/${targets[$1]}" "${options[@]}" "$2"
fi

unpacked=$build/archive
rm -rf "$unpacked"
mkdir "$unpacked"
tar -xf "$archive" -C "$unpacked"

wanted=("$@")
[ "$#" -gt 0 ] || wanted=("${known[@]}")

# fuzz ARGUMENTS...: runs the target of one name. A broken one leaves its input in $crashes.
fuzz() {
	"$build/$target" "${options[@]}" -artifact_prefix="$crashes/" "$@" >"$log" 2>&1
}

broken=0
for name in "${wanted[@]}"; do
	export ONRAMP_FUZZ_NAME=$name
	target=${targets[$name]}
	corpus=$unpacked/$name
	kept=$build/corpus/$name
	crashes=$build/crashes/$name
	log=$build/$name.log
	scratch=$build/scratch
	rm -rf "$scratch"
	mkdir -p "$corpus" "$kept" "$crashes" "$scratch"
	begin=$SECONDS
	status=0
	case $mode in
	bounded) fuzz -runs="${runs[$target]}" -seed=1 "$scratch" "$corpus" || status=$? ;;
	timed) fuzz -max_total_time="$seconds" "$kept" "$corpus" || status=$? ;;
	minimise)
		fuzz -merge=1 -use_counters=0 "$scratch" "$kept" "$corpus" || status=$?
		if [ "$status" = 0 ]; then
			rm -f "$corpus"/*
			cp "$scratch"/* "$corpus/"
		fi
		;;
	esac
	if [ "$status" = 0 ]; then
		echo "fuzz $(grep -a -m 1 "^$name reached" "$log" || echo "$name"), $((SECONDS - begin)) s," \
			"$(find "$corpus" -type f | wc -l) inputs in its corpus"
		continue
	fi
	broken=1
	echo "FAIL fuzz $name (exit $status):"
	grep -a -A 3 -e '^BROKEN' -e 'runtime error:' -e 'ERROR: .*Sanitizer' "$log" | head -n 12 || tail -n 12 "$log"
	input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
	echo "log: $log"
	[ -z "$input" ] || echo "reproduce: bpf/host/fuzz/run.sh --reproduce $name $input"
done
if [ "$mode" = minimise ] && [ "$broken" = 0 ]; then
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$unpacked" -cJf "$archive" .
fi
rm -rf "$build/scratch" "$unpacked"
[ "$broken" = 0 ]
