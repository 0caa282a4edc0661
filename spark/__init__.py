"""Turns the offset history into tables, reports and recommended HPAs."""
