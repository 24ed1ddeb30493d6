"""The commands, a file each, with ``add_parser(commands)`` and ``run(arguments, signals)``."""
