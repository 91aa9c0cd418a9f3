"""What a host of MCP bundles starts: the server of mindex, over stdio."""

import sys

from mindex.cli.main import main

main(["serve", *sys.argv[1:]])
