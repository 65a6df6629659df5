"""What make calls to set a clone up and to work with a real account."""
