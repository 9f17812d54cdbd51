# shellcheck shell=bash
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Sourced by scripts that have one option, and words.

# options OPTION ARGUMENT...: `option` is 1 if the option is there, and `words` has what is none. For any other option the
# script's head is printed, and the exit code is 2.
# shellcheck disable=SC2034 # used where this is sourced
options() {
	local known=$1 argument
	shift
	option=
	words=()
	for argument in "$@"; do
		case $argument in
		"$known") option=1 ;;
		-*)
			sed -n '3,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0"
			exit 2
			;;
		*) words+=("$argument") ;;
		esac
	done
}
