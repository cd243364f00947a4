"""A bench result as one HTML file that needs nothing else: `page.render`."""
