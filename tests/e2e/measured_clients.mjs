// Official clients of npm, unmodified, against the demo model or a record of it: each line is one call's result.
import OpenAI from 'openai'
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText } from 'ai'
import { ChatOpenAI } from '@langchain/openai'

const question = 'A server draws 412 watts during the first 35 minutes of an hour and 268 watts during the remaining ' +
  '25 minutes. How much energy does it use in that hour, in watt-hours? Answer with the number only.'
const parameters = { type: 'object', properties: { expression: { type: 'string' } } }
const openai = new OpenAI()
const anthropic = new Anthropic()
const say = (what, ...results) => console.log(what, JSON.stringify(results))

const user = { role: 'user', content: question }
const model = 'demo'
const tools = [{ type: 'function', function: { name: 'calculator', parameters } }]
const chat = await openai.chat.completions.create({ model, messages: [user], tools })
const call = chat.choices[0].message.tool_calls[0]
say('chat', call.function.name, chat.usage.total_tokens)
let text = ''
const thread = [user, chat.choices[0].message, { role: 'tool', tool_call_id: call.id, content: '352' }]
for await (const chunk of await openai.chat.completions.create({ model, messages: thread, tools, stream: true })) {
  text += chunk.choices[0].delta.content ?? '' // a chunk of usage would have no choice
}
say('chat, streamed', text)

const named = [{ type: 'function', name: 'calculator', parameters }]
const first = await openai.responses.create({ model, input: question, tools: named })
const asked = first.output.find(item => item.type === 'function_call')
say('responses', first.output.map(item => item.type), first.usage.total_tokens)
const rest = await openai.responses.stream({ model, tools: named, input: [user, ...first.output,
  { type: 'function_call_output', call_id: asked.call_id, output: '352' }] }).finalResponse()
say('responses, streamed', rest.output_text, rest.status, rest.usage.output_tokens)

const own = { model, max_tokens: 100, tools: [{ name: 'calculator', input_schema: parameters }] }
const message = await anthropic.messages.create({ ...own, messages: [user] })
const use = message.content.find(block => block.type === 'tool_use')
say('messages', use.name, message.stop_reason, message.usage.output_tokens)
const final = await anthropic.messages.stream({ ...own, messages: [user, { role: 'assistant', content: message.content },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: '352' }] }] }).finalMessage()
say('messages, streamed', final.content[0].text, final.stop_reason)

const ai = createOpenAICompatible({ name: 'demo', baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY })
say('ai', (await generateText({ model: ai('demo'), prompt: question })).text.slice(0, 30))
const streamed = streamText({ model: ai('demo'), prompt: question })
text = ''
for await (const piece of streamed.textStream) text += piece
say('ai, streamed', text.slice(0, 30))
const chain = new ChatOpenAI({ model, maxRetries: 0, configuration: { baseURL: process.env.OPENAI_BASE_URL } })
const bound = await chain.bindTools(tools).invoke(question)
say('langchain', bound.tool_calls[0].name, bound.usage_metadata.total_tokens)
text = ''
for await (const piece of await chain.stream(question)) text += piece.content
say('langchain, streamed', text.slice(0, 30))
try {
  await openai.chat.completions.create({ model: 'no-such-model', messages: [user] })
} catch (error) {
  say('an error', error.status, error.code)
}
