"""How large the layer is, how much of it a plain fleet walks through, and the record that none of it may exceed."""
