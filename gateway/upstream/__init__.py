"""The wire to a backend: one HTTP/1.1 client over httptools, with a pool a backend."""
