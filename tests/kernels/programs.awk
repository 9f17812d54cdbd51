# SPDX-License-Identifier: MIT OR GPL-2.0-only
# awk -f programs.awk [-v record=1] part=budget budget.toml part=recorded programs.tsv part=measured RESULTS...
#
# Compares the PROGRAM lines of RESULTS with the budget and with what is recorded, one RESULT line per kernel and
# algorithm. With record=1 it prints programs.tsv anew instead: kernels that were not measured stay as they are.

function fail(what) {
	printf "%s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"
	failed = 1
	exit 1
}

# Row of a kernel, an algorithm and an operation; "-" and "-" for the kernel's release and the compiler.
function keep(table, kernel, algorithm, operation, one, two) {
	table[kernel, algorithm, operation] = one "\t" two
	if (!((kernel, algorithm, operation) in seen)) {
		seen[kernel, algorithm, operation]
		row[++rows] = kernel "\t" algorithm "\t" operation
	}
}

function complain(text) {
	trouble = trouble (trouble == "" ? "" : "; ") text
}

function check_budget(operation, what, value, limit) {
	limit = (operation, what) in budget ? budget[operation, what] : budget["*", what]
	if (value > limit)
		complain(sprintf("%s %s %d is over the budget of %d", operation, what, value, limit))
}

# `most`: how far apart the smallest may be.
function check_drift(operation, what, value, before, most) {
	if (value > before * (1 + tolerance / 100) + most || value < before * (1 - tolerance / 100) - most) {
		complain(sprintf("%s %s %d, recorded %d", operation, what, value, before))
		stale = 1
	}
}

function check_row(kernel, algorithm, operation, comparable, now, then) {
	if ((kernel, algorithm, operation) in measured) {
		split(measured[kernel, algorithm, operation], now, "\t")
		check_budget(operation, "verified_instructions", now[1])
		check_budget(operation, "jited_bytes", now[2])
	}
	if (!comparable)
		return
	if (!((kernel, algorithm, operation) in measured)) {
		complain(operation " is recorded, but not there")
		stale = 1
	} else if (!((kernel, algorithm, operation) in recorded)) {
		complain(operation " is not recorded")
		stale = 1
	} else {
		split(recorded[kernel, algorithm, operation], then, "\t")
		check_drift(operation, "verified_instructions", now[1], then[1], 0)
		# Where the processor tracks indirect branches, each function begins with four bytes for that.
		check_drift(operation, "jited_bytes", now[2], then[2], 4)
	}
}

part == "budget" && /^[ \t]*(#.*)?$/ { next }
part == "budget" && /^\[[a-z_*]+\]$/ { section = substr($0, 2, length($0) - 2); next }
part == "budget" && /^[a-z_]+ = [0-9_]+$/ {
	gsub("_", "", $3)
	if ($1 == "tolerance_pct")
		tolerance = $3 + 0
	else if (section != "" && ($1 == "verified_instructions" || $1 == "jited_bytes"))
		budget[section, $1] = $3 + 0
	else
		fail("unknown: " $1)
	next
}
part == "budget" { fail("not understood: " $0) }

part == "recorded" && (/^#/ || /^kernel\t/) { next }
part == "recorded" { keep(recorded, $1, $2, $3, $4, $5); next }

part == "measured" && $1 == "PROGRAM" {
	keep(measured, $2, $3, $4, $5, $6)
	kernels[$2]
	algorithms[$2, $3]
}

function release(row, part) {
	return split(row, part, "\t") ? part[1] " by clang " part[2] : "nothing"
}

function print_recorded(i, key) {
	print "# What the verifier and the compiler of each kernel make of each operation: tests/kernels/run.sh --record"
	print "# Rows with - name the kernel's release and the version of clang."
	print "kernel\talgorithm\toperation\tverified_instructions\tjited_bytes"
	for (i = 1; i <= rows; i++) {
		split(row[i], key, "\t")
		if ((key[1], key[2], key[3]) in measured)
			print row[i] "\t" measured[key[1], key[2], key[3]]
		else if (!(key[1] in kernels))
			print row[i] "\t" recorded[key[1], key[2], key[3]]
	}
}

END {
	if (failed)
		exit 1
	if (record) {
		print_recorded()
		exit
	}
	for (i = 1; i <= rows; i++) {
		split(row[i], key, "\t")
		kernel = key[1]
		algorithm = key[2]
		if (!(kernel in kernels))
			continue
		same = recorded[kernel, "-", "-"] == measured[kernel, "-", "-"]
		if (algorithm == "-") {
			if (!same)
				print "NOTE " kernel ": recorded is " release(recorded[kernel, "-", "-"]) ", this is " \
					release(measured[kernel, "-", "-"]) ": only the budget counts"
			continue
		}
		trouble = ""
		check_row(kernel, algorithm, key[3], same)
		if (!((kernel, algorithm) in detail))
			order[++count] = kernel " " algorithm
		if (trouble != "")
			detail[kernel, algorithm] = detail[kernel, algorithm] (detail[kernel, algorithm] == "" ? "" : "; ") trouble
		else
			detail[kernel, algorithm] = detail[kernel, algorithm]
	}
	for (i = 1; i <= count; i++) {
		split(order[i], key, " ")
		text = detail[key[1], key[2]]
		printf "RESULT %s programs %s %s\n", order[i], text == "" ? "ok" : "fail", text
	}
	if (stale)
		print "STALE programs.tsv is out of date: tests/kernels/run.sh --record, and look at what changed"
}
