"""A script that changed goes on with its checkpoint: what parts of state mean, what stays, and what is lacking."""
