"""`gateway doctor`: walks the troubleshooting list, one module a topic."""
