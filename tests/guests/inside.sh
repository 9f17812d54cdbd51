# SPDX-License-Identifier: MIT OR GPL-2.0-only
# shellcheck shell=sh
# inside.sh [ARGUMENT...]: runs every program in /tests, in order, with these arguments, but for the tests that /once names,
# if it is there. Each is separated from the next by lines that the host looks for; what the kernel complained of comes last.
export ONRAMP_BIN=/bin/onramp TERM=dumb
cd /tmp || exit
[ -e /once ] || : >/once
for program in /tests/*; do
	name=${program##*/}
	echo "@begin $name"
	(
		while read -r of test; do
			if [ "$of" = "$name" ]; then
				set -- "$@" --skip "$test"
			fi
		done </once
		exec timeout --signal=KILL 900 "$program" --test-threads=1 "$@" 2>&1
	)
	# A test that was killed leaves an unfinished line.
	printf '\n@end %s %s\n' "$name" "$?"
done
echo "@kernel"
dmesg --level=emerg,alert,crit,err,warn
