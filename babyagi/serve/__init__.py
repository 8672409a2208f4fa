"""The HTTP API, live events, and the board. They call the same functions as the commands."""
