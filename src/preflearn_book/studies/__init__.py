"""What only an experiment of one chapter needs, a module or two a chapter."""
