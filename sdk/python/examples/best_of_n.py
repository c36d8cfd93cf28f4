"""Best of N: try several continuations of one prepared sandbox at once, and keep the best.

Preparing (installing, loading, computing) is done once; a fork costs next to nothing and sees all of it. The candidates
here are written down; in earnest they would be a model's answers.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Tuple

from wardian import Sandbox

PREPARE = """
cd /tmp
printf '%s\\n' pear fig apple fig plum apple fig > fruit
"""

# The task: print the most frequent line of /tmp/fruit, and nothing else.
CANDIDATES = [
    "sort fruit | head -n 1",
    "sort fruit | uniq -c",
    "sort fruit | uniq -c | sort -rn | head -n 1 | tr -s ' ' | cut -d ' ' -f 3",
    "sort /tmp/fruits",
]


def attempt(work: Tuple[Sandbox, str]) -> Tuple[int, str]:
    """Runs a candidate in a fork of its own, and says how good it was."""
    fork, candidate = work
    with fork:
        result = fork.run(candidate, timeout=20)
        score = 2 * result.ok + 8 * (result.stdout.strip() == "fig")
        return score, candidate


def main() -> None:
    with Sandbox() as sandbox, ThreadPoolExecutor(len(CANDIDATES)) as threads:
        sandbox.run(PREPARE, check=True)
        forks = sandbox.fork(len(CANDIDATES))
        outcomes = list(threads.map(attempt, zip(forks, CANDIDATES)))
        for score, candidate in outcomes:
            print(f"{score:3}  {candidate}")
        best = max(outcomes)[1]
        print(f"best: {sandbox.run(best, check=True).stdout.strip()}")


if __name__ == "__main__":
    main()
