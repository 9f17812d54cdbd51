_FUNCTION() {
	local line=${COMP_LINE:0:COMP_POINT} words word found
	read -r -a words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	found=$(VARIABLE=1 PROGRAM "${words[@]:1}" 2>/dev/null)
	[[ -n $found ]] || return 0
	mapfile -t COMPREPLY <<<"$found"
	COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
	# Bash replaces what stands after the last = or : of a word.
	word=${words[-1]}
	COMPREPLY=("${COMPREPLY[@]#"${word%"$2"}"}")
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/.] ]]; then compopt -o nospace; fi
}
complete -o default -o nosort -F _FUNCTION PROGRAM
