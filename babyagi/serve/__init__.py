"""The server: the API, the events and the board. It asks what the command line asks."""
