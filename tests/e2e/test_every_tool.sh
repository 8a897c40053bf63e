# One query calls every built-in tool, each kind of file that read_file knows, and an MCP server; then the
# servers and the files are gone, and a hermetic replay answers all of it from the record.
# Sanitizer: each built-in tool and reader of files.
. "$(dirname "$0")/lib.sh"
command -v pdftotext >/dev/null || skip "pdftotext is not installed (poppler-utils): read_file needs it"

SAMPLE=$IPW_SOURCE_DIR/datasets/gaia-sample
mkdir data
python3 - "$SAMPLE" <<'PY' || fail "no files"
import json, sys, wave, zipfile
with wave.open("word.wav", "wb") as w:
    w.setnchannels(1), w.setsampwidth(1), w.setframerate(8000), w.writeframes(bytes(800))
with zipfile.ZipFile("data/all.zip", "w") as z:
    for name in "solar.xlsx", "minutes.docx", "harvest.pptx", "pump_leaflet.pdf", "rain.zip", "catch.png", \
            "expenses.csv", "inventory.json", "ship_log.txt":
        z.write(f"{sys.argv[1]}/{name}", name)
    z.write("word.wav", "word.wav")
    z.writestr("rows.jsonl", '{"k":"v"}\n')
json.dump({"task_id": "t", "Question": "Use everything.", "Final answer": "done", "Level": "1", "file_name": "all.zip"},
          open("data/metadata.jsonl", "w"))
json.dump({"mcpServers": {"fake": {"command": "python3", "args": [sys.argv[1] + "/../../tests/fake/mcp.py", "bad", "well"]}}},
          open("mcp.json", "w"))
PY

read_calls() {
    while read -r file; do echo "call read_file {\"path\": \"$file\"}"; done
}
{
    cat <<'LLM'
unless image_url
unless little question
call python {"code": "import zipfile\nzipfile.ZipFile('all.zip').extractall()"}
call python_session {"code": "a = 6 * 7"}
call python_session {"code": "a"}
call shell {"command": "ls | wc -l"}
call write_file {"path": "new.txt", "content": "one two"}
call edit_file {"path": "new.txt", "old": "two", "new": "three"}
call list_files {}
call search_files {"text": "Amaryllis"}
call calculator {"expression": "6 * 7"}
call think {"thought": "enough"}
call visit_page {"url": "http://PAGES/page"}
call web_search {"query": "joules"}
call sub_model {"question": "a little question", "picture": "catch.png"}
call mcp__fake__echo {"text": "through MCP"}
call read_file {"path": "rain.zip", "part": "valley.csv"}
LLM
    read_calls <<'FILES'
solar.xlsx
minutes.docx
harvest.pptx
pump_leaflet.pdf
rain.zip
catch.png
expenses.csv
inventory.json
ship_log.txt
word.wav
rows.jsonl
nothing.txt
FILES
    cat <<'LLM'
---
when little question
text a little answer
---
when Shown by your tools: catch.png
call final_answer {"answer": "done"}
---
path /v1/audio/transcriptions
json {"text": "what was said"}
---
path /search
json {"results":[{"title":"Joules","url":"http://127.0.0.1/j","content":"a unit"}]}
LLM
} >all.llm.in
# The address is known when the server listens, so the cassette comes from a second one.
cat >page.llm <<'LLM'
path /page
type text/html
body <title>A page</title><p>of words</p>
LLM
start_fake --script page.llm
PAGES=$BASE_URL
sed "s#PAGES#$(echo "$PAGES" | sed 's#http://##; s#/v1##')#" all.llm.in >all.llm
start_fake --script all.llm
ALL=calculator,read_file,list_files,search_files,write_file,edit_file,python,python_session,shell,web_search
ALL=$ALL,visit_page,think,sub_model,final_answer

step "everything at once"
expect_exit 0 agent run tools --tools "$ALL" --mcp-config mcp.json --dataset gaia --data-dir data --model fake-model \
    --base-url "$BASE_URL" --search "searxng=${BASE_URL%/v1}" --speech-url "$BASE_URL" --web-allow '*' --output run -q
assert_json run/traces.jsonl 'd[0]["answer"] == "done" and d[0]["is_resolved"]'
assert_json run/events.jsonl '[e["error"][:24] for e in d if e["event"] == "tool_call_end" and e["outcome"] != "ok"] == ["cannot read nothing.txt:"]'
for said in '42' '1 replaced' 'Amaryllis' 'A page' 'a unit' 'a little answer' 'through MCP' 'Quarry' 'New boathouse' \
    'Lost to frost' 'every 640 hours' 'harbour.csv' '2026-05-10' 'what was said' '"picture":"catch.png"'; do
    grep -q "$said" run/events.jsonl || fail "nothing says '$said'"
done
printf '%s\n' "$ALL" mcp__fake__echo | tr , '\n' | sort >want
json run/events.jsonl '"\n".join(sorted({e["name"] for e in d if e["event"] == "tool_call_end"}))' >got
cmp want got || fail "not every tool was called"

step "with all of it gone"
stop_all
rm -r data mcp.json word.wav
expect_exit 0 agent replay run --mode hermetic --output again
check_out "identical to the saved run"
cmp run/events.jsonl again/events.jsonl || fail "events differ"
cmp run/traces.jsonl again/traces.jsonl || fail "traces differ"
end_test
