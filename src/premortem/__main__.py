"""`python -m premortem`: the command line."""

from premortem.apps.cli.main import run

if __name__ == "__main__":
    run()
