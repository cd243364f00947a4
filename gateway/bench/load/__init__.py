"""What is sent, by whom, and what came back: from texts to samples of single requests."""
