# Completion of ipw-agent for fish.  What may follow is asked of the program itself (its --help and
# its lists), so that this file knows no option and is never behind the program.

function __ipw_agent_commands
    ipw-agent --help | string replace -rf '^  ([a-z]+) +([a-z].*)$' '$1\t$2'
end

# The command on the command line, or nothing.
function __ipw_agent_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and echo $words[2]
end

# --name of each option of the command, with what the help says of it.
function __ipw_agent_options
    ipw-agent (__ipw_agent_command) --help=all 2>/dev/null |
        string replace -rf '^  (?:-., |    )(--[a-z0-9-]+)(?: [^ ]+)?(?: +(.*))?$' '$1\t$2'
end

# The first words of a list of the program.
function __ipw_agent_names
    ipw-agent $argv 2>/dev/null | string replace -rf '^([a-z0-9]\S*)  +(.*)$' '$1\t$2'
end

# Saved runs: folders with a manifest, here and in runs/.
function __ipw_agent_runs
    for manifest in */manifest.json runs/*/manifest.json
        string replace /manifest.json '' $manifest
    end
end

# The ids of the queries of the first saved run on the command line.
function __ipw_agent_queries
    for word in (commandline -opc)[3..]
        if test -f $word/traces.jsonl
            string replace -rf '.*"query_id":"([^"]*)".*' '$1' <$word/traces.jsonl
            return
        end
    end
end

# What the help calls the value of the option before the cursor, or the first argument.
function __ipw_agent_values
    set -l words (commandline -opc)
    set -l last $words[-1]
    set -l help (ipw-agent (__ipw_agent_command) --help=all 2>/dev/null)
    set -l what
    if string match -q -- '-*' $last
        set what (string match -rg -- "^  (?:-., |    )$last ([^ ]+)" $help; string match -rg -- "^  $last, --[a-z0-9-]+ ([^ ]+)" $help)
    end
    test -n "$what"; or set what (string match -rg -- '^usage: ipw-agent [a-z]+ \[*([^] ]+)' $help[1])
    switch $last
        case --dataset -d fetch
            __ipw_agent_names list datasets
        case --tools tool
            __ipw_agent_names list tools
        case --format
            __ipw_agent_names export --list
        case '*'
            switch "$what"
                case 'AGENT*'
                    __ipw_agent_names list agents
                case ID
                    __ipw_agent_queries
                case 'RUN*'
                    __ipw_agent_runs
                case '*|*'
                    string split '|' -- $what | string match -r '^[a-z][a-z-]*$'
            end
    end
end

complete -c ipw-agent -n 'test (count (commandline -opc)) -eq 1' -f -a '(__ipw_agent_commands)'
complete -c ipw-agent -n '__ipw_agent_command >/dev/null; and string match -q -- "-*" (commandline -ct)' -f -a '(__ipw_agent_options)'
complete -c ipw-agent -n '__ipw_agent_command >/dev/null' -a '(__ipw_agent_values)'
