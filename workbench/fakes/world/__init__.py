"""One discrete-event world of Jenkins and EC2: what the fleet is run against on a laptop, and what is true in the end."""
