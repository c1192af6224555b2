# Written by generate.py from src/loomline/_async/__init__.py: do not edit.
