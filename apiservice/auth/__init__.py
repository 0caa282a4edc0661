"""Who a caller is, and whether they may do what they ask: front proxy, client certificate, token, access review."""
