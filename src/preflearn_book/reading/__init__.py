"""Reading of a user's file: formats, columns, names, outcomes, and times."""
