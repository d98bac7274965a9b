"""`python -m belated` is the command `belated`."""

from belated.cli import main

main()
