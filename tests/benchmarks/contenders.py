"""Who takes part, and the process that each of them runs in.

    python -m tests.benchmarks.contenders NAME prepare|run

Every run is a process of its own, and so is what has to be prepared for it: what that loads would
count as idle memory. A run ends with a line of JSON; "unavailable" in it says why there was none.
"""

import json
import sys
from importlib import import_module

from tests.benchmarks import builders, visitors

CONTENDERS = {
    contender.name: contender
    for contenders in (
        builders.builds,
        builders.queues,
        builders.articles,
        builders.rebuilds,
        builders.overlapping,
        builders.traced,
        visitors.requests,
        visitors.editors,
        visitors.audits,
        visitors.crawls,
        visitors.validations,
    )
    for contender in contenders()
}


def main(arguments):
    """Do one stage of one contender; return the exit code."""
    import django

    from tests.benchmarks.measuring import Unavailable

    name, stage = arguments
    function = getattr(CONTENDERS[name], stage)
    django.setup()
    module, _, attribute = function.partition(".")
    try:
        outcome = getattr(import_module(f"tests.benchmarks.{module}"), attribute)()
    except Unavailable as error:
        outcome = {"unavailable": str(error)}
    sys.stdout.write(f"\n{json.dumps(outcome or {})}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
