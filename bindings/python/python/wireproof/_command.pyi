def main() -> None:
    """Run the command with the arguments of the process, and end the process with its exit code."""
def program() -> list[str]:
    """The beginning of the arguments of a process of the command: the program that `WIREPROOF_COMMAND` names, this module, or
    `wireproof` on the path.
    """
