"""What a loop adds to a small model: the same model in four systems, on questions with exact
keys."""
