"""A run as pictures: one HTML page that needs no network, and PNG and SVG of the same charts."""
