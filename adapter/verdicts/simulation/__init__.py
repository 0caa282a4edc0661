"""What HPAs would have done with a group: its load, its consumers and its autoscalers, replayed for many groups at once."""
