"""Official clients of PyPI, unmodified, against the demo model: each line is one call's result."""
import anthropic
import openai

QUESTION = ("A server draws 412 watts during the first 35 minutes of an hour and 268 watts during the remaining "
            "25 minutes. How much energy does it use in that hour, in watt-hours? Answer with the number only.")
FUNCTION = {"name": "calculator", "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}}}
user = {"role": "user", "content": QUESTION}

client = openai.OpenAI()
reply = client.chat.completions.create(model="demo", messages=[user], tools=[{"type": "function", "function": FUNCTION}])
print("chat", reply.choices[0].message.tool_calls[0].function.name, reply.usage.total_tokens)
chunks = client.chat.completions.create(model="demo", messages=[user], stream=True)
print("chat, streamed", "".join(c.choices[0].delta.content or "" for c in chunks)[:30])
response = client.responses.create(model="demo", input=QUESTION, tools=[{"type": "function", **FUNCTION}])
print("responses", [item.type for item in response.output], response.usage.total_tokens)
with client.responses.stream(model="demo", input=QUESTION) as stream:
    for _ in stream:
        pass
    print("responses, streamed", stream.get_final_response().output_text[:30])
tools = [{"name": "calculator", "input_schema": FUNCTION["parameters"]}]
message = anthropic.Anthropic().messages.create(model="demo", max_tokens=100, messages=[user], tools=tools)
print("messages", message.stop_reason, message.usage.output_tokens)
with anthropic.Anthropic().messages.stream(model="demo", max_tokens=100, messages=[user]) as stream:
    print("messages, streamed", stream.get_final_message().stop_reason)
try:
    client.chat.completions.create(model="no-such-model", messages=[user])
except openai.NotFoundError as error:
    print("an error", error.status_code)
