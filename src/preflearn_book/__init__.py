"""The book: what runs and renders its chapters, and what only their experiments need."""
