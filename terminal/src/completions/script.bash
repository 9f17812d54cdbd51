_FUNCTION() {
	local line=${COMP_LINE:0:COMP_POINT} words word
	read -r -a words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	mapfile -t COMPREPLY < <(VARIABLE=1 PROGRAM "${words[@]:1}" 2>/dev/null)
	COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
	# Bash replaces what stands after the last = or : of a word.
	word=${words[-1]}
	COMPREPLY=("${COMPREPLY[@]#"${word%"$2"}"}")
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/.] ]]; then compopt -o nospace; fi
}
complete -o default -o nosort -F _FUNCTION PROGRAM
