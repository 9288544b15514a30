"""The pictures in docs/: drawn by ``make pictures``, from the code where they tell of it."""
