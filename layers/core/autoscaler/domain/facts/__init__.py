"""Facts: what an operator wrote, what a pass saw, what is remembered, and the plan that a pass makes. Data, no decisions.

May touch nothing but `domain.labels`.
"""
