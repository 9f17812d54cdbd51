#!/bin/sh
# Before the package is removed, all that is attached is detached: without the program nobody could do it. On an upgrade
# everything stays attached. dpkg: "remove" or "upgrade VERSION"; rpm: how many versions remain.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now onramp-apply.service onramp-serve.service >/dev/null 2>&1 || true
fi

# Nothing is pinned: nothing is attached. Settings of `doctor --fix` are pinned, too.
if [ ! -d /sys/fs/bpf/onramp ]; then
	exit 0
fi
if ! /usr/bin/onramp undo; then
	echo "onramp is not removed, because something of it is still attached: see \`onramp status\`, then remove it again" >&2
	exit 1
fi
