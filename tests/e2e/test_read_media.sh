# read_file on pictures and sound: a picture goes to the model as a part of a message, once and for every
# agent; a model that reads none is told, and the query goes on; sound is written down by a server with
# OpenAI's /v1/audio/transcriptions.  A hermetic replay needs neither server nor file.
. "$(dirname "$0")/lib.sh"

mkdir data
python3 - <<'PY' || fail "no files"
import struct, wave, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)) \
    + chunk(b"IDAT", zlib.compress((b"\0" + b"\xff\0\0" * 4) * 4)) + chunk(b"IEND", b"")
open("data/dot.png", "wb").write(png)
open("data/huge.png", "wb").write(png + bytes(3000001))
with wave.open("data/word.wav", "wb") as w:
    w.setnchannels(1), w.setsampwidth(1), w.setframerate(8000), w.writeframes(bytes(800))
PY
# tasks NAME...: a dataset with one task, which has these files at hand.
task() {
    printf '{"task_id":"t","Question":"What is in %s?","Final answer":"a red dot","Level":"1","file_name":"%s"}\n' \
        "$1" "$1" >data/metadata.jsonl
}
# on CODE AGENT OPTIONS
on() {
    code=$1
    shift
    expect_exit "$code" agent run "$@" --dataset gaia --data-dir data --model fake-model --base-url "$BASE_URL" -q
}
IMAGES='[[p["image_url"]["url"][:22] for m in e["data"]["messages"] if type(m.get("content")) is list
    for p in m["content"] if p["type"] == "image_url"] for e in d if e["event"] == "lm_inference_start"]'

cat >seen.llm <<'LLM'
unless image_url
call read_file {"path": "dot.png"}
---
when data:image/png;base64,iVBOR
text FINAL ANSWER: a red dot
LLM
cat >react.llm <<'LLM'
unless image_url
text Thought: look\nAction: read_file\nAction Input: {"path": "dot.png"}
---
when data:image/png;base64,iVBOR
text Final Answer: a red dot
LLM
cat >code.llm <<'LLM'
unless image_url
text Look.\n```python\nprint(read_file(path="dot.png"))\n```
---
when data:image/png;base64,iVBOR
text FINAL ANSWER: a red dot
LLM
task dot.png
for name in tools plan react code; do
    step "$name shows a picture"
    case $name in
    tools) cp seen.llm now.llm ;;
    plan) { printf 'text 1. read it\n---\n'; cat seen.llm; } >now.llm ;;
    *) cp $name.llm now.llm ;;
    esac
    start_fake --script now.llm
    on 0 $name --output run-$name
    stop_fake
    assert_json run-$name/traces.jsonl 'd[0]["answer"] == "a red dot" and d[0]["is_resolved"]'
    assert_json run-$name/events.jsonl "$IMAGES[-1] == ['data:image/png;base64,']"
    assert_json run-$name/events.jsonl '[(e["data"]["picture"], "dot.png is a picture (image/png" in e["data"]["content"])
        for e in d if e["event"] == "tool_call_end" and e["name"] == "read_file"] == [("dot.png", True)]'
done

step "a replay has the picture from the record"
mv data away
for name in tools code; do
    expect_exit 0 agent replay run-$name --mode hermetic --output again-$name
    check_out "identical to the saved run"
done
mv away data

step "a model that reads no pictures"
cat >blind.llm <<'LLM'
unless image_url
unless left out
call read_file {"path": "dot.png"}
---
when image_url
always
status 400
json {"error":{"message":"image input is not supported","code":400}}
---
when [dot.png left out: this model reads no pictures. The tool sub_model can show it
call read_file {"path": "dot.png"}
---
when bytes), and this model reads no pictures
text FINAL ANSWER: unseen
LLM
start_fake --script blind.llm
on 0 tools --output blind
stop_fake
assert_json blind/traces.jsonl 'd[0]["answer"] == "unseen" and d[0]["completed"]'
assert_json blind/events.jsonl '[e["data"]["pictures"] for e in d if e.get("name") == "pictures_left_out"] == [1]'
expect_exit 0 agent replay blind --mode hermetic --output blind-again
check_out "identical to the saved run"

step "a picture that is too large"
cat >limit.llm <<'LLM'
call read_file {"path": "huge.png"}
---
when 3000000 bytes is the limit
text FINAL ANSWER: too large
LLM
task huge.png
start_fake --script limit.llm
on 0 tools --output limit
stop_fake
assert_json limit/traces.jsonl 'd[0]["answer"] == "too large"'

step "sound"
cat >sound.llm <<'LLM'
call read_file {"path": "word.wav"}
---
when said in word.wav: 1 lines\\none two three
text FINAL ANSWER: a red dot
---
path /v1/audio/transcriptions
when name=\"model\"\r\n\r\nlittle-whisper\r\n
when name=\"file\"; filename=\"word.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF
json {"text": "one two three"}
LLM
task word.wav
start_fake --script sound.llm
expect_exit 0 env SPEECH_KEY=sk-speech-0123456789 "$IPW_AGENT" run tools --dataset gaia --data-dir data --model fake-model -q \
    --base-url "$BASE_URL" --speech-url "$BASE_URL" --speech-model little-whisper --speech-key-env SPEECH_KEY --output sound
stop_fake
assert_json sound/traces.jsonl 'd[0]["is_resolved"] and d[0]["turns"][0]["tools_called"] == ["read_file"]'
assert_json sound/manifest.json 'd["config"]["speech"] == "little-whisper"'
grep -rqs sk-speech sound && fail "the key is in a file of the run"
mv data away
expect_exit 0 agent replay sound --mode hermetic --output sound-again
check_out "identical to the saved run"
mv away data

step "sound without a server: the remedy"
cat >none.llm <<'LLM'
call read_file {"path": "word.wav"}
---
when the run needs a server: --speech-url URL
text FINAL ANSWER: told
LLM
start_fake --script none.llm
on 0 tools --output none
stop_fake
assert_json none/traces.jsonl 'd[0]["answer"] == "told"'
on 2 tools --speech-model x --output no
check_err "--speech-model: name the server with --speech-url"
end_test
