"""The commands, a module each; ``nemesis.cli.app`` lists them, and imports the one that is asked for."""
