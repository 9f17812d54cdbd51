#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# run.sh SDIST [DIRECTORY]: the rows of ../data/picoquic.csv, by picoquic's own simulator, which is built in DIRECTORY (else
# in a temporary one) from the source distribution of aiopquic. README.md says more.
set -euo pipefail

# Of aiopquic-0.6.1.tar.gz.
expected=72579146e0f22859a5a7c197246604fef460b9e1b578a2910156dff7679efd29
# Name, rate in bit/s, delay of each direction in microseconds, bytes of the queue, bytes.
paths=(
	'terrestrial 100000000 15000 375000 50000000'
	'cable 100000000 6000 312500 40000000'
	'leo 275000000 10000 2625000 40000000'
	'geo-tail-drop-100 150000000 300000 11250000 79000000'
	'geo-tail-drop-25 150000000 300000 2812500 79000000'
)
repetitions=5

sdist=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
built=$(realpath -m "${2:-$scratch/built}")
echo "$expected  $sdist" | sha256sum --check --quiet

build() {
	mkdir -p "$built"
	tar -xzf "$sdist" -C "$built" --strip-components 2 aiopquic-0.6.1/third_party/{picoquic,picotls}
	cmake -S "$built/picotls" -B "$built/tls" -DCMAKE_BUILD_TYPE=Release -DWITH_FUSION=OFF
	cmake --build "$built/tls" --target picotls-core picotls-openssl picotls-minicrypto
	cmake -S "$built/picoquic" -B "$built/quic" -DCMAKE_BUILD_TYPE=Release -DWITH_FUSION=OFF \
		-DPTLS_INCLUDE_DIR="$built/picotls/include" \
		-DPTLS_CORE_LIBRARY="$built/tls/libpicotls-core.a" \
		-DPTLS_OPENSSL_LIBRARY="$built/tls/libpicotls-openssl.a" \
		-DPTLS_MINICRYPTO_LIBRARY="$built/tls/libpicotls-minicrypto.a"
	cmake --build "$built/quic" --target pico_sim
}
if [ ! -x "$built/quic/pico_sim" ]; then
	build >&2
fi

# transfer BYTES: microseconds to the end of the connection, and the packets that the server found lost.
transfer() {
	local said
	rm -rf "$scratch/qlog"
	mkdir "$scratch/qlog"
	cat >"$scratch/path.txt" <<-PATH
		main_cc_algo: $control
		main_scenario_text: =b1:*1:397:$1;
		nb_connections: 1
		data_rate_in_gbps: $(awk -v rate="$rate" 'BEGIN { printf "%.6f", rate / 1e9 }')
		latency: $delay
		queue_delay_max: $((queue * 8000000 / rate))
		main_target_time: 600000000
		qlog_dir: $scratch/qlog
	PATH
	said=$("$built/quic/pico_sim" -S "$built/picoquic" "$scratch/path.txt" 2>/dev/null)
	case $said in
	Success*) ;;
	*)
		echo "$path, $control: $said" >&2
		exit 1
		;;
	esac
	echo "$(cut -d, -f3 <<<"$said") $(cat "$scratch"/qlog/*.server.qlog | grep -c '"packet_lost"' || true)"
}

echo path,rate_bps,one_way_us,queue_bytes,bytes,control,repetition,seconds,lost,source
for path in "${paths[@]}"; do
	read -r path rate delay queue bytes <<<"$path"
	for control in cubic bbr newreno; do
		for repetition in $(seq "$repetitions"); do
			read -r begun _ <<<"$(transfer 1)"
			read -r ended lost <<<"$(transfer "$bytes")"
			awk -v from="$begun" -v to="$ended" 'BEGIN { printf "%.3f", (to - from) / 1e6 }' >"$scratch/seconds"
			echo "$path,$rate,$delay,$queue,$bytes,$control,$repetition,$(cat "$scratch/seconds"),$lost,sha256:${expected:0:12}"
		done
	done
done
