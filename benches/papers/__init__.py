"""The papers' tables, measured again: a file for each table, and what runs and shows them."""
