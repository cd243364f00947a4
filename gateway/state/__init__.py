"""What outlives the process: weights set by hand, their history, backends taken out."""
