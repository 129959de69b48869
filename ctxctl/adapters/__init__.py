"""What agents and their frameworks call, and what they are told in their own protocols."""
