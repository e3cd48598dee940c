"""The web portal of the memory graph: pages for people, on this machine."""
