#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# guests.sh [--minutes] [SERIES...] [PROGRAM...]: the tests that take a kernel, in guests: on every kernel of `onramp lab
# kernel list`, or what is named. They are the tests that are ignored on the host; a module
# `child` has what other tests start, a module `minutes` what runs only when it is asked for.
#
# CARGO_TARGET_DIR  where programs are built, and logs go, below guests/; else target/
# JOBS              guests at once; else one for each processor
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=tests/options.sh
. tests/options.sh
options --minutes "$@"
target=${CARGO_TARGET_DIR:-target}
work=$target/guests
onramp=$target/release/onramp
lab=$(realpath "$target/release/onramp-lab")
jobs=${JOBS:-$(nproc)}
# The kernel on which everything runs; tests/guests/once says what runs there alone, unless its program is named.
once=6.12
# Programs that a kernel cannot run: the witness is registered by a link, which there is from 6.4 on; haproxy takes the
# instruction that only the processor of 7.2 has (lab/src/guest/kernels.toml).
declare -A without=([6.1]=" hystart_witness select_haproxy " [6.12]=" select_haproxy ")
# Modules of the kernel, and programs that tests start.
modules=(tcp_bbr tcp_dctcp sch_fq sch_netem)
programs=(
	bash cat chmod crun curl dmesg env false head id ip iperf3 kill ls mkdir mount nsenter prlimit readlink rm rmdir seq setpriv
	setsid sh sleep socat ss stty sysctl systemctl tc tcpdump test timeout touch true umount unshare
)
# These are looked for at their places.
files=(
	"$target/servers/nginx:/usr/sbin/nginx" "$target/servers/haproxy:/usr/sbin/haproxy"
	/usr/lib/systemd/systemd
	/usr/lib/systemd/system/{basic,local-fs,multi-user,network-pre,paths,slices,sockets,swap,sysinit,timers}.target
	/usr/sbin/apache2 /usr/lib/apache2/modules/mod_authz_core.so /usr/lib/apache2/modules/mod_mpm_event.so
)
# What systemd starts units by, from 254 on.
if [ -e /usr/lib/systemd/systemd-executor ]; then
	files+=(/usr/lib/systemd/systemd-executor)
fi

if [ -n "$option" ]; then which=(minutes::); else which=(--skip minutes::); fi
series=()
wanted=()
for word in "${words[@]}"; do
	case $word in
	[0-9]*) series+=("$word") ;;
	*) wanted+=("$word") ;;
	esac
done
which=(--ignored --skip child:: "${which[@]}")

missing=$(tests/guests/missing.sh "${programs[@]}" "${files[@]}")
if [ -n "$missing" ]; then
	echo "SKIP: guests: $missing"
	if [ "${ONRAMP_REQUIRE:-}" = 1 ]; then
		echo "0 passed, 1 failed, 0 skipped"
		exit 1
	fi
	echo "0 passed, 0 failed, 1 skipped"
	exit
fi

mkdir -p "$work"
rm -rf "$work"/*.log "$work"/programs "$work"/objects
mkdir "$work/programs" "$work/objects"
cargo build --release --quiet --workspace --all-targets --message-format=json |
	jq -r 'select(.reason == "compiler-artifact" and .profile.test and .executable) | "\(.target.name) \(.executable)"' \
		>"$work/built"
while read -r name executable; do
	if [ "${#wanted[@]}" = 0 ] || [[ " ${wanted[*]} " == *" $name "* ]]; then
		if "$executable" "${which[@]}" --list --format terse | grep ': test$' >/dev/null; then
			ln -s "$executable" "$work/programs/$name"
		fi
	fi
done <"$work/built"
while read -r name executable; do
	"$executable" --ignored --list --format terse | sed -n "s/^\(.*\): test\$/$name \1/p"
done <"$work/built" >"$work/tests"
unknown=$(awk 'NR == FNR { known[$0]; known[$1]; next } !/^#/ && !($0 in known)' "$work/tests" tests/guests/once)
if [ -n "$unknown" ]; then
	printf 'tests/guests/once names what is no test of a guest: %s\n' "$unknown" >&2
	exit 2
fi
for name in "${wanted[@]}"; do
	if [ ! -e "$work/programs/$name" ]; then
		echo "no program $name has tests for a guest" >&2
		exit 2
	fi
done
if [ "${#series[@]}" = 0 ]; then
	# The one that takes longest begins first, so that no processor waits for it in the end.
	mapfile -t series < <("$onramp" --json lab kernel list |
		jq --arg once "$once" -r '[.kernels[] | select(.release) | .series] | sort_by(. != $once)[]')
fi

# Algorithms from outside the tree, for tests/outside_kernel.rs: guests have no compiler. One writes where the verifier does not allow it.
(
	cd "$work/objects"
	for name in mine other wild; do "$lab" new "$name" --quiet; done
	sed -i 's/\*state = (struct wild){ 0 };/((u32 *)state)[state->unused] = 1;/' wild.h
	for name in mine other wild; do "$lab" build "$name.h" --quiet; done
	rm ./*.h ./*.c
)
mkdir "$work/objects/published"
for test in lab/examples/*_test.c; do
	name=$(basename "$test" _test.c)
	"$lab" build "lab/examples/$name.h" -o "$work/objects/published/$name.o" --quiet
done

printf 'root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n' >"$work/passwd"
printf 'root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n' >"$work/group"
printf '127.0.0.1 localhost\n' >"$work/hosts"

# guest SERIES PART PROGRAM...: one guest; its log has the time at which each program began and ended.
guest() {
	local kernel=$1 log=$work/$1-$2.log name line
	local arguments=(--kernel "$kernel" --memory 2500 --seconds 4000 --env "ONRAMP_REQUIRE=1")
	shift 2
	if [ "$kernel" != "$once" ] && [ "${#wanted[@]}" = 0 ]; then
		arguments+=(--file tests/guests/once:/once)
	fi
	for name in "${modules[@]}"; do arguments+=(--module "$name"); done
	for name in "${programs[@]}"; do arguments+=(--program "$name"); done
	for name in "${files[@]}" "$work"/{passwd,group,hosts}; do
		case $name in
		"$work"/*) arguments+=(--file "$name:/etc/${name##*/}") ;;
		*) arguments+=(--file "$name") ;;
		esac
	done
	for name in "$@"; do
		arguments+=(--file "$(readlink "$work/programs/$name"):/tests/$name")
	done
	for name in "$work"/objects/{,published/}*.o; do arguments+=(--file "$name:/objects${name#"$work/objects"}"); done
	arguments+=(--file "tests/guests/inside.sh:/inside.sh")
	"$onramp" lab guest "${arguments[@]}" -- sh /inside.sh "${which[@]}" > >(stamp "$log") 2>&1 &
	child=$!
	trap 'kill "$child" 2>/dev/null' TERM
	wait "$child" || true
}

# stamp LOG: what comes in, with the time at the end of the lines that begin and end a program.
stamp() {
	local line
	while IFS= read -r line; do
		case $line in
		@*) printf '%s %s\n' "$line" "$EPOCHSECONDS" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done >"$1"
}

# Programs in two halves for each kernel, so that no processor waits for the last kernel: those that took longest last
# time are dealt out first; where there was no last time here, by the seconds in tests/guests.
if [ ! -s "$work/seconds" ]; then
	cp tests/guests/seconds "$work/seconds"
fi
mapfile -t names < <(ls "$work/programs")

# deal SERIES: the programs of both halves, a line each.
deal() {
	local name
	for name in "${names[@]}"; do
		if [[ "${without[$1]:-}" == *" $name "* ]]; then
			continue
		elif [ "$1" = "$once" ] || [ "${#wanted[@]}" -gt 0 ] || ! grep -qx "$name" tests/guests/once; then
			echo "$name"
		fi
	done | awk -v kernel="$1" -v past="$work/seconds" '
		BEGIN { while ((getline line < past) > 0) { split(line, word, " "); if (word[1] == kernel) seconds[word[2]] = word[3] } }
		{ print ($1 in seconds ? seconds[$1] : 10), $1 }' | sort -k 1,1nr -k 2 |
		awk '{ half = load[1] <= load[2] ? 1 : 2; load[half] += $1; list[half] = list[half] " " $2 }
			END { print list[1]; print list[2] }'
}
declare -A dealt
for kernel in "${series[@]}"; do
	mapfile -t halves < <(deal "$kernel")
	dealt[$kernel-1]=${halves[0]}
	dealt[$kernel-2]=${halves[1]}
done

children=()
# shellcheck disable=SC2317 # called by the trap
end_children() {
	for child in "${children[@]}"; do
		kill "$child" 2>/dev/null || true
	done
}
trap end_children EXIT
trap 'exit 130' INT TERM
running=0
for kernel in "${series[@]}"; do
	for part in 1 2; do
		read -r -a half <<<"${dealt[$kernel-$part]}"
		if [ "${#half[@]}" -gt 0 ]; then
			if [ "$running" -ge "$jobs" ]; then
				wait -n
				running=$((running - 1))
			fi
			guest "$kernel" "$part" "${half[@]}" &
			children+=("$!")
			running=$((running + 1))
		fi
	done
done
wait
children=()

for kernel in "${series[@]}"; do
	for part in 1 2; do
		awk -v kernel="$kernel" -v expected="${dealt[$kernel-$part]}" -f tests/guests/summary.awk \
			"$(ls "$work/$kernel-$part.log" 2>/dev/null || echo /dev/null)"
	done
done | tee "$work/summary"
awk 'NR == FNR { seconds[$1 " " $2] = $3; next }
	/^[0-9.]+ +[a-z_]+ +[0-9]+ passed/ { seconds[$1 " " $2] = $(NF - 1) }
	END { for (run in seconds) print run, seconds[run] + 0 }' "$work/seconds" "$work/summary" | sort >"$work/seconds.new"
mv "$work/seconds.new" "$work/seconds"
awk '/^[0-9.]+ +[a-z_]+ +[0-9]+ passed/ { passed += $3; failed += $5; skipped += $7 }
	END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }' "$work/summary"
