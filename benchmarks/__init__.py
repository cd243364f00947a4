"""What the gateway costs beside other proxies, on one machine, in one interleaved run."""
