# fish completion for coretap and its tools; generated, do not edit.

# Is the word at the cursor behind -- ?
function __coretap_in_command
    contains -- -- (commandline -opc)
end

# Completes what follows -- as a command line of its own.
function __coretap_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains --index -- -- $words)
    set -e words[1..$at]
    complete --do-complete (string join ' ' -- $words)
end

function __coretap_wants_command
    test (count (commandline -opc)) -eq 1
end

# Adds an option or argument to a tool under its own name and behind coretap.
function __coretap_add --argument-names tool
    set -e argv[1]
    complete -c $tool -n 'not __coretap_in_command' $argv
    complete -c coretap -n "not __coretap_in_command; and __fish_seen_subcommand_from $tool" $argv
end

complete -c coretap -f
complete -c coretap -n __coretap_in_command -x -a '(__coretap_command)'
complete -c coretap -n __coretap_wants_command -l version -d 'the version'
complete -c coretap -n __coretap_wants_command -a list -d 'all tools'
complete -c coretap -n __coretap_wants_command -a help -d 'what a tool does and its options'
complete -c coretap -n __coretap_wants_command -a doctor -d 'what this kernel and these rights can run'
complete -c coretap -n '__fish_seen_subcommand_from list doctor' -l json -d 'one JSON object per line'

# biolatency
complete -c coretap -n __coretap_wants_command -a biolatency -d 'block I/O latency as a histogram'
complete -c coretap -n '__fish_seen_subcommand_from help' -a biolatency -d 'block I/O latency as a histogram'
complete -c biolatency -f
complete -c biolatency -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add biolatency -s Q -l queued -d 'include the time queued in the I/O scheduler'
__coretap_add biolatency -s D -l disks -d 'one histogram per disk'
__coretap_add biolatency -s F -l flags -d 'one histogram per operation and its flags'
__coretap_add biolatency -s e -l extension -d 'print average, total and count below each histogram'
__coretap_add biolatency -s d -l disk -x -a '(string replace /sys/block/ "" /sys/block/*)' -d 'only this disk: a name as in /sys/block, or MAJOR:MINOR'
__coretap_add biolatency -s m -l milliseconds -d 'histograms in milliseconds'
__coretap_add biolatency -s T -l timestamp -d 'print the time of each line or report'
__coretap_add biolatency -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add biolatency -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add biolatency -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add biolatency -l comm -x -d 'only tasks with this command name'
__coretap_add biolatency -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add biolatency -l max-keys -x -d 'different keys that can be counted (default: by the machine)'
__coretap_add biolatency -s i -l interval -x -d 'a report every so often'
__coretap_add biolatency -l duration -x -d 'end after this time'
__coretap_add biolatency -s j -l json -d 'one JSON object per line'
__coretap_add biolatency -l csv -d 'comma-separated values with a header line'
__coretap_add biolatency -l strict -d 'end with exit status 4 if data was lost'
__coretap_add biolatency -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add biolatency -l explain -d 'print how this kernel would be traced, and end'
__coretap_add biolatency -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add biolatency -s h -l help -d 'print this help'
__coretap_add biolatency -s V -l version -d 'print the version'

# biosnoop
complete -c coretap -n __coretap_wants_command -a biosnoop -d 'each block I/O with its process, disk, size and latency'
complete -c coretap -n '__fish_seen_subcommand_from help' -a biosnoop -d 'each block I/O with its process, disk, size and latency'
complete -c biosnoop -f
complete -c biosnoop -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add biosnoop -s Q -l queued -d 'print the time queued in the I/O scheduler'
__coretap_add biosnoop -s d -l disk -x -a '(string replace /sys/block/ "" /sys/block/*)' -d 'only this disk: a name as in /sys/block, or MAJOR:MINOR'
__coretap_add biosnoop -s m -l min -x -d 'only I/O that took at least this many milliseconds'
__coretap_add biosnoop -s P -l pattern -d 'print S for I/O that begins where the disk\'s previous one ended, R for random'
__coretap_add biosnoop -s t -l timestamp -d 'print the time of each line or report'
__coretap_add biosnoop -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add biosnoop -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add biosnoop -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add biosnoop -s n -l comm -x -d 'only tasks with this command name'
__coretap_add biosnoop -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add biosnoop -l duration -x -d 'end after this time'
__coretap_add biosnoop -s j -l json -d 'one JSON object per line'
__coretap_add biosnoop -l csv -d 'comma-separated values with a header line'
__coretap_add biosnoop -l strict -d 'end with exit status 4 if data was lost'
__coretap_add biosnoop -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add biosnoop -l ring-size -x -d 'room for events on their way (default: 128K, 1M with stacks)'
__coretap_add biosnoop -l explain -d 'print how this kernel would be traced, and end'
__coretap_add biosnoop -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add biosnoop -s h -l help -d 'print this help'
__coretap_add biosnoop -s V -l version -d 'print the version'

# offcputime
complete -c coretap -n __coretap_wants_command -a offcputime -d 'off-CPU time by kernel and user stack'
complete -c coretap -n '__fish_seen_subcommand_from help' -a offcputime -d 'off-CPU time by kernel and user stack'
complete -c offcputime -f
complete -c offcputime -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add offcputime -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add offcputime -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add offcputime -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add offcputime -l comm -x -d 'only tasks with this command name'
__coretap_add offcputime -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add offcputime -s u -l user-threads-only -d 'no kernel threads'
__coretap_add offcputime -s k -l kernel-threads-only -d 'only kernel threads'
__coretap_add offcputime -s U -l user-stacks-only -d 'no kernel stacks'
__coretap_add offcputime -s K -l kernel-stacks-only -d 'no user stacks'
__coretap_add offcputime -s d -l delimited -d 'a delimiter between kernel and user stack'
__coretap_add offcputime -s f -l folded -d 'one line per stack, for flame graphs'
__coretap_add offcputime -s s -l offset -d 'print offsets within functions'
__coretap_add offcputime -s m -l min-block-time -x -d 'only waits of at least so many microseconds'
__coretap_add offcputime -s M -l max-block-time -x -d 'only waits of at most so many microseconds'
__coretap_add offcputime -l state -x -d 'only tasks that left in one of these states: 0 runnable, 1 interruptible, 2 uninterruptible, 3 both'
__coretap_add offcputime -l perf-max-stack-depth -x -d 'frames kept of each stack, 127 at most (default: 127)'
__coretap_add offcputime -l stack-storage-size -x -d 'different stacks that can be told apart (default: by the machine\'s memory)'
__coretap_add offcputime -l duration -x -d 'end after this time'
__coretap_add offcputime -s j -l json -d 'one JSON object per line'
__coretap_add offcputime -l csv -d 'comma-separated values with a header line'
__coretap_add offcputime -l strict -d 'end with exit status 4 if data was lost'
__coretap_add offcputime -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add offcputime -l explain -d 'print how this kernel would be traced, and end'
__coretap_add offcputime -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add offcputime -s h -l help -d 'print this help'
__coretap_add offcputime -s V -l version -d 'print the version'

# runqlat
complete -c coretap -n __coretap_wants_command -a runqlat -d 'run queue (scheduler) latency as a histogram'
complete -c coretap -n '__fish_seen_subcommand_from help' -a runqlat -d 'run queue (scheduler) latency as a histogram'
complete -c runqlat -f
complete -c runqlat -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add runqlat -s P -l pids -d 'one histogram per process'
__coretap_add runqlat -s L -l tids -d 'one histogram per thread'
__coretap_add runqlat -l pidnss -d 'one histogram per pid namespace'
__coretap_add runqlat -s m -l milliseconds -d 'histograms in milliseconds'
__coretap_add runqlat -s T -l timestamp -d 'print the time of each line or report'
__coretap_add runqlat -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add runqlat -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add runqlat -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add runqlat -l comm -x -d 'only tasks with this command name'
__coretap_add runqlat -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add runqlat -l max-keys -x -d 'different keys that can be counted (default: by the machine)'
__coretap_add runqlat -s i -l interval -x -d 'a report every so often'
__coretap_add runqlat -l duration -x -d 'end after this time'
__coretap_add runqlat -s j -l json -d 'one JSON object per line'
__coretap_add runqlat -l csv -d 'comma-separated values with a header line'
__coretap_add runqlat -l strict -d 'end with exit status 4 if data was lost'
__coretap_add runqlat -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add runqlat -l explain -d 'print how this kernel would be traced, and end'
__coretap_add runqlat -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add runqlat -s h -l help -d 'print this help'
__coretap_add runqlat -s V -l version -d 'print the version'

# cachestat
complete -c coretap -n __coretap_wants_command -a cachestat -d 'page cache hits and misses'
complete -c coretap -n '__fish_seen_subcommand_from help' -a cachestat -d 'page cache hits and misses'
complete -c cachestat -f
complete -c cachestat -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add cachestat -s T -l timestamp -d 'print the time of each line or report'
__coretap_add cachestat -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add cachestat -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add cachestat -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add cachestat -l comm -x -d 'only tasks with this command name'
__coretap_add cachestat -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add cachestat -s i -l interval -x -d 'a report every so often'
__coretap_add cachestat -l duration -x -d 'end after this time'
__coretap_add cachestat -s j -l json -d 'one JSON object per line'
__coretap_add cachestat -l csv -d 'comma-separated values with a header line'
__coretap_add cachestat -l strict -d 'end with exit status 4 if data was lost'
__coretap_add cachestat -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add cachestat -l explain -d 'print how this kernel would be traced, and end'
__coretap_add cachestat -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add cachestat -s h -l help -d 'print this help'
__coretap_add cachestat -s V -l version -d 'print the version'

# compactsnoop
complete -c coretap -n __coretap_wants_command -a compactsnoop -d 'memory compaction: who ran it, for how long, and with what result'
complete -c coretap -n '__fish_seen_subcommand_from help' -a compactsnoop -d 'memory compaction: who ran it, for how long, and with what result'
complete -c compactsnoop -f
complete -c compactsnoop -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add compactsnoop -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add compactsnoop -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add compactsnoop -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add compactsnoop -s n -l comm -x -d 'only tasks with this command name'
__coretap_add compactsnoop -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add compactsnoop -s d -l duration -x -d 'end after this time'
__coretap_add compactsnoop -s T -l timestamp -d 'print the time of each line or report'
__coretap_add compactsnoop -s e -l extended -d 'print more columns'
__coretap_add compactsnoop -s K -l kernel-stack -d 'print the kernel stack of each event'
__coretap_add compactsnoop -l perf-max-stack-depth -x -d 'frames kept of each stack, 127 at most (default: 127)'
__coretap_add compactsnoop -s j -l json -d 'one JSON object per line'
__coretap_add compactsnoop -l csv -d 'comma-separated values with a header line'
__coretap_add compactsnoop -l strict -d 'end with exit status 4 if data was lost'
__coretap_add compactsnoop -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add compactsnoop -l ring-size -x -d 'room for events on their way (default: 128K, 1M with stacks)'
__coretap_add compactsnoop -l explain -d 'print how this kernel would be traced, and end'
__coretap_add compactsnoop -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add compactsnoop -s h -l help -d 'print this help'
__coretap_add compactsnoop -s V -l version -d 'print the version'

# drsnoop
complete -c coretap -n __coretap_wants_command -a drsnoop -d 'direct reclaim: allocations that had to free memory first'
complete -c coretap -n '__fish_seen_subcommand_from help' -a drsnoop -d 'direct reclaim: allocations that had to free memory first'
complete -c drsnoop -f
complete -c drsnoop -n __coretap_in_command -x -a '(__coretap_command)'
__coretap_add drsnoop -s p -l pid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these processes'
__coretap_add drsnoop -s t -l tid -x -a '(__fish_append , (__fish_complete_pids))' -d 'only these threads'
__coretap_add drsnoop -s u -l uid -x -a '(__fish_complete_users)' -d 'only tasks of this user, by name or number'
__coretap_add drsnoop -s n -l comm -x -d 'only tasks with this command name'
__coretap_add drsnoop -s c -l cgroup -x -a '(__fish_complete_directories)' -d 'only tasks in this cgroup (version 2) or below it; a path, absolute or below the cgroup mount, or an id'
__coretap_add drsnoop -s d -l duration -x -d 'end after this time'
__coretap_add drsnoop -s T -l timestamp -d 'print the time of each line or report'
__coretap_add drsnoop -s U -l print-uid -d 'print the user id'
__coretap_add drsnoop -s e -l extended -d 'print more columns'
__coretap_add drsnoop -s K -l kernel-stack -d 'print the kernel stack of each event'
__coretap_add drsnoop -l perf-max-stack-depth -x -d 'frames kept of each stack, 127 at most (default: 127)'
__coretap_add drsnoop -s M -l memcg -d 'also reclaim by a memory cgroup\'s limit and by a NUMA node'
__coretap_add drsnoop -s j -l json -d 'one JSON object per line'
__coretap_add drsnoop -l csv -d 'comma-separated values with a header line'
__coretap_add drsnoop -l strict -d 'end with exit status 4 if data was lost'
__coretap_add drsnoop -l exit-status -d 'with -- COMMAND: end with its exit status'
__coretap_add drsnoop -l ring-size -x -d 'room for events on their way (default: 128K, 1M with stacks)'
__coretap_add drsnoop -l explain -d 'print how this kernel would be traced, and end'
__coretap_add drsnoop -s v -l verbose -d 'say more on stderr: hooks, sizes, the verifier\'s words'
__coretap_add drsnoop -s h -l help -d 'print this help'
__coretap_add drsnoop -s V -l version -d 'print the version'
