"""Code for the experiments of single chapters, one or two modules per chapter."""
