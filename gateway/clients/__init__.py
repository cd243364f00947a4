"""What is known of clients, one profile each: sessions, errors, signs of life, settings."""
