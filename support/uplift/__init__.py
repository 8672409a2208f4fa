"""Small folders and worlds of persons with exact keys, loops to compare with, and a reader that
takes exactly what its prompt holds."""
