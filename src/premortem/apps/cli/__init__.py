"""The command line, one file a command. Heavy libraries are imported by the command that needs them."""
