"""Pure functions over columns of the samples of an hour or a day; none needs a JVM."""
