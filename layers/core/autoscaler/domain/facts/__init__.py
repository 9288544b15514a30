"""Facts: the operator's settings, the snapshot, the memory and the plan. Data, no decisions.

May touch nothing but `domain.labels`.
"""
