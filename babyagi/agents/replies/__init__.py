"""Turns a model's text into typed replies. It tolerates many forms, and never invents a task, an id
or a word.

JSON is looked for first, anywhere in the text and also malformed; then, line by line, tags, tables,
keys and values, and lists. Prose is not read as any of these. Only the first `MAX_REPLY_CHARS`
characters are read, in linear time.

Not covered: tool calls, and the text of a task's result, which is kept unchanged.
"""
