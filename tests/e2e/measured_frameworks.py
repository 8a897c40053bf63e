"""Agents of other people's frameworks, unmodified, against a scripted server: each prints its answer.

  measured_frameworks.py litellm|smolagents|inspect
"""
import sys

MODEL = "fake-model"
QUESTION = "How much energy is 412 W over 35 minutes and 268 W over 25 minutes, in watt-hours?"


def by_litellm():
    import litellm

    reply = litellm.completion(model="openai/" + MODEL, messages=[{"role": "user", "content": QUESTION}])
    print("litellm", reply.choices[0].message.content, reply.usage.total_tokens)
    chunks = litellm.completion(model="openai/" + MODEL, messages=[{"role": "user", "content": QUESTION}], stream=True)
    print("litellm, streamed", "".join(c.choices[0].delta.content or "" for c in chunks))


def by_smolagents():
    import os

    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    @tool
    def calculator(expression: str) -> str:
        """Computes an expression.

        Args:
            expression: the expression
        """
        return "352"

    model = OpenAIServerModel(model_id=MODEL, api_base=os.environ["OPENAI_BASE_URL"],
                              api_key=os.environ["OPENAI_API_KEY"])
    print("smolagents", ToolCallingAgent(tools=[calculator], model=model, verbosity_level=0).run(QUESTION))


def by_inspect():
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    @tool
    def calculator():
        async def execute(expression: str):
            """Computes an expression.

            Args:
                expression: the expression
            """
            return "352"

        return execute

    task = Task(dataset=[Sample(input=QUESTION, target="352")], solver=[use_tools(calculator()), generate()],
                scorer=includes())
    log = eval(task, model="openai/" + MODEL, model_args={"responses_api": False}, display="none",
               log_dir="inspect-logs")[0]
    print("inspect", log.status, log.samples[0].output.completion if log.samples else log.error)


{"litellm": by_litellm, "smolagents": by_smolagents, "inspect": by_inspect}[sys.argv[1]]()
