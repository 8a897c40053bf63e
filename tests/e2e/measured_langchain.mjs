// An agent of LangChain for JavaScript, unmodified, against a scripted server: each line is one call's result.
import { ChatOpenAI } from '@langchain/openai'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { tool } from '@langchain/core/tools'
import { z } from 'zod'

const question = 'How much energy is 412 W over 35 minutes and 268 W over 25 minutes, in watt-hours?'
const llm = new ChatOpenAI({ model: 'fake-model', configuration: { baseURL: process.env.OPENAI_BASE_URL } })
const calculator = tool(() => '352', { name: 'calculator', description: 'Computes an expression.',
  schema: z.object({ expression: z.string() }) })
const agent = createReactAgent({ llm, tools: [calculator] })
const end = await agent.invoke({ messages: [{ role: 'user', content: question }] })
console.log('langchain', end.messages.at(-1).content, end.messages.length)
let text = ''
for await (const chunk of await llm.stream(question)) text += chunk.content
console.log('langchain, streamed', text)
