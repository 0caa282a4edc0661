"""What `make demo` and `make report-demo` show."""
