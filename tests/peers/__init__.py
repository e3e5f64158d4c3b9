"""Each package of the second table in docs/comparison.md, run: a test for each of its cells.

pytest --ds=tests.peers.settings --nomigrations tests/peers/kit.py tests/peers/icv.py
    tests/peers/static.py tests/peers/contrib.py
"""
