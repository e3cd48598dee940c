"""The Ollama client and its circuit breaker, over real HTTP."""
