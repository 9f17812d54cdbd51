#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# missing.sh PROGRAM...: why tests cannot run in guests here, and the command that would change that; nothing if they can.
set -euo pipefail

if [ "$(uname -m)" != x86_64 ]; then
	echo "guests are x86_64, this machine is $(uname -m)"
	exit
fi
declare -A package=(
	[crun]=crun [curl]=curl [iperf3]=iperf3 [ip]=iproute2 [socat]=socat [ss]=iproute2 [strace]=strace [tc]=iproute2 [jq]=jq [qemu-system-x86_64]=qemu-system-x86
)
packages=()
for program in qemu-system-x86_64 jq "$@"; do
	if ! PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && [ ! -e "${program%%:*}" ]; then
		case $program in
		*/servers/*)
			echo "missing: ${program%%:*}, which .ci/deps unpacks"
			exit
			;;
		*apache2*) packages+=(apache2-bin) ;;
		*systemd* | systemctl) packages+=(systemd) ;;
		*) packages+=("${package[$program]:-util-linux}") ;;
		esac
	fi
done
if [ "${#packages[@]}" -gt 0 ]; then
	echo "missing: apt-get install $(printf '%s\n' "${packages[@]}" | sort -u | tr '\n' ' ')"
fi
