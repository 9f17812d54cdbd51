#!/bin/sh
# Makes the user of `onramp serve`. No unit is enabled, and nothing is attached.
set -e
case "$1" in
abort-*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers onramp.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ -d /sys/fs/bpf/onramp ]; then
	echo "What is attached keeps its code: \`onramp upgrade\` replaces it with that of this version, under its traffic."
fi
