"""The only home of Spark: sources, the fold as a stream and as a batch, the Delta tables."""
