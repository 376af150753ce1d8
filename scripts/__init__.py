"""What the Makefile calls, and what tests of it import."""
