"""`python -m mindex` is `mindex`."""

from mindex.cli.main import main

if __name__ == "__main__":
    main()
