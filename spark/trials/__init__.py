"""What HPAs would have done on groups' own minutes, after the replay of what really happened."""
