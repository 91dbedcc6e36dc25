"""What the whole core looks at: values, events, versions, epoch caches, logs, the state itself."""
