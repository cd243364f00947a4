"""What a client touches: paths, the body's first reading, hot routes, reply head and framing."""
