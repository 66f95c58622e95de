#compdef coretap
# Completion of coretap and its links for zsh: source <(coretap completion zsh), after compinit
_coretap() {
    local -a lines shown
    local rule line
    lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    rule=$lines[-1]
    lines[-1]=()
    for line in $lines; do
        shown+=("${line/$'\t'/  -- }")
    done
    # -l: a line for each; the descriptions are not part of the words.
    (($#lines)) && compadd -l -d shown -- "${(@)lines%%$'\t'*}"
    case $rule in
        :files) [[ $PREFIX == --*=* ]] && compset -P '*='; _files ;;
        :directories) [[ $PREFIX == --*=* ]] && compset -P '*='; _files -/ ;;
        :command*)
            shift $((${rule#:command } + 1)) words
            ((CURRENT -= ${rule#:command } + 1))
            _normal ;;
    esac
}
if [[ $funcstack[1] == _coretap ]]; then
    _coretap "$@"
else
    compdef _coretap coretap ${${(f)"$(coretap link --list 2>/dev/null)"}:t}
fi
