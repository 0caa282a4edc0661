"""Where a history and its reports lie: a local path or a bucket."""
