"""The REST daemon: real HTTP against a real process."""
