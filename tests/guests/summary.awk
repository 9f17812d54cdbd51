# SPDX-License-Identifier: MIT OR GPL-2.0-only
# The log of a guest -> a line for each program that was expected there: kernel, program, counts, seconds of this
# machine; after it what a program printed that failed.

function say(name, passed, failed, skipped, seconds) {
	printf "%-5s %-18s %3d passed, %d failed, %d skipped %4d s\n", kernel, name, passed, failed, skipped, seconds
}

$1 == "@begin" {
	name = $2
	began = $NF
	output = ""
	passed = failed = skipped = 0
	summed = 0
	next
}

$1 == "@end" {
	done[name] = 1
	# A program that was killed, or ended before its own summary, has failed as a whole.
	if (!summed || ($3 != 0 && failed == 0))
		failed++
	say(name, passed, failed, skipped, $NF - began)
	if (failed > 0)
		printf "%s", output
	name = ""
	next
}

$1 == "@kernel" {
	after = 1
	next
}

name != "" {
	output = output "\t" $0 "\n"
	if ($0 ~ /^test result: /) {
		for (i = 1; i < NF; i++) {
			if ($(i + 1) == "passed;") passed += $i
			if ($(i + 1) == "failed;") failed += $i
		}
		summed = 1
	}
	if ($0 ~ /SKIP: /)
		skipped++
}

# What the kernel complained of, and what the runner said.
name == "" && /WARNING:|BUG:|Oops|refcount_t|rcu.*stall|^error: / {
	complaints = complaints "\t" $0 "\n"
}

END {
	count = split(expected, programs, " ")
	for (i = 1; i <= count; i++)
		if (!(programs[i] in done)) {
			say(programs[i], 0, 1, 0, 0)
			printf "\tthe guest broke off before it ended\n"
			if (programs[i] == name)
				printf "%s", output
			broke = 1
		}
	if (complaints != "") {
		if (!broke)
			say("kernel_log", 0, 1, 0, 0)
		printf "%s", complaints
	}
}
