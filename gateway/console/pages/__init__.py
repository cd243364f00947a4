"""The console's pages, one module each, and the frame around them."""
