#compdef PROGRAM
_FUNCTION() {
	local -a whole begun
	local line value help
	for line in "${(@f)$(VARIABLE=1 PROGRAM "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		value=${line%%$'\t'*}
		help=${line#"$value"$'\t'}
		line=${value//:/\\:}${help:+:$help}
		if [[ $value == *[=:/.] ]]; then begun+=("$line"); elif [[ -n $value ]]; then whole+=("$line"); fi
	done
	if (( $#whole )); then _describe -V values whole; fi
	if (( $#begun )); then _describe -V values begun -S ''; fi
	if (( ! $#whole && ! $#begun )); then _files; fi
}
if [[ ${funcstack[1]} == _FUNCTION ]]; then _FUNCTION "$@"; else compdef _FUNCTION PROGRAM; fi
