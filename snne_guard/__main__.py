"""``python -m snne_guard`` is the command ``snne-guard``."""

from snne_guard.cli import main

if __name__ == "__main__":
    main()
