#!/usr/bin/awk -f
# What of a test's output is shown as it comes: nothing of programs in which all passed, and of what libtest says only
# the lines with SKIP, because what failed comes at the end.
/^running [0-9]+ tests?$/ { inside = 1 }
/^error/ { inside = 0 }
/^(all doctests ran in .*|test: .*, ignore_message: .*|)$/ { next }
/[0-9]+ passed, 0 failed, 0 skipped +[0-9]+ s$/ { next }
/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { next }
!inside || /SKIP: / {
	print
	fflush()
}
/^test result: / { inside = 0 }
