"""The seam: every use case once, validated once, over ports that a store and an embedder fulfil."""
