"""A changed script goes on with its checkpoint: state, source offsets and published batches are handed to a new generation."""
