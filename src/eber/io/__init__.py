"""Files that are whole or not there, and text that is harmless where it is shown."""
