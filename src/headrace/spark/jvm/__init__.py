"""The JVM of a session of our own."""
