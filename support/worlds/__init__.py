"""Planted worlds: objectives whose facts must be found one after the other and joined, and a model
that knows only what it is shown."""
