"""What is released: the distributions that `tox run -e release` builds."""
