"""Stores every cycle's offsets as Parquet files in a folder or a bucket."""
