"""Pure functions over columns of samples and tables; none needs a JVM."""
