"""What engines say of themselves, and whether it fits what is declared and what was measured."""
