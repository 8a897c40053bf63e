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
# Long: it fetches the program of others.
. "$(dirname "$0")/lib.sh"

npm_reached || skip "npm is not installed, or its registry cannot be reached"
timeout 30 npm install --prefix npm --no-audit --no-fund --silent @modelcontextprotocol/conformance@0.2.0-alpha.12 \
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
case $MCP_CONFORMANCE_SCENARIO in auth/* | elicitation-* | sep-2640-*) exit 1 ;; esac
suite=$(mktemp -d)
printf '%s\n' "local context = require('ipw.json').decode [=====[${MCP_CONFORMANCE_CONTEXT:-{\}}]=====]" |
    cat - "$IPW_SOURCE_DIR/tests/e2e/mcp_conformance.lua" >"$suite/suite.lua"
exec "$IPW_AGENT" test "$suite/suite.lua" --mcp "$1" --mcp-timeout 20s
SH
mkdir tmp
export TMPDIR="$WORK/tmp"
# What each scenario has to hold; it is run for each revision that it knows.
cat >verdict.py <<'PY'
import glob, json, os, sys
want = set(sys.argv[2:])
known = {"json-schema-2020-12-client-$schema-preserved"}
for name in sorted(want):
    paths = glob.glob("%s/%s-2*/checks.json" % (sys.argv[1], name))
    assert len(paths) == 1, (name, paths)
    checks = [c for c in json.load(open(paths[0])) if c["status"] not in ("INFO", "SKIPPED")]
    # Whether a pause was too long depends on this machine.
    bad = [c for c in checks if c["status"] != "SUCCESS" and "late" not in c.get("errorMessage", "")]
    assert checks and {c["id"] for c in bad} <= known, (name, bad)
ran = {os.path.basename(os.path.dirname(p)).rsplit("-2026-", 1)[0] for p in glob.glob(sys.argv[1] + "/*/checks.json")}
left = {n for n in ran - want if not n.startswith(("elicitation-", "sep-2640-"))}
assert not left, ("scenarios that this test does not know", left)
PY
revision() { # REVISION SCENARIO...
    step "the client of $1"
    node --import ./glob.mjs npm/node_modules/.bin/conformance client --suite all --spec-version "$1" --timeout 60000 \
        --command "sh $WORK/client.sh" -o "of-$1" >"log.$1" 2>&1
    version=$1
    shift
    python3 verdict.py "of-$version" "$@" >out 2>err || fail "$(tail -40 "log.$version")"
}
revision 2025-11-25 initialize tools_call sse-retry json-schema-2020-12-preservation
revision 2026-07-28 tools_call request-metadata http-standard-headers http-custom-headers http-invalid-tool-headers \
    sep-2322-client-request-state json-schema-ref-no-deref json-schema-2020-12-preservation

end_test
