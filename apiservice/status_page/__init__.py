"""The status page: all groups by urgency, conditions, and HPAs, as one page of HTML without scripts."""
