#!/usr/bin/awk -f
# What an output says of tests: three lines, passed, failed and skipped.

# libtest's summary of a program.
/^test result: / {
	for (i = 1; i < NF; i++) {
		if ($(i + 1) == "passed;") passed += $i
		if ($(i + 1) == "failed;") failed += $i
	}
}

/SKIP: / { left_out++ }

# The last line of the project's own scripts, which have counted their SKIP lines.
/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
	passed += $1
	failed += $3
	skipped += $5
	counted = 1
}

END {
	print passed + 0
	print failed + 0
	print skipped + (counted ? 0 : left_out)
}
