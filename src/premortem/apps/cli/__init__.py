"""The command line, one file a command. Heavy libraries wait for the command that needs them."""
