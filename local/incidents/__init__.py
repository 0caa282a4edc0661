"""The three incidents of docs/operate.md on real parts, and what each tool says of them."""
