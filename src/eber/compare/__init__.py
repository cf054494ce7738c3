"""Every method on a scientist's own table, each environment held out in turn."""
