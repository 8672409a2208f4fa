"""Turns the text of models into typed replies. It is tolerant in what it reads, and never invents a
task, an id or a word.

It looks for JSON first, anywhere in the text and also malformed; then line by line for tags,
tables, keys and values, and lists. Prose is none of these. Only the first `MAX_REPLY_CHARS`
characters are read, in linear time.

Does not cover: tool calls, and the text of a task's result, which is kept as it is.
"""
