"""What a whole range of samples shows, folded in hour after hour; none needs a JVM."""
