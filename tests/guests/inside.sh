# SPDX-License-Identifier: MIT OR GPL-2.0-only
# shellcheck shell=sh
# inside.sh [ARGUMENT...]: runs every program in /tests, in order, with these arguments. Each is told from the next by
# lines that the host looks for; what the kernel complained of comes last.
export ONRAMP_BIN=/bin/onramp TERM=dumb
cd /tmp || exit
for program in /tests/*; do
	echo "@begin ${program##*/}"
	timeout --signal=KILL 900 "$program" --test-threads=1 "$@" 2>&1
	# A test that was killed leaves an unfinished line.
	printf '\n@end %s %s\n' "${program##*/}" "$?"
done
echo "@kernel"
dmesg --level=emerg,alert,crit,err,warn
