"""`gateway connect`: what a client needs to be set to, setting it, and trying it."""
