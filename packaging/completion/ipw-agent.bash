# Completion of ipw-agent for bash.  What may follow is asked of the program itself (its --help and
# its lists), so that this file knows no option and is never behind the program.

# _ipw_agent_help ARGUMENTS...: the help, without the library's messages.
_ipw_agent_help() {
    "${COMP_WORDS[0]/#\~/$HOME}" "$@" --help${1:+=all} 2>/dev/null
}

# The names that a list of the program begins its lines with.
_ipw_agent_names() {
    "${COMP_WORDS[0]/#\~/$HOME}" "$@" 2>/dev/null | sed -n 's/^\([a-z0-9][^ ]*\)  .*/\1/p'
}

# Saved runs: folders with a manifest, here and in runs/.
_ipw_agent_runs() {
    local manifest
    for manifest in ./*/manifest.json runs/*/manifest.json "$1"*/manifest.json; do
        [ -f "$manifest" ] || continue
        manifest=${manifest%/manifest.json}
        echo "${manifest#./}"
    done
}

# The ids of the queries of the first saved run on the command line.
_ipw_agent_queries() {
    local word
    for word in "${COMP_WORDS[@]:2}"; do
        [ -f "$word/traces.jsonl" ] || continue
        sed -n 's/.*"query_id":"\([^"]*\)".*/\1/p' "$word/traces.jsonl"
        return
    done
}

# _ipw_agent_values WHAT: what the help calls this value by may be.
_ipw_agent_values() {
    case $1 in
    AGENT*) _ipw_agent_names list agents ;;
    ID) _ipw_agent_queries ;;
    RUN*) _ipw_agent_runs "$2" ;;
    *'|'*) tr '|' '\n' <<<"$1" | grep -x '[a-z][a-z-]*' ;;
    esac
}

_ipw_agent() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} help what= words= files=
    local IFS=$'\n'
    local row='s/^  \(-., \|    \)\(--[a-z0-9-]*\)'

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$(_ipw_agent_help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p')
    else
        help=$(_ipw_agent_help "$command")
        case $prev in
        --*) what=$(sed -n "$row \([^ ]*\).*/\2 \3/p" <<<"$help" | sed -n "s/^$prev //p") ;;
        -?) what=$(sed -n "s/^  $prev, --[a-z0-9-]* \([^ ]*\).*/\1/p" <<<"$help") ;;
        esac
        if [ -z "$what" ] && [[ $cur == -* ]]; then
            words=$(sed -n "$row.*/\2/p" <<<"$help")
        else
            # Not the value of an option: what the usage line names first.
            [ -n "$what" ] || what=$(sed -n '1s/^usage: ipw-agent [a-z]* \[*\([^] ]*\).*/\1/p' <<<"$help")
            files=$(compgen -f -- "$cur")
            case $prev in
            --dataset | -d | fetch) words=$(_ipw_agent_names list datasets) ;;
            --tools | tool) words=$(_ipw_agent_names list tools) ;;
            --format) words=$(_ipw_agent_names export --list) ;;
            *) words=$(_ipw_agent_values "$what" "$cur") ;;
            esac
        fi
    fi
    # shellcheck disable=SC2207 # one candidate per line
    COMPREPLY=($(compgen -W "$words" -- "$cur") $files)
}
complete -o filenames -F _ipw_agent ipw-agent
