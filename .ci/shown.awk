#!/usr/bin/awk -f
# What of a test's output is shown as it comes. Of what libtest says, only the lines with SKIP: what failed comes at the end.
/^running [0-9]+ tests?$/ { inside = 1 }
/^error/ { inside = 0 }
(!inside || /SKIP: /) && !/^(all doctests ran in .*|test: .*, ignore_message: .*|[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped|)$/ {
	print
	fflush()
}
/^test result: / { inside = 0 }
