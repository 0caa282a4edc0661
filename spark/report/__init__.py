"""The report: its figures are gathered, put together and written as HTML, JSON, Markdown and CSV."""
