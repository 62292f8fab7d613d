"""See package.py."""
