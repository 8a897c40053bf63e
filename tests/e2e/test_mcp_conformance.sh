# The conformance suite of MCP (npm) against our client: each client scenario of what is supported.
#
# Left out, because the client does not do it:
#   auth/*                                OAuth: a key goes into the headers of --mcp-config
#   elicitation-sep1034-client-defaults   asks a person to fill in a form: no person is there, so the
#                                         client declares no elicitation
#   sep-2640-*                            skills, an extension
# and one check: json-schema-2020-12-client-$schema-preserved.  `$schema` is dropped on purpose, because
# servers of models refuse it; all else of a schema is kept.
# The suite's server mode needs an address; `ipw-agent mcp` speaks over stdio (e2e.mcp_serve).
# No sanitizer: the suite is the program of others; e2e.mcp and e2e.mcp_faults run our C.
. "$(dirname "$0")/lib.sh"

npm_reached || skip "npm is not installed, or its registry cannot be reached"
timeout 120 npm install --prefix npm --no-audit --no-fund --silent @modelcontextprotocol/conformance@0.2.0-alpha.12 \
    >npm.log 2>&1 || skip "npm could not fetch the suite: $(tail -1 npm.log)"

# The suite takes globSync from Node 22 for a command that is not used here; Debian has an older Node.
cat >glob.mjs <<'JS'
import { register } from "node:module";
const hooks = `
export async function resolve(name, context, next) {
  const own = name === "fs" && context.parentURL?.includes("/conformance/dist/");
  return own ? { url: "ipw:fs", shortCircuit: true } : next(name, context);
}
export async function load(url, context, next) {
  const source = 'export * from "node:fs"; export function globSync() { throw Error("needs Node 22"); }';
  return url === "ipw:fs" ? { format: "module", shortCircuit: true, source } : next(url, context);
}`;
register("data:text/javascript," + encodeURIComponent(hooks));
JS

# The suite adds the server's address; its variables say what the scenario wants.
cat >client.sh <<'SH'
suite=$(mktemp -d)
printf '%s\n' "local context = require('ipw.json').decode [=====[${MCP_CONFORMANCE_CONTEXT:-{\}}]=====]" |
    cat - "$IPW_SOURCE_DIR/tests/e2e/mcp_conformance.lua" >"$suite/suite.lua"
exec "$IPW_AGENT" test "$suite/suite.lua" --mcp "$1" --mcp-timeout 10s
SH

scenario() { # NAME REVISION [CHECK THAT FAILS ON PURPOSE]
    node --import ./glob.mjs npm/node_modules/.bin/conformance client --scenario "$1" --spec-version "$2" \
        --command "sh $WORK/client.sh" -o "out/$1-$2" >"log.$1-$2" 2>&1
    python3 - "$1" "$2" "${3-}" "out/$1-$2"/*/checks.json <<'PY' >>"log.$1-$2" 2>&1 && : >"passed.$1-$2"
import json, sys
name, revision, known, path = sys.argv[1:]
checks = [c for c in json.load(open(path)) if c["status"] not in ("INFO", "SKIPPED")]
bad = sorted({c["id"] for c in checks if c["status"] != "SUCCESS"})
assert checks and bad == ([known] if known else []), bad
PY
}

step "scenarios"
mkdir out tmp
export TMPDIR="$WORK/tmp"
old=2025-11-25 new=2026-07-28
scenario sse-retry $old & # it measures a pause, so it does not run beside all others
wait
for group in "initialize:$old tools_call:$old tools_call:$new request-metadata:$new http-standard-headers:$new" \
    "http-custom-headers:$new http-invalid-tool-headers:$new sep-2322-client-request-state:$new" \
    "json-schema-ref-no-deref:$new json-schema-2020-12-preservation:$new"; do
    for one in $group; do
        case $one in
        json-schema-2020*) scenario "${one%:*}" "${one#*:}" 'json-schema-2020-12-client-$schema-preserved' & ;;
        *) scenario "${one%:*}" "${one#*:}" & ;;
        esac
    done
    wait
done
n=0
for log in log.*; do
    [ -e "passed.${log#log.}" ] || fail "$log: $(tail -60 "$log")"
    n=$((n + 1))
done
assert_eq "$n" 11

end_test
