"""The papers' tables, measured again: a file for each paper's, a runner and a renderer."""
