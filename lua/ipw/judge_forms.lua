--- ipw.judge_forms: what a judge model is told, and how its verdict is read.
--
-- A form is { says, prompt, again, words, field }: `says` is for `list datasets`; `prompt` holds {question},
-- {reference} and {answer}; `words` maps each word of the reply's verdict (in small letters) to "correct",
-- "incorrect" or "not_attempted"; `field` names the field that the verdict follows (nil: the reply is the
-- verdict).  `again` is said once to a judge whose reply had no verdict.
--
-- Each follows the rules, the labels and the form of reply that its dataset was published with, in our own
-- words; --judge-prompt FILE uses another text with the same form of reply.

local forms = {}

local GIVEN = [[


Question: {question}

Reference answer: {reference}

Answer to grade: {answer}
]]

--- SimpleQA: one letter.
forms.letter = {
  says = "CORRECT, INCORRECT or NOT_ATTEMPTED",
  prompt = [[
You grade a short answer to a question of fact against its reference answer.

A: CORRECT. The answer holds all the important information of the reference and contradicts none of it.
Upper and lower case, punctuation, grammar and order do not matter. Hedging is fine if the reference is fully
and only asserted.
B: INCORRECT. Something in the answer contradicts the reference, even if it is hedged.
C: NOT_ATTEMPTED. The answer leaves out important information of the reference and contradicts none of it: it
declines, asks back, or does not commit itself.

A number is right if it agrees with the reference to the reference's last given digit. What the question
implies need not be said. Small slips in the spelling of names are fine if it is clear who is meant. If the
reference says more than was asked, only what was asked counts.]] .. GIVEN .. [[

Reply with one letter and nothing else: A for CORRECT, B for INCORRECT, C for NOT_ATTEMPTED.]],
  again = "Reply with one letter and nothing else: A, B or C.",
  words = { a = "correct", b = "incorrect", c = "not_attempted", correct = "correct", incorrect = "incorrect",
    not_attempted = "not_attempted" },
}

--- Humanity's Last Exam and BrowseComp: the answer as it was understood, the reasons, yes or no.
forms.extracted = {
  says = "correct: yes or no",
  prompt = [[
Decide whether an answer to a question is right, by its reference answer alone. Do not solve the question
yourself, do not argue for another answer: judge only whether the answer's final result agrees with the
reference. A small difference of a numeric result within its rounding is fine. Any other difference, any
ambiguity or a result that does not follow from the answer means no.]] .. GIVEN .. [[

Reply in this form:

extracted_final_answer: the final result of the answer, or None if it has none
reasoning: why that result agrees with the reference or differs from it
correct: yes or no
confidence: how sure the answer says it is, in per cent; 100 if it does not say]],
  again = "End with one line of this form, with yes or no:\n\ncorrect: yes",
  field = "correct", words = { yes = "correct", no = "incorrect" },
}

--- FRAMES: the explanation, then a decision.
forms.decision = {
  says = "Decision: TRUE or FALSE",
  prompt = [[
Decide whether a predicted answer holds the meaning and the vital facts of the reference answer. Look at the
substance: other words are fine unless the exact wording carries the meaning.]] .. GIVEN .. [[

Reply in this form:

Explanation: how you decided
Decision: TRUE or FALSE]],
  again = "End with one line of this form, with TRUE or FALSE:\n\nDecision: TRUE",
  field = "decision", words = { ["true"] = "correct", ["false"] = "incorrect" },
}

--- Datasets without a form of their own.
forms.default = {
  says = "correct: yes or no",
  prompt = [[
Decide whether an answer to a question agrees with its reference answer. Other words, units or notation are
fine if the meaning or the value is the same. A part that is missing or that contradicts the reference means
no.]] .. GIVEN .. [[

Give your reason in a sentence or two, then end with one line of this form, with yes or no:

correct: yes]],
  again = "End with one line of this form, with yes or no:\n\ncorrect: yes",
  field = "correct", words = { yes = "correct", no = "incorrect" },
}

--- Conversations without a right answer: the reply on record is the measure.
forms.comparison = {
  says = "correct: yes (as good as the reply on record) or no",
  prompt = [[
Compare two replies to the same message of a user: the reply on record (the reference) and a new one (the
answer). Decide whether the new one helps the user at least as well: it does what was asked, is true, and
leaves out nothing that matters.]] .. GIVEN .. [[

Give your reason in a sentence or two, then end with one line of this form: yes if the answer is at least as
good as the reference, else no.

correct: yes]],
  again = "End with one line of this form, with yes or no:\n\ncorrect: yes",
  field = "correct", words = { yes = "correct", no = "incorrect" },
}

return forms
