"""What is between the package and its rows: poolers, replicas, other writers."""
