# SPDX-License-Identifier: MIT OR GPL-2.0-only
# RESULT lines -> one row per kernel and algorithm, one column per step, then the detail of what failed.

$1 != "RESULT" { next }

{
	row = $2 "\t" $3
	if (!(row in rows)) {
		rows[row] = ++height
		row_name[height] = row
	}
	step = $3 == "-" ? "" : $4
	if (step != "" && !(step in columns)) {
		columns[step] = ++width
		column_name[width] = step
	}
	cell[row, $4] = $5
	if (step == "")
		host_steps[row] = host_steps[row] sprintf("  %s %s", $4, $5)
	if ($5 != "ok") {
		detail = $0
		sub(/^RESULT /, "", detail)
		failures[++failed] = detail
	}
}

END {
	printf "%-8s %-19s", "kernel", "algorithm"
	for (c = 1; c <= width; c++)
		printf " %-*s", length(column_name[c]), column_name[c]
	print ""
	for (r = 1; r <= height; r++) {
		split(row_name[r], name, "\t")
		printf "%-8s %-19s", name[1], name[2]
		if (name[2] == "-") {
			printf "%s\n", host_steps[row_name[r]]
			continue
		}
		for (c = 1; c <= width; c++) {
			value = cell[row_name[r], column_name[c]]
			printf " %-*s", length(column_name[c]), value == "" ? "." : value
		}
		print ""
	}
	for (f = 1; f <= failed; f++)
		print "FAIL " failures[f]
}
