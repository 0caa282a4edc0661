"""`kafka-lag-report replay`: what an HPA would have done on a group's own history."""
