"""The version of the distribution: read by the build, the command line and the MCP handshake."""

__version__ = "0.1.0"
