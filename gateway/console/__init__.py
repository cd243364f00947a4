"""The web console: what a running gateway says of itself, seen and steered from a browser."""
