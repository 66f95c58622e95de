# Completion of coretap and its links for bash: source <(coretap completion bash)
_coretap() {
    local i rest=$COMP_LINE word words=() at=() last command lines=() width=0
    # Readline breaks words at = and : too; coretap wants them whole.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i)) && [[ -n $word && $rest == "$word"* ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
            at+=("$i")
        fi
        rest=${rest#*"$word"}
        [[ -n $word ]] || rest=${rest#"${rest%%[![:space:]]*}"}
    done
    last=${words[${#words[@]} - 1]}
    command=${words[0]/#\~/$HOME}
    mapfile -t lines < <("$command" __complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    ((${#lines[@]})) || return
    word=${lines[${#lines[@]} - 1]}
    unset 'lines[${#lines[@]}-1]'
    case $word in
        :files) compopt -o default ;;
        :directories) compopt -o dirnames ;;
        :command*)
            i=${at[${word#:command } + 1]}
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset "$i"
            elif declare -F _command_offset >/dev/null; then
                _command_offset "$i"
            elif ((i == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$last")
            else
                compopt -o default
            fi
            return ;;
    esac
    # Readline replaces only what follows the last break.
    case ${COMP_WORDS[COMP_CWORD]} in
        = | :) rest=$last ;;
        *) rest=${last%"${COMP_WORDS[COMP_CWORD]}"} ;;
    esac
    for i in "${!lines[@]}"; do
        word=${lines[i]%%$'\t'*}
        word=${word#"$rest"}
        [[ $word != *[![:alnum:]_@%+=:,./-]* ]] || printf -v word %q "$word"
        COMPREPLY+=("$word")
        ((${#word} <= width)) || width=${#word}
    done
    # Descriptions are for a list on the screen; a menu (37, 42) inserts what it shows.
    if ((${#COMPREPLY[@]} > 1)) && [[ ${COMP_TYPE-} == @(9|33|63|64) ]]; then
        for i in "${!lines[@]}"; do
            [[ ${lines[i]} == *$'\t'* ]] || continue
            printf -v word "%-${width}s  (%s)" "${COMPREPLY[i]}" "${lines[i]#*$'\t'}"
            COMPREPLY[i]=${word:0:${COLUMNS:-80} - 4}
        done
    fi
}
complete -F _coretap coretap
while read -r _coretap_link; do
    complete -F _coretap "${_coretap_link##*/}"
done < <(coretap link --list 2>/dev/null)
unset _coretap_link
