# SPDX-License-Identifier: MIT OR GPL-2.0-only
# kernels.toml -> one line per kernel: series, suite, package, processor, reason why it may fail
# (or "-"), separated by tabs.
# Reads the part of TOML that the file uses and refuses the rest.

function fail(what) {
	printf "%s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"
	failed = 1
	exit 1
}

function string(text) {
	if (text !~ /^"[^"\\\t]*"$/)
		fail("not a plain string: " text)
	return substr(text, 2, length(text) - 2)
}

function flush() {
	if (!open)
		return
	if (series == "" || suite == "" || package == "" || cpu == "")
		fail("a kernel lacks suite, package, series or cpu")
	printf "%s\t%s\t%s\t%s\t%s\n", series, suite, package, cpu, allowed
}

/^[ \t]*(#.*)?$/ { next }

/^\[\[kernel\]\]$/ {
	flush()
	open = 1
	series = suite = package = cpu = ""
	allowed = "-"
	next
}

!open { fail("outside of [[kernel]]") }

/^series = / { series = string(substr($0, 10)); next }
/^suite = / { suite = string(substr($0, 9)); next }
/^package = / { package = string(substr($0, 11)); next }
/^cpu = / { cpu = string(substr($0, 7)); next }

/^allowed_to_fail = \{ reason = "[^"\\\t]+", date = "[0-9]+-[0-9]+-[0-9]+" \}$/ {
	split($0, part, "\"")
	allowed = part[2] " (since " part[4] ")"
	next
}

{ fail("not understood: " $0) }

END { if (!failed) flush() }
