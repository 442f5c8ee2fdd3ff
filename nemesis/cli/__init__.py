"""The command line: ``app`` finds the command, ``commands`` has one module for each."""
