"""Events about what HPAs ask for and do not get: their states, and the thread that posts changes of these."""
