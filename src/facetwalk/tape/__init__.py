"""Work on a CPU that is noted once and done again, kernel by kernel or compiled."""

from facetwalk.tape.compiling import compiled
from facetwalk.tape.tape import NotOnTapeError, Tape

__all__ = ["NotOnTapeError", "Tape", "compiled"]
