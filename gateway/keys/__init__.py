"""Who asks: the keys of the configuration, and what each may use in a minute."""
