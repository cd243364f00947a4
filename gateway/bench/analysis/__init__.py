"""What samples come to: figures of a round, medians of rounds, and what may be concluded."""
