"""Labels of one's own for the text protocol: other names of the calls, and another language."""

from babyagi.react.protocols.text import Labels

TOOL_LABELS = Labels(
    question="Question",
    thought=("Thought",),
    action=("Tool", "Action"),
    action_input=("Tool Input", "Action Input"),
    observation=("Observation",),
    answer=("Final Answer",),
)
JAPANESE = Labels(
    question="質問",
    thought=("思考",),
    action=("行動",),
    action_input=("行動の入力", "行動入力", "入力"),
    observation=("観察",),
    answer=("完了", "最終回答"),
)
