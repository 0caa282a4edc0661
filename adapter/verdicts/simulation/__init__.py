"""HPAs replayed on what groups did: their load, consumers and autoscalers, for many groups at once."""
