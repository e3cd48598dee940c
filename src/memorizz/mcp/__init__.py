"""The MCP server of the memory graph: its two tools, over standard streams and over HTTP."""
