"""What helps to find a fault: the doctor's page, the bundle, and a log without a user's text."""
