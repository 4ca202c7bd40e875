"""``python -m onelaunch`` is the ``onelaunch`` command."""

import sys

from onelaunch.cli import main

sys.exit(main())
