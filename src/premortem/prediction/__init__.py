"""A trained model in use: risk, likely cause and reasons for jobs, at every point."""
