"""Measures another Python, or CPython itself: `python.py native|eryx|monty run FILE TIMES`, `… call TIMES`.

Prints the seconds that each run or call took, one a line. A peer that cannot run a program exits with 1.
"""
import sys
import time


def native():
    space = {}
    return lambda code: exec(compile(code, "<bench>", "exec"), space)


def eryx():
    import eryx
    return eryx.Session().execute


def monty():
    import pydantic_monty
    session = pydantic_monty.Monty().__enter__().checkout().__enter__()
    return session.feed_run


def main(peer, mode, *arguments):
    run = {"native": native, "eryx": eryx, "monty": monty}[peer]()
    if mode == "run":
        code, times = open(arguments[0]).read(), int(arguments[1])
    else:
        code, times = "x = 1 + 1\nx", int(arguments[0])
        run(code)
    for _ in range(times):
        start = time.perf_counter()
        run(code)
        print(time.perf_counter() - start)
    sys.stdout.flush()


main(*sys.argv[1:])
