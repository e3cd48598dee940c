"""The service with an injected clock, over real files and a real HTTP embedder."""
