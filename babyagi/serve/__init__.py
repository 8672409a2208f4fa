"""The server: the API, live events and the board. It calls the same verbs as the command line."""
