# SPDX-License-Identifier: MIT OR GPL-2.0-only
# shellcheck shell=sh
# Result lines, and steps that end in one. Sourced.

# A line for the host: algorithm (or "-"), step, ok or fail, detail.
result() {
	echo "RESULT $KERNEL $1 $2 $3 $(echo "$4" | tr "\n" " " | cut -c 1-300)"
}

# step ALGORITHM STEP COMMAND...: the command decides, its last line of output is the detail.
step() {
	step_algorithm=$1
	step_name=$2
	shift 2
	echo "+ $*"
	step_status=0
	timeout 60 "$@" >/tmp/step.out 2>/tmp/step.err || step_status=$?
	cat /tmp/step.out /tmp/step.err
	if [ "$step_status" = 0 ]; then
		result "$step_algorithm" "$step_name" ok "$(tail -n 1 /tmp/step.out)"
	else
		result "$step_algorithm" "$step_name" fail "exit $step_status: $(cat /tmp/step.err /tmp/step.out | head -n 3)"
		return 1
	fi
}
