"""`python -m facetwalk` is the command line."""

from facetwalk.cli import main

if __name__ == "__main__":
    main()
