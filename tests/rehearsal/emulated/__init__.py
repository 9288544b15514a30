"""MiniStack, an emulator of AWS, with what the rehearsal needs and MiniStack lacks. Runs in an environment of its own."""
