# Completion of coretap and its links for fish: coretap completion fish | source
function __coretap_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$typed" 2>/dev/null)
    set -q lines[1]; or return
    # A path may follow --option= in the same word.
    set -l option (string match -r -- '^--[^=]*=' $typed)
    set -l path (string replace -r -- '^--[^=]*=' '' "$typed")
    switch $lines[-1]
        case ':files'
            printf '%s\n' "$option"(__fish_complete_path $path)
        case ':directories'
            printf '%s\n' "$option"(__fish_complete_directories $path)
        case ':command*'
            set -l first (math (string replace ':command ' '' $lines[-1]) + 2)
            complete -C (string join ' ' -- (string escape -- $words[$first..-1]) "$typed")
    end
    set -e lines[-1]
    set -q lines[1]; and printf '%s\n' $lines
end
for name in coretap (coretap link --list 2>/dev/null | string replace -r '.*/' '')
    complete -c $name -f -a '(__coretap_complete)'
end
