"""The only home of Spark: sources, the stateful fold as a stream and as a batch, the Delta tables."""
