"""Figures of cost and speed: each is measured here, printed by ``make bench``, and quoted nowhere without this command."""
