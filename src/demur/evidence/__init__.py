"""Dempster-Shafer theory; knows nothing of learning."""
