#!/usr/bin/awk -f
# What an output says of what failed, in few lines: a failed test's name, where it panicked and with what, the lines of
# the project's own scripts that begin with FAIL, and errors of tools. Nothing of the kind: the last lines.

function keep(line) {
	if (++kept <= 40)
		print "  " substr(line, 1, 300)
}

/^[ \t]*thread '.*' (\([0-9]+\) )?panicked at / { following = 4 }
following > 0 {
	following--
	keep($0)
	next
}
/^[ \t]*test .* \.\.\. FAILED$/ || /^FAIL/ || /^[ \t]*(error|warning)(\[[^\]]*\])?: / || / [1-9][0-9]* failed, / || /the guest broke off/ {
	keep($0)
	next
}
{ last[NR % 10] = $0 }

END {
	for (i = NR - 9; kept == 0 && i <= NR; i++)
		if (i > 0)
			print "  " substr(last[i % 10], 1, 300)
	if (kept > 40)
		print "  and " kept - 40 " lines more"
}
